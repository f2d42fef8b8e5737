import { describe, expect, it } from 'vitest';
import { callerIpReader, trustedProxies } from '../../src/api/edge/proxies.ts';

const PROXIES = ['10.0.0.0/8', '172.16.0.0/12', '::1', '2001:db8::/32', '192.0.2.1', ' 198.18.0.1/32'];

describe('the caller’s address (contract M 7.5)', () => {
  it.each<[string | undefined, string | undefined, string | undefined]>([
    ['203.0.113.9', undefined, '203.0.113.9'],
    ['::ffff:203.0.113.9', undefined, '203.0.113.9'],
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['203.0.113.9', '198.51.100.1', '203.0.113.9'], // an untrusted peer may write what it likes
    ['10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', '6.6.6.6, 198.51.100.1, 10.9.9.9', '198.51.100.1'],
    ['192.0.2.1', '198.51.100.1:5123', '198.51.100.1'],
    ['172.31.0.1', '198.51.100.1', '198.51.100.1'],
    ['172.32.0.1', '198.51.100.1', '172.32.0.1'],
    ['192.0.2.2', '198.51.100.1', '192.0.2.2'], // an address by itself is no network
    ['198.18.0.1', '198.51.100.1', '198.51.100.1'],
    ['::1', '[2001:db9::7]:443', '2001:db9::7'],
    ['::1', '[2001:db9::7]', '2001:db9::7'],
    ['::2', '198.51.100.1', '::2'],
    ['2001:db8::5', '2001:DB9:0::7', '2001:db9::7'],
    ['10.1.2.3', '10.2.2.2, 10.3.3.3', '10.2.2.2'],
    ['10.1.2.3', 'unknown', '10.1.2.3'],
    ['10.1.2.3', 'evil, 10.3.3.3', '10.3.3.3'],
    ['10.1.2.3', '198.51.100.1, unknown, 10.3.3.3', '10.3.3.3'], // whoever wrote what is behind it, wrote that too
    ['10.1.2.3', '', '10.1.2.3'],
    ['10.1.2.3', '0x7f.1', '10.1.2.3'],
    ['10.1.2.3', 'x[2001:db9::7]:443', '10.1.2.3'],
    ['10.1.2.3', '[2001:db9::7]:443x', '10.1.2.3'],
    ['10.1.2.3', 'x198.51.100.1:5123', '10.1.2.3'],
    ['10.1.2.3', '198.51.100.1:5123x', '10.1.2.3'],
    ['fe80::1%eth0', undefined, 'fe80::1'],
    [undefined, '198.51.100.1', undefined],
    ['a socket', '198.51.100.1', undefined],
    ['a socket', undefined, undefined],
  ])('of peer %s with X-Forwarded-For %s is %s', (peer, forwardedFor, expected) => {
    expect(callerIpReader(PROXIES)(peer, forwardedFor)).toBe(expected);
  });

  it.each([
    ...['10.0.0.0/33', 'proxy.example', '', '10.0.0.0/x', '::/129'],
    ...['10.0.0.0/', '10.0.0.0/1e1', '10.0.0.0/0x8', '/8', '10.0.0.0/8/9', '10.0.0.0/8/'],
  ])('refuses %j as a trusted proxy, and names it', (entry) => {
    for (const read of [callerIpReader, trustedProxies]) {
      expect(() => read([entry])).toThrow(new TypeError(`not an address or CIDR: ${entry}`));
    }
  });
});

it.each([
  ['10.1.2.3', true],
  ['::ffff:10.1.2.3', true],
  ['11.1.2.3', false],
  ['2001:db8::5', true],
  ['a socket', false],
])('a peer at %s is a trusted proxy: %s', (peer, expected) => {
  expect(trustedProxies(PROXIES)(peer)).toBe(expected);
});
