import { describe, expect, it } from 'vitest';
import { callerIpReader } from '../../src/api/caller-ip.ts';

describe('the caller’s address (messaging 7.5, 29.48)', () => {
  const read = callerIpReader(['10.0.0.0/8', '::1', '2001:db8::/32', '192.0.2.1']);

  it.each<[string | undefined, string | undefined, string | undefined]>([
    ['203.0.113.9', undefined, '203.0.113.9'],
    ['::ffff:203.0.113.9', undefined, '203.0.113.9'],
    ['203.0.113.9', '198.51.100.1', '203.0.113.9'], // an untrusted peer may write what it likes
    ['10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', '6.6.6.6, 198.51.100.1, 10.9.9.9', '198.51.100.1'],
    ['192.0.2.1', '198.51.100.1:5123', '198.51.100.1'],
    ['::1', '[2001:db9::7]:443', '2001:db9::7'],
    ['2001:db8::5', '2001:DB9:0::7', '2001:db9::7'],
    ['10.1.2.3', '10.2.2.2, 10.3.3.3', '10.2.2.2'],
    ['10.1.2.3', 'unknown', '10.1.2.3'],
    ['10.1.2.3', 'evil, 10.3.3.3', '10.3.3.3'],
    ['10.1.2.3', '198.51.100.1, unknown, 10.3.3.3', '10.3.3.3'], // whoever wrote what is behind it, wrote that too
    ['10.1.2.3', '', '10.1.2.3'],
    ['10.1.2.3', '0x7f.1', '10.1.2.3'],
    ['fe80::1%eth0', undefined, 'fe80::1'],
    [undefined, '198.51.100.1', undefined],
  ])('of peer %s with X-Forwarded-For %s is %s', (peer, forwardedFor, expected) => {
    expect(read(peer, forwardedFor)).toBe(expected);
  });

  it.each(['10.0.0.0/33', 'proxy.example', '', '10.0.0.0/x', '::/129'])('refuses %j as a trusted proxy', (entry) => {
    expect(() => callerIpReader([entry])).toThrow(TypeError);
  });
});
