import { describe, expect, it } from 'vitest';
import { AddressGuard, addressClassOf, parseAddressPolicy } from '../../src/delivery/addresses/address-guard.ts';

/** An address in each network that must be refused, at its edges. */
const DENIED: [string, string][] = [
  ['0.0.0.0', 'unspecified'],
  ['0.255.255.255', 'unspecified'],
  ['10.0.0.0', 'private'],
  ['10.255.255.255', 'private'],
  ['100.64.0.1', 'private'],
  ['100.127.255.255', 'private'],
  ['100.100.100.200', 'metadata'],
  ['127.0.0.1', 'loopback'],
  ['127.255.255.254', 'loopback'],
  ['168.63.129.16', 'metadata'],
  ['169.254.0.1', 'link-local'],
  ['169.254.169.254', 'metadata'],
  ['172.16.0.1', 'private'],
  ['172.31.255.255', 'private'],
  ['192.0.0.8', 'reserved'],
  ['192.0.2.1', 'reserved'],
  ['192.88.99.1', 'reserved'],
  ['192.168.1.1', 'private'],
  ['198.18.0.1', 'reserved'],
  ['198.19.255.255', 'reserved'],
  ['198.51.100.7', 'reserved'],
  ['203.0.113.7', 'reserved'],
  ['224.0.0.1', 'multicast'],
  ['239.255.255.255', 'multicast'],
  ['240.0.0.1', 'reserved'],
  ['255.255.255.255', 'reserved'],
  ['::', 'unspecified'],
  ['::1', 'loopback'],
  ['0:0:0:0:0:0:0:1', 'loopback'],
  ['::127.0.0.1', 'reserved'],
  ['::8.8.8.8', 'reserved'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['::ffff:7f00:1', 'loopback'],
  ['::ffff:10.0.0.1', 'private'],
  ['::ffff:169.254.169.254', 'metadata'],
  ['::ffff:0:127.0.0.1', 'reserved'],
  ['64:ff9b::7f00:1', 'reserved'],
  ['64:ff9b::8.8.8.8', 'reserved'],
  ['64:ff9b:1::10.0.0.1', 'reserved'],
  ['100::1', 'reserved'],
  ['2001::1', 'reserved'],
  ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'reserved'],
  ['2001:db8::1', 'reserved'],
  ['2002:7f00:1::', 'reserved'],
  ['2002:0808:0808::1', 'reserved'],
  ['fc00::1', 'private'],
  ['fd12:3456::1', 'private'],
  ['fd00:ec2::254', 'metadata'],
  ['fe80::1', 'link-local'],
  ['fe80::1%eth0', 'link-local'],
  ['febf::1', 'link-local'],
  ['fec0::1', 'private'],
  ['ff02::1', 'multicast'],
  ['nonsense', 'reserved'],
  ['', 'reserved'],
  ['0x7f.1', 'reserved'],
];

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.1',
  '223.255.255.255',
  '::ffff:8.8.8.8',
  '2001:4860:4860::8888',
  '2606:4700::1111',
  '2a00:1450::1',
];

/** What an allow-list of everything still must not open. */
const NEVER = ['169.254.169.254', '169.254.1.1', '::ffff:a9fe:a9fe', '168.63.129.16', 'fd00:ec2::254', 'fe80::1'];

describe('deny', () => {
  const guard = new AddressGuard({ kind: 'deny' });

  it.each(DENIED)('refuses %s as %s', (address, addressClass) => {
    expect(guard.blockedClass(address, 'name.example')).toBe(addressClass);
    expect(addressClassOf(address)).toBe(addressClass);
  });

  it.each(PUBLIC)('lets %s pass', (address) => {
    expect(guard.blockedClass(address, 'name.example')).toBeUndefined();
    expect(addressClassOf(address)).toBe('public');
  });
});

describe('an allow-list', () => {
  it.each(NEVER)('of all networks and all hosts does not allow %s', (address) => {
    const guard = new AddressGuard(parseAddressPolicy('0.0.0.0/0, ::/0, loopback, *.example'));
    expect(guard.blockedClass(address, 'name.example')).toMatch(/metadata|link-local/);
  });

  it('allows the networks and addresses it names, also in their mapped form', () => {
    const guard = new AddressGuard(parseAddressPolicy('10.1.0.0/16, 192.168.5.5, fd00:1::/32'));
    const verdicts = ['10.1.2.3', '::ffff:10.1.2.3', '192.168.5.5', 'fd00:1::7', '8.8.8.8'].map((address) =>
      guard.blockedClass(address, 'x'),
    );
    expect(verdicts).toEqual([undefined, undefined, undefined, undefined, undefined]);
    expect(
      ['10.2.0.0', '192.168.5.6', 'fd01::1', '127.0.0.1'].map((address) => guard.blockedClass(address, 'x')),
    ).toEqual(['private', 'private', 'private', 'loopback']);
  });

  it('allows private addresses for the hosts it names', () => {
    const guard = new AddressGuard(parseAddressPolicy('Db.Internal, *.svc.local'));
    expect(guard.blockedClass('10.0.0.1', 'db.internal')).toBeUndefined();
    expect(guard.blockedClass('10.0.0.1', 'DB.internal.')).toBeUndefined();
    expect(guard.blockedClass('10.0.0.1', 'a.b.svc.local')).toBeUndefined();
    expect(guard.blockedClass('10.0.0.1', 'svc.local')).toBe('private');
    expect(guard.blockedClass('10.0.0.1', 'xdb.internal')).toBe('private');
    expect(guard.blockedClass('10.0.0.1', 'db.internal.evil.example')).toBe('private');
  });

  it('allows only loopback for the word loopback', () => {
    const guard = new AddressGuard(parseAddressPolicy('loopback'));
    expect(['127.0.0.1', '::1', '::ffff:7f00:1'].map((address) => guard.blockedClass(address, 'x'))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(guard.blockedClass('10.0.0.1', 'x')).toBe('private');
    expect(guard.blockedClass('0.0.0.0', 'x')).toBe('unspecified');
  });

  it('that names a NAT64 network still checks the embedded address', () => {
    const guard = new AddressGuard(parseAddressPolicy('64:ff9b::/96, 2002::/16'));
    expect(guard.blockedClass('64:ff9b::8.8.8.8', 'x')).toBeUndefined();
    expect(guard.blockedClass('64:ff9b::127.0.0.1', 'x')).toBe('loopback');
    expect(guard.blockedClass('64:ff9b::a9fe:a9fe', 'x')).toBe('metadata');
    expect(guard.blockedClass('2002:a00:1::', 'x')).toBe('private');
  });
});

it('allows every address under all', () => {
  const guard = new AddressGuard({ kind: 'all' });
  expect(DENIED.map(([address]) => guard.blockedClass(address, 'x'))).toEqual(DENIED.map(() => undefined));
});

describe('the setting', () => {
  it('is read into a policy', () => {
    expect(parseAddressPolicy(' ')).toEqual({ kind: 'deny' });
    expect(parseAddressPolicy('ALL')).toEqual({ kind: 'all' });
    expect(parseAddressPolicy('loopback, *.corp.example ,10.0.0.0/8,fd00::1')).toEqual({
      kind: 'allow',
      loopback: true,
      hosts: ['*.corp.example'],
      cidrs: ['10.0.0.0/8', 'fd00::1/128'],
    });
  });

  it.each(['10.0.0.0/33', '010.0.0.1/8', 'http://host', 'a b', '*', 'all,loopback', '*.*.x', '-x'])(
    'refuses %s',
    (text) => {
      expect(() => parseAddressPolicy(text)).toThrow(/WAYPOST_ALLOW_DESTINATIONS/);
    },
  );
});
