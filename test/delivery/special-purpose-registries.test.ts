import ipaddr from 'ipaddr.js';
import { describe, expect, it } from 'vitest';
import { addressClassOf } from '../../src/delivery/addresses/address-guard.ts';

/** Every block of IANA's IPv4 and IPv6 Special-Purpose Address Registries. */
const REGISTERED = [
  '0.0.0.0/8',
  '0.0.0.0/32',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.0.0/29',
  '192.0.0.8/32',
  '192.0.0.9/32',
  '192.0.0.10/32',
  '192.0.0.170/32',
  '192.0.0.171/32',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.88.99.2/32',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '240.0.0.0/4',
  '255.255.255.255/32',
  '::1/128',
  '::/128',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '100:0:0:1::/64',
  '2001::/23',
  '2001::/32',
  '2001:1::1/128',
  '2001:1::2/128',
  '2001:1::3/128',
  '2001:2::/48',
  '2001:3::/32',
  '2001:4:112::/48',
  '2001:10::/28',
  '2001:20::/28',
  '2001:30::/28',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
];

/** The first and the last address of a network. */
function edgesOf(cidr: string): [string, string] {
  const [network, bits] = ipaddr.parseCIDR(cidr);
  const first = network.toByteArray();
  const last = first.map((byte, at) => byte | (0xff >> Math.min(8, Math.max(0, bits - 8 * at))));
  return [ipaddr.fromByteArray(first).toString(), ipaddr.fromByteArray(last).toString()];
}

describe('a special-purpose address block', () => {
  it.each(REGISTERED)('such as %s is not public, from its first address to its last', (cidr) => {
    expect(edgesOf(cidr).map(addressClassOf)).not.toContain('public');
  });

  // The only registered block that is judged by what it contains: a socket to a mapped address speaks IPv4.
  it('of IPv4-mapped addresses has the class of the IPv4 address', () => {
    expect(['::ffff:8.8.8.8', '::ffff:10.0.0.1', '::ffff:192.31.196.1'].map(addressClassOf)).toEqual([
      'public',
      'private',
      'reserved',
    ]);
  });
});

describe('an IPv6 address', () => {
  it.each(['1::1', '1fff:ffff::1', '4000::1', '7fff::1', '8000::1', 'c000::1', 'fe00::1'])(
    'outside global unicast (2000::/3), such as %s, is not public',
    (address) => {
      expect(addressClassOf(address)).toBe('reserved');
    },
  );

  it.each(['2001:200::1', '2003::1', '2620:4f:7fff::1', '2620:4f:8001::1', '3ffe::1', '3fff:1000::1'])(
    'of global unicast beside the registered blocks, such as %s, is public',
    (address) => {
      expect(addressClassOf(address)).toBe('public');
    },
  );
});
