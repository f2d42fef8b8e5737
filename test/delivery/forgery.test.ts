/** Server-side request forgery: no connection is ever opened to a refused address. */
import { lookup } from 'node:dns/promises';
import { describe, expect, it } from 'vitest';
import { AddressGuard } from '../../src/delivery/addresses/address-guard.ts';
import { type ResolvedAddress, Resolver } from '../../src/delivery/addresses/resolver.ts';
import { BlockedAddress, createConnector } from '../../src/delivery/connector.ts';
import { claimOf, openDelivery, reasonOf, startEndpoint, startTcp, untouched } from './support.ts';

const DENY = { kind: 'deny' } as const;

function v4(address: string): ResolvedAddress {
  return { address, family: 4 };
}

/** A resolver that returns the results in order, and the last one for every later call. */
function resolverWith(...results: ResolvedAddress[][]) {
  let calls = 0;
  return {
    resolver: new Resolver(async () => results[Math.min(calls++, results.length - 1)] ?? []),
    calls: () => calls,
  };
}

describe('a literal host', () => {
  it.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '127.0.0.1.',
    '0.0.0.0',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:ffff:7f00:0001]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '１２７.０.０.１',
  ])('%s reaches nothing on this machine', async (host) => {
    const canary = await startTcp();
    const delivery = openDelivery({ addresses: DENY });
    const outcome = await delivery.attempt(claimOf(`http://${host}:${canary.port}/`), untouched());
    expect(outcome).toMatchObject({ kind: 'unreachable', reason: 'blocked' });
    expect(canary.state.connections).toBe(0);
  });

  it('[::1] reaches nothing on this machine', async () => {
    const canary = await startTcp(undefined, '::1');
    const outcome = await openDelivery({ addresses: DENY }).attempt(
      claimOf(`http://[::1]:${canary.port}/`),
      untouched(),
    );
    expect(reasonOf(outcome)).toBe('blocked');
    expect(canary.state.connections).toBe(0);
  });

  it('of a metadata service is refused even if loopback is allowed, and the text names class and setting', async () => {
    const delivery = openDelivery();
    for (const host of ['169.254.169.254', '[fd00:ec2::254]', '[::ffff:a9fe:a9fe]']) {
      const outcome = await delivery.attempt(claimOf(`http://${host}/latest`), untouched());
      expect(outcome).toEqual({
        kind: 'unreachable',
        reason: 'blocked',
        error:
          'destination refused: endpoint resolves to a metadata address, which WAYPOST_ALLOW_DESTINATIONS does not allow',
      });
    }
  });
});

describe('a name', () => {
  it.each([
    ['to loopback', [v4('127.0.0.1')]],
    ['to IPv6 loopback', [{ address: '::1', family: 6 }]],
    ['to a mapped address', [{ address: '::ffff:127.0.0.1', family: 6 }]],
    ['to a good and a bad address', [v4('93.184.216.34'), v4('127.0.0.1')]],
    ['to a bad and a good address', [v4('127.0.0.1'), v4('93.184.216.34')]],
    ['to nonsense', [v4('127.0.0.1; drop')]],
  ])('that resolves %s reaches nothing', async (_what, addresses) => {
    const canary = await startTcp();
    const delivery = openDelivery({ addresses: DENY, resolver: new Resolver(async () => addresses) });
    const outcome = await delivery.attempt(claimOf(`http://rebind.example:${canary.port}/`), untouched());
    expect(outcome).toMatchObject({ reason: 'blocked' });
    if (outcome.kind === 'unreachable') expect(outcome.error).not.toMatch(/127|::1/);
    expect(canary.state.connections).toBe(0);
  });

  it('is resolved once per connection: the checked address is the connected one', async () => {
    const endpoint = await startEndpoint();
    const { resolver, calls } = resolverWith([v4('127.0.0.1')], [v4('169.254.169.254')]);
    const delivery = openDelivery({ resolver });
    const claimed = claimOf(`http://rebind.example:${endpoint.port}/`);
    expect(await delivery.attempt(claimed, untouched())).toMatchObject({ status: 200 });
    expect(calls()).toBe(1);
    // The kept connection still has its allowed address; a new connection is checked with the new result.
    expect(await delivery.attempt(claimed, untouched())).toMatchObject({ status: 200 });
    expect(calls()).toBe(1);
    endpoint.server.closeAllConnections();
    await expect.poll(() => delivery.stats().connections).toBe(0);
    expect(await delivery.attempt(claimed, untouched())).toMatchObject({ reason: 'blocked' });
    expect(endpoint.received.length).toBe(2);
  });

  it('that is localhost is refused by the addresses that it resolves to', async () => {
    const canary = await startTcp();
    expect(['127.0.0.1', '::1']).toContain((await lookup('localhost')).address);
    const outcome = await openDelivery({ addresses: DENY }).attempt(
      claimOf(`http://localhost:${canary.port}/`),
      untouched(),
    );
    expect(reasonOf(outcome)).toBe('blocked');
    expect(canary.state.connections).toBe(0);
  });

  it('on the allow-list may be private', async () => {
    const endpoint = await startEndpoint();
    const delivery = openDelivery({
      addresses: { kind: 'allow', loopback: false, hosts: ['hook.internal'], cidrs: [] },
      resolver: new Resolver(async () => [v4('127.0.0.1')]),
    });
    expect(await delivery.attempt(claimOf(`http://hook.internal:${endpoint.port}/`), untouched())).toMatchObject({
      status: 200,
    });
    expect(await delivery.attempt(claimOf(`http://other.internal:${endpoint.port}/`), untouched())).toMatchObject({
      reason: 'blocked',
    });
    expect(endpoint.received.map((one) => one.headers.host)).toEqual([`hook.internal:${endpoint.port}`]);
  });

  it('is resolved once for many connections at the same time', async () => {
    const endpoint = await startEndpoint();
    const { resolver, calls } = resolverWith([v4('127.0.0.1')]);
    const delivery = openDelivery({ resolver });
    const claimed = claimOf(`http://many.example:${endpoint.port}/`);
    await Promise.all(Array.from({ length: 8 }, () => delivery.attempt(claimed, untouched())));
    expect(delivery.stats().connections).toBe(8);
    expect(calls()).toBe(1);
  });
});

it('checks the address that a socket is connected to', async () => {
  const endpoint = await startTcp();
  // A guard that is asked about names first and then changes its mind, as if the lookup had been bypassed.
  const guard = new AddressGuard(DENY);
  let asked = 0;
  guard.blockedClass = () => (++asked === 1 ? undefined : 'loopback');
  const connect = createConnector(guard, new Resolver(async () => []), true);
  const error = await new Promise((resolve) => {
    const port = String(endpoint.port);
    connect({ hostname: '127.0.0.1', host: '127.0.0.1', protocol: 'http:', port, projectId: 1 }, resolve);
  });
  expect(error).toBeInstanceOf(BlockedAddress);
  expect(asked).toBe(2);
});
