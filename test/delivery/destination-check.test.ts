import { describe, expect, it } from 'vitest';
import { AddressGuard, parseAddressPolicy } from '../../src/delivery/addresses/address-guard.ts';
import { checkDestination, DestinationCheck } from '../../src/delivery/addresses/destination-check.ts';
import { type ResolvedAddress, Resolver } from '../../src/delivery/addresses/resolver.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

function checkWith(
  setting: string,
  resolve: (hostname: string) => ResolvedAddress[] | Promise<ResolvedAddress[]>,
  unknownMax?: number,
) {
  const asked: string[] = [];
  const clock = new SimulatedClock();
  const guard = new AddressGuard(parseAddressPolicy(setting));
  const resolver = new Resolver(async (hostname) => {
    asked.push(hostname);
    return resolve(hostname);
  }, unknownMax);
  const check = new DestinationCheck(guard, resolver, clock, { namesMax: 2, ms: 1_000 });
  return { check, asked, clock };
}

const PUBLIC = [{ address: '93.184.216.34', family: 4 }];

describe('a literal host', () => {
  it.each([
    ['http://127.0.0.1/', 'endpoint resolves to a loopback address: 127.0.0.1'],
    ['http://2130706433/', 'endpoint resolves to a loopback address: 127.0.0.1'],
    ['http://[::1]:81/', 'endpoint resolves to a loopback address: ::1'],
    ['http://10.0.0.1/', 'endpoint resolves to a private address: 10.0.0.1'],
    ['http://169.254.169.254/', 'endpoint resolves to a metadata address: 169.254.169.254'],
    ['http://0.0.0.0/', 'endpoint resolves to an unspecified address: 0.0.0.0'],
  ])('%s is refused at publish', (url, reason) => {
    const verdict = checkDestination(new URL(url), new AddressGuard({ kind: 'deny' }));
    expect(verdict).toMatchObject({ kind: 'blocked', reason });
    expect(verdict).toHaveProperty('remedy', expect.stringContaining('WAYPOST_ALLOW_DESTINATIONS='));
  });

  it('that is public, or a name, passes without a lookup', () => {
    const guard = new AddressGuard({ kind: 'deny' });
    expect(checkDestination(new URL('http://1.1.1.1/'), guard)).toEqual({ kind: 'ok' });
    expect(checkDestination(new URL('http://name.example/'), guard)).toEqual({ kind: 'ok' });
  });
});

it('does not suggest to list an address that no list can allow', () => {
  const verdict = checkDestination(new URL('http://169.254.169.254/'), new AddressGuard({ kind: 'deny' }));
  expect(verdict).toHaveProperty('remedy', 'only WAYPOST_ALLOW_DESTINATIONS=all would allow it');
});

describe('a name', () => {
  it('for which no server responds is unresolvable after five seconds', async () => {
    const { check, clock } = checkWith('', () => new Promise(() => {}));
    const verdict = check.check(new URL('http://silent.example/'), 1, 0);
    await clock.advanceBy(5_000);
    expect(await verdict).toEqual({
      kind: 'unresolvable',
      reason: 'unable to resolve host: lookup silent.example: no response in time',
    });
  });

  it('has five seconds from the start of its lookup', async () => {
    const lookups: (() => void)[] = [];
    const { check, clock } = checkWith('', () => new Promise((resolve) => lookups.push(() => resolve(PUBLIC))), 1);
    void check.check(new URL('http://before.example/'), 1, 0);
    const verdict = check.check(new URL('http://slow.example/'), 1, 0);
    await clock.advanceBy(4_000);
    lookups[0]?.();
    await clock.advanceBy(4_000);
    lookups[1]?.();
    expect(await verdict).toEqual({ kind: 'ok' });
  });

  it('whose lookup does not start passes after five seconds, uncached', async () => {
    const { check, asked, clock } = checkWith('', () => new Promise(() => {}), 1);
    const before = check.check(new URL('http://silent.example/'), 1, 0);
    const verdict = check.check(new URL('http://good.example/'), 1, 0);
    await clock.advanceBy(5_000);
    expect(await verdict).toEqual({ kind: 'ok' });
    expect(await before).toMatchObject({ kind: 'unresolvable' });
    expect(check.check(new URL('http://good.example/'), 1, 0)).toBeInstanceOf(Promise);
    expect(asked).toEqual(['silent.example']);
  });

  it('does not wait for names of other projects', async () => {
    const { check, clock } = checkWith('', (name) => (name.includes('silent') ? new Promise(() => {}) : PUBLIC), 4);
    for (let nth = 0; nth < 1_000; nth += 1) void check.check(new URL(`http://${nth}.silent.example/`), 1, 0);
    const verdict = check.check(new URL('http://good.example/'), 2, 0);
    await clock.advanceBy(0);
    expect(await verdict).toEqual({ kind: 'ok' });
    expect(check.check(new URL('http://good.example/'), 2, 0)).toEqual({ kind: 'ok' });
  });

  it('is refused if it resolves to loopback, with the text of the hosted service', async () => {
    const { check } = checkWith('', () => [{ address: '::1', family: 6 }]);
    expect(await check.check(new URL('http://localhost:3000/'), 1, 0)).toEqual({
      kind: 'blocked',
      reason: 'endpoint resolves to a loopback address: ::1',
      remedy: 'allow it with WAYPOST_ALLOW_DESTINATIONS=localhost',
    });
  });

  it('is refused if one of its addresses is private, without showing the address', async () => {
    const { check } = checkWith('', () => [...PUBLIC, { address: '10.1.2.3', family: 4 }]);
    expect(await check.check(new URL('http://split.example/'), 1, 0)).toMatchObject({
      kind: 'blocked',
      reason: 'endpoint resolves to a private address',
    });
  });

  it('that does not exist is unresolvable', async () => {
    const { check } = checkWith('', () => {
      throw Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' });
    });
    expect(await check.check(new URL('http://nobody.example/'), 1, 0)).toEqual({
      kind: 'unresolvable',
      reason: 'unable to resolve host: lookup nobody.example: no such host',
    });
  });

  it('that was valid is resolved again only after the cache time, or when the clock was set back', async () => {
    const { check, asked } = checkWith('', () => PUBLIC);
    const url = new URL('https://good.example/hook');
    expect(await check.check(url, 1, 5_000)).toEqual({ kind: 'ok' });
    expect(check.check(url, 1, 5_999)).toEqual({ kind: 'ok' });
    expect(asked).toEqual(['good.example']);
    await check.check(url, 1, 6_000);
    await check.check(url, 1, 100);
    expect(asked.length).toBe(3);
  });

  it('that was invalid is resolved again each time', async () => {
    const { check, asked } = checkWith('', () => [{ address: '127.0.0.1', family: 4 }]);
    for (const nowMs of [0, 1, 2]) await check.check(new URL('http://bad.example/'), 1, nowMs);
    expect(asked.length).toBe(3);
  });

  it('is evicted by a newer name when the cache is full', async () => {
    const { check, asked } = checkWith('', () => PUBLIC);
    for (const name of ['a', 'b', 'c', 'b', 'c', 'a']) await check.check(new URL(`http://${name}.example/`), 1, 1);
    expect(asked.map((name) => name[0]).join('')).toBe('abca');
  });

  it('is not resolved if every destination is allowed', () => {
    const { check, asked } = checkWith('all', () => []);
    expect(check.check(new URL('http://anything.example/'), 1, 0)).toEqual({ kind: 'ok' });
    expect(asked).toEqual([]);
  });
});
