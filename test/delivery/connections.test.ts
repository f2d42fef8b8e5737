/** Connections, origins and shutdown: what is kept, and that it is released. */
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { Resolver } from '../../src/delivery/addresses/resolver.ts';
import { ResponseBody } from '../../src/delivery/responses/response-body.ts';
import { ResponseMemory } from '../../src/delivery/responses/response-memory.ts';
import type { Clock } from '../../src/engine/ports.ts';
import { endOfTurn } from '../../src/system/system.ts';
import { claimOf, openDelivery, realClock, reasonOf, startEndpoint, startTcp, untouched } from './support.ts';

const resolver = new Resolver(async () => [{ address: '127.0.0.1', family: 4 }]);

describe('origins', () => {
  it('beyond the maximum lose their idle connections, least recently used first', async () => {
    const endpoint = await startEndpoint();
    const delivery = openDelivery({ resolver, originsMax: 10 });
    const urlOf = (nth: number) => `http://h${nth}.example:${endpoint.port}/`;
    for (let nth = 0; nth < 10; nth += 1) await delivery.attempt(claimOf(urlOf(nth)), untouched());
    await delivery.attempt(claimOf(urlOf(0)), untouched());
    let opened = 0;
    endpoint.server.on('connection', () => {
      opened += 1;
    });
    await delivery.attempt(claimOf(urlOf(10)), untouched());
    expect(delivery.stats()).toMatchObject({ origins: 10, connections: 10 });
    await delivery.attempt(claimOf(urlOf(0)), untouched()); // used of late: kept
    await delivery.attempt(claimOf(urlOf(1)), untouched()); // the oldest: had to go
    expect(opened).toBe(2);
  });

  it('that all fail leave no pool behind', async () => {
    const delivery = openDelivery({
      resolver: new Resolver(async () => Promise.reject(Object.assign(new Error(), { code: 'ENOTFOUND' }))),
    });
    const outcomes = await Promise.all(
      Array.from({ length: 500 }, (_, nth) => delivery.attempt(claimOf(`http://h${nth}.example/`), untouched())),
    );
    expect(new Set(outcomes.map(reasonOf))).toEqual(new Set(['dns']));
    expect(delivery.stats()).toEqual({ origins: 0, connections: 0, waiting: 0, inFlight: 0, resent: 0 });
  });

  it('with attempts in flight are not closed for a new origin', async () => {
    const silent = await startTcp();
    const endpoint = await startEndpoint();
    const delivery = openDelivery({ resolver, originsMax: 1, timeoutMsMax: 300 });
    const stuck = delivery.attempt(claimOf(`http://silent.example:${silent.port}/`), untouched());
    for (const name of ['a', 'b', 'c']) {
      expect(await delivery.attempt(claimOf(`http://${name}.example:${endpoint.port}/`), untouched())).toMatchObject({
        status: 200,
      });
    }
    expect(reasonOf(await stuck)).toBe('timeout');
  });
});

it('serves waiting attempts even if all attempts before them fail at once', async () => {
  const endpoint = await startEndpoint();
  const delivery = openDelivery({ connectionsPerOriginMax: 1, timeoutMsMax: 60_000 });
  const bad = { header: { Expect: ['x'] } };
  const outcomes = await Promise.all(
    Array.from({ length: 5_001 }, (_, nth) => {
      const good = nth % 5_000 === 0;
      return delivery.attempt(claimOf(endpoint.origin, good ? {} : bad), untouched());
    }),
  );
  expect([outcomes[0], outcomes[1], outcomes[5_000]].map((outcome) => outcome && reasonOf(outcome))).toEqual([
    'responded',
    'unsendable',
    'responded',
  ]);
  expect(delivery.stats()).toMatchObject({ waiting: 0, inFlight: 0 });
});

describe('an attempt', () => {
  it('ends at its own timeout, or at the maximum if that is shorter', async () => {
    const silent = await startTcp();
    const delays: number[] = [];
    const startTimer: Clock['startTimer'] = (delayMs, task) => {
      delays.push(delayMs);
      return realClock.startTimer(1, task);
    };
    const clock = { ...realClock, startTimer };
    const delivery = openDelivery({ clock, timeoutMsMax: 900 });
    for (const settings of [{}, { timeoutMs: 70 }, { timeoutMs: 5_000 }]) {
      await delivery.attempt(claimOf(silent.origin, { settings }), untouched());
    }
    expect(delays).toEqual([900, 70, 900]);
  });

  it('is interrupted by its signal, whether connected or waiting, and closes its connection', async () => {
    const silent = await startTcp((socket) => socket.resume());
    const delivery = openDelivery({ connectionsPerOriginMax: 2 });
    const stop = new AbortController();
    const attempts = Array.from({ length: 5 }, () => delivery.attempt(claimOf(silent.origin), stop.signal));
    await expect.poll(() => silent.sockets.size).toBe(2);
    stop.abort();
    expect((await Promise.all(attempts)).map(reasonOf)).toEqual(attempts.map(() => 'interrupted'));
    expect(delivery.stats()).toMatchObject({ inFlight: 0, connections: 0, waiting: 0 });
    await expect.poll(() => silent.sockets.size).toBe(0);
    expect(await delivery.attempt(claimOf(silent.origin), stop.signal)).toEqual({ kind: 'interrupted' });
  });

  it('is interrupted only by its own signal', async () => {
    const endpoint = await startEndpoint((response) => setTimeout(() => response.end(), 50));
    const delivery = openDelivery();
    const stop = new AbortController();
    const cut = delivery.attempt(claimOf(endpoint.origin), stop.signal);
    const other = delivery.attempt(claimOf(endpoint.origin), untouched());
    stop.abort();
    expect([reasonOf(await cut), reasonOf(await other)]).toEqual(['interrupted', 'responded']);
  });

  it('that times out while it waits is removed from the queue', async () => {
    const silent = await startTcp();
    const delivery = openDelivery({ connectionsPerOriginMax: 1, timeoutMsMax: 500 });
    const first = delivery.attempt(claimOf(silent.origin), untouched());
    const second = delivery.attempt(claimOf(silent.origin, { settings: { timeoutMs: 30 } }), untouched());
    expect(delivery.stats().waiting).toBe(1);
    expect(reasonOf(await second)).toBe('timeout');
    expect(delivery.stats()).toMatchObject({ waiting: 0, inFlight: 1, connections: 1 });
    expect(reasonOf(await first)).toBe('timeout');
  });

  it('that times out before the lookup of its name starts is not looked up', async () => {
    const resolved: string[] = [];
    const lookups: (() => void)[] = [];
    const slow = new Resolver((hostname) => {
      resolved.push(hostname);
      return new Promise((resolve) => lookups.push(() => resolve([{ address: '127.0.0.1', family: 4 }])));
    }, 1);
    const endpoint = await startEndpoint();
    const delivery = openDelivery({ resolver: slow });
    const attempt = (name: string, settings = {}) =>
      delivery.attempt(claimOf(`http://${name}.example:${endpoint.port}/`, { settings }), untouched());
    const first = attempt('first');
    expect(reasonOf(await attempt('late', { timeoutMs: 20 }))).toBe('timeout');
    const last = attempt('last');
    for (let turns = 0; turns < 2; turns += 1) await endOfTurn(); // Node closes the socket of the late one after the first
    lookups.shift()?.();
    expect(await first).toMatchObject({ kind: 'responded' });
    lookups.shift()?.();
    expect(await last).toMatchObject({ kind: 'responded' });
    expect(resolved).toEqual(['first.example', 'last.example']);
  });

  it('counts a lookup for its own project, also on a connection that another project has used', async () => {
    const projects: [string, number][] = [];
    const noting = new Resolver(async () => [{ address: '127.0.0.1', family: 4 }]);
    const request = noting.request.bind(noting);
    noting.request = (hostname, projectId) => {
      projects.push([hostname, projectId]);
      return request(hostname, projectId);
    };
    const endpoint = await startEndpoint((response) => response.setHeader('connection', 'close').end('ok'));
    const delivery = openDelivery({ resolver: noting, connectionsPerOriginMax: 1 });
    const attempt = (projectId: number) =>
      delivery.attempt(claimOf(`http://a.example:${endpoint.port}/`, { projectId }), untouched());
    await Promise.all([attempt(3), attempt(4)]);
    expect(projects).toEqual([
      ['a.example', 3],
      ['a.example', 4],
    ]);
  });

  it('that times out while it connects closes its socket', async () => {
    const lookups: (() => void)[] = [];
    const canary = await startTcp();
    const delivery = openDelivery({
      timeoutMsMax: 30,
      resolver: new Resolver(
        () => new Promise((resolve) => lookups.push(() => resolve([{ address: '127.0.0.1', family: 4 }]))),
      ),
    });
    const outcome = await delivery.attempt(claimOf(`http://slow.example:${canary.port}/`), untouched());
    expect(reasonOf(outcome)).toBe('timeout');
    for (const finish of lookups) finish();
    // A connection made after the late lookup arrives alone: no other was made before it.
    const probe = connect(canary.port, '127.0.0.1');
    await expect.poll(() => canary.state.connections).toBeGreaterThan(0);
    probe.destroy();
    expect(canary.state.connections).toBe(1);
  });
});

it('closing interrupts all attempts, closes every socket and makes no further attempt', async () => {
  const silent = await startTcp((socket) => socket.resume());
  const endpoint = await startEndpoint();
  const delivery = openDelivery();
  await delivery.attempt(claimOf(endpoint.origin), untouched());
  const stuck = delivery.attempt(claimOf(silent.origin), untouched());
  await delivery.close();
  expect(await stuck).toEqual({ kind: 'interrupted' });
  expect(delivery.stats()).toMatchObject({ origins: 0, connections: 0, inFlight: 0 });
  expect(await delivery.attempt(claimOf(endpoint.origin), untouched())).toEqual({ kind: 'interrupted' });
  await expect.poll(() => silent.sockets.size).toBe(0);
});

describe('the body of a response', () => {
  const PLENTY = new ResponseMemory(1_000_000);
  const chunk = (length: number) => new Uint8Array(length).fill(length);

  it.each([
    [[3, 4, 5], 100, 12, true],
    [[3, 4, 5], 12, 12, true],
    [[3, 4, 5], 11, 11, false],
    [[50], 11, 11, false],
    [Array.from({ length: 5_000 }, () => 1), 4_000, 4_000, false],
  ])('is kept up to the limit (%#)', (lengths, bytesMax, kept, complete) => {
    const body = new ResponseBody(bytesMax, true, PLENTY);
    const wanted = lengths.every((length) => body.add(chunk(length)));
    expect(wanted).toBe(complete);
    const all = lengths.flatMap((length) => [...chunk(length)]);
    expect([...body.bytes()]).toEqual(all.slice(0, kept));
  });

  it('is truncated when others fill the memory, and leaves memory for a new response', () => {
    const memory = new ResponseMemory(1_000_000);
    const grow = () => {
      const body = new ResponseBody(1_000_000, true, memory);
      for (let chunks = 0; chunks < 500 && body.add(chunk(2_000)); chunks += 1);
      return body;
    };
    const bodies = Array.from({ length: 50 }, grow);
    const lengths = bodies.map((body) => body.bytes().length);
    expect(lengths.reduce((sum, length) => sum + length)).toBeLessThan(1_000_000 + 50 * 16 * 1024);
    expect(lengths[0]).toBeLessThan(600_000);
    expect(Math.min(...lengths)).toBeGreaterThan(8_000);
    for (const body of bodies) body.release();
    expect(grow().bytes().length).toBe(lengths[0]);
  });

  it('leaves nothing to the garbage collector: outgrown and released buffers are detached', () => {
    const body = new ResponseBody(1_000_000, true, PLENTY);
    body.add(chunk(20_000));
    const outgrown = body.bytes().buffer;
    body.add(chunk(20_000));
    expect(outgrown).toMatchObject({ detached: true });
    const whole = body.bytes();
    expect(whole.buffer.byteLength).toBe(40_000);
    body.release();
    expect([whole.length, whole.buffer.byteLength]).toEqual([0, 0]);
  });

  it('is only counted if it need not be stored', () => {
    const body = new ResponseBody(5, false, PLENTY);
    expect([body.add(chunk(4)), body.add(chunk(4))]).toEqual([true, false]);
    expect(body.bytes().length).toBe(0);
  });
});
