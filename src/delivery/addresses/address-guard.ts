/**
 * Decides which addresses a delivery may connect to, as protection against server-side request forgery (contract M 5.2).
 *
 * Addresses of cloud metadata services and link-local addresses are never reachable, even if an allow-list names them. Private
 * addresses are reachable if the operator lists their host or network. Only `all` disables every check.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { memo } from '../../protocol/memo.ts';

/** The setting that allows more destinations. Every error about a blocked destination names this setting. */
export const ALLOW_SETTING = 'WAYPOST_ALLOW_DESTINATIONS';

export type AddressPolicy =
  /** Public addresses only. */
  | { kind: 'deny' }
  /** Public and listed addresses. `hosts`: exact names or `*.suffix`, which may resolve to private addresses. */
  | { kind: 'allow'; loopback: boolean; hosts: readonly string[]; cidrs: readonly string[] }
  /** Everything, including metadata services. */
  | { kind: 'all' };

export type AddressClass =
  | 'public'
  | 'loopback'
  | 'private'
  | 'link-local'
  | 'metadata'
  | 'multicast'
  | 'unspecified'
  | 'reserved';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Network = [Address, number];

/**
 * The first match applies, so single addresses precede the networks that contain them. Every block of IANA's
 * Special-Purpose Address Registries counts as not public, even if it is globally reachable, since no such block has
 * endpoints.
 */
const IPV4_CLASSES = networks([
  ['metadata', '169.254.169.254/32', '169.254.170.2/32', '168.63.129.16/32', '100.100.100.200/32', '192.0.0.192/32'],
  ['unspecified', '0.0.0.0/8'],
  ['loopback', '127.0.0.0/8'],
  ['link-local', '169.254.0.0/16'],
  ['private', '10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16'],
  ['multicast', '224.0.0.0/4'],
  ['reserved', '192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24'],
  ['reserved', '192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '240.0.0.0/4'],
]);

const IPV6_CLASSES = networks([
  ['metadata', 'fd00:ec2::254/128', 'fd00:ec2::23/128', 'fd20:ce::254/128'],
  ['unspecified', '::/128'],
  ['loopback', '::1/128'],
  ['link-local', 'fe80::/10'],
  ['private', 'fc00::/7', 'fec0::/10'],
  ['multicast', 'ff00::/8'],
  // IETF protocol assignments (Teredo and ORCHID among them), documentation, 6to4, AS112.
  ['reserved', '2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'],
  // Everything except 2000::/3, the only global unicast space. Includes IPv4-compatible, NAT64, discard-only and segment
  // routing blocks.
  ['reserved', '::/3', '4000::/2', '8000::/1'],
]);

/** Cached, since most messages go to a few addresses. */
const readCanonical = memo((text: string) => unmapped(readAddress(text)));

/** Checks single addresses against one policy, which is compiled once. */
export class AddressGuard {
  readonly policy: AddressPolicy;
  readonly #networks: readonly Network[];

  constructor(policy: AddressPolicy) {
    this.policy = policy;
    this.#networks = policy.kind === 'allow' ? policy.cidrs.map(readNetwork) : [];
  }

  /**
   * The class for which `address` (textual IPv4 or IPv6) is blocked; undefined if it is allowed.
   * `hostname` is the host of the URL: a listed host may resolve to private addresses.
   */
  blockedClass(address: string, hostname: string): AddressClass | undefined {
    if (this.policy.kind === 'all') return undefined;
    if (isIP(address) === 0) return 'reserved';
    return this.#blockedClassOf(readCanonical(address), hostname);
  }

  #blockedClassOf(address: Address, hostname: string): AddressClass | undefined {
    const addressClass = classOf(address);
    if (addressClass === 'public') return undefined;
    if (addressClass === 'metadata' || addressClass === 'link-local') return addressClass;
    if (!this.#isListed(address, addressClass, hostname)) return addressClass;
    // A listed NAT64 network must not bypass the rules for the embedded IPv4 address.
    const embedded = embeddedIpv4(address);
    return embedded === undefined ? undefined : this.#blockedClassOf(embedded, hostname);
  }

  #isListed(address: Address, addressClass: AddressClass, hostname: string): boolean {
    if (this.policy.kind !== 'allow') return false;
    if (this.policy.loopback && addressClass === 'loopback') return true;
    if (isListedHost(this.policy.hosts, hostname)) return true;
    return this.#networks.some((network) => isWithin(address, network));
  }
}

/** The class of an address. A mapped IPv4 address has the class of the IPv4 address; text that is not an address is `reserved`. */
export function addressClassOf(address: string): AddressClass {
  return isIP(address) === 0 ? 'reserved' : classOf(unmapped(readAddress(address)));
}

/**
 * Parses the setting: `all`, or a comma-separated list of `loopback`, host names, `*.suffix`, addresses and CIDRs.
 * Empty means public addresses only. Throws an Error that names the first invalid item.
 */
export function parseAddressPolicy(text: string): AddressPolicy {
  const items = text
    .split(',')
    .map((item) => item.trim().toLowerCase())
    .filter((item) => item !== '');
  if (items.length === 0) return { kind: 'deny' };
  if (items.includes('all')) {
    if (items.length > 1) throw new Error(`${ALLOW_SETTING}: 'all' cannot be combined with other items`);
    return { kind: 'all' };
  }
  const hosts: string[] = [];
  const cidrs: string[] = [];
  let loopback = false;
  for (const item of items) {
    if (item === 'loopback') loopback = true;
    else if (isIP(item) !== 0) cidrs.push(`${item}/${isIP(item) === 4 ? 32 : 128}`);
    else if (isCidr(item)) cidrs.push(item);
    else if (/^(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(item)) hosts.push(item);
    else throw new Error(`${ALLOW_SETTING}: '${item}' is not a host name, an address or a CIDR`);
  }
  return { kind: 'allow', loopback, hosts, cidrs };
}

/** The host of a URL without brackets, if it is an address literal; otherwise undefined. */
export function literalAddress(hostname: string): string | undefined {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(bare) === 0 ? undefined : bare;
}

function isCidr(text: string): boolean {
  const slash = text.indexOf('/');
  // node:net is stricter than ipaddr.js, which also accepts octal and short forms.
  return slash > 0 && isIP(text.slice(0, slash)) !== 0 && ipaddr.isValidCIDR(text);
}

/** Reads an address that `isIP` accepts. */
function readAddress(text: string): Address {
  if (isIP(text) === 4) return ipaddr.IPv4.parse(text);
  const [address = ''] = text.split('%'); // without a zone
  // ipaddr.js parses `::8.8.8.8` (IPv4-compatible, as printed by DNS and sockets) as `::ffff:8.8.8.8` (IPv4-mapped).
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  if (dotted === null) return ipaddr.IPv6.parse(address);
  const [high1, high2, low1, low2] = dotted.slice(2).map(Number);
  const group = (first = 0, second = 0): string => (first * 256 + second).toString(16);
  return ipaddr.IPv6.parse(`${dotted[1]}${group(high1, high2)}:${group(low1, low2)}`);
}

/** Reads `address/bits`, which `isCidr` accepts. */
function readNetwork(cidr: string): Network {
  const slash = cidr.indexOf('/');
  return [readAddress(cidr.slice(0, slash)), Number(cidr.slice(slash + 1))];
}

/** `hosts`: exact names in lower case, or `*.suffix` for all subdomains. */
export function isListedHost(hosts: readonly string[], hostname: string): boolean {
  const lowered = hostname.toLowerCase();
  const name = lowered.endsWith('.') ? lowered.slice(0, -1) : lowered;
  return hosts.some((host) => (host.startsWith('*.') ? name.endsWith(host.slice(1)) : name === host));
}

function isWithin(address: Address, [base, bits]: Network): boolean {
  return address.kind() === base.kind() && address.match([base, bits] as [ipaddr.IPv4 & ipaddr.IPv6, number]);
}

function classOf(address: Address): AddressClass {
  const table = address.kind() === 'ipv4' ? IPV4_CLASSES : IPV6_CLASSES;
  for (const [addressClass, network] of table) {
    if (isWithin(address, network)) return addressClass;
  }
  return 'public';
}

function unmapped(address: Address): Address {
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** The IPv4 address embedded in an IPv6 transition address; undefined for any other address. */
function embeddedIpv4(address: Address): ipaddr.IPv4 | undefined {
  if (!(address instanceof ipaddr.IPv6)) return undefined;
  const bytes = address.toByteArray();
  const [first, second, third] = address.parts;
  if (first === 0x2002) return ipv4At(bytes, 2); // 6to4
  if (first === 0x2001 && second === 0) {
    // Teredo stores the client's address, inverted, in the last four bytes.
    return ipv4At(
      bytes.map((byte) => byte ^ 0xff),
      12,
    );
  }
  const isNat64 = first === 0x64 && second === 0xff9b && (third === 0 || third === 1);
  const isCompatible = bytes.slice(0, 12).every((byte) => byte === 0) && bytes.slice(12, 14).some((byte) => byte !== 0);
  return isNat64 || isCompatible ? ipv4At(bytes, 12) : undefined;
}

function ipv4At(bytes: number[], offset: number): ipaddr.IPv4 {
  return new ipaddr.IPv4(bytes.slice(offset, offset + 4));
}

function networks(rows: [AddressClass, ...string[]][]): [AddressClass, Network][] {
  return rows.flatMap(([addressClass, ...cidrs]) =>
    cidrs.map((cidr): [AddressClass, Network] => [addressClass, readNetwork(cidr)]),
  );
}
