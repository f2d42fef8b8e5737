/** The engine's commands over a real store in memory, with time and network simulated. */

import { describe, expect, onTestFinished, test } from 'vitest';
import type { Engine } from '../../src/engine/commands.ts';
import { createEngine } from '../../src/engine/create.ts';
import type { EngineDeps } from '../../src/engine/deps.ts';
import type { PublishCommand, Published } from '../../src/engine/messages/publish-command.ts';
import type { LogState } from '../../src/engine/model.ts';
import type { Clock } from '../../src/engine/ports.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { DatabaseClock } from '../../src/engine/workers/database-clock.ts';
import { SteadyClock } from '../../src/engine/workers/steady-clock.ts';
import { Overloaded } from '../../src/protocol/rate-limits.ts';
import type { Store } from '../../src/store/store.ts';
import { openDatabase, storeOver } from '../simulation/database.ts';
import { World } from '../store/conformance/world.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SILENT } from '../support/silent-log.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { SimulatedNetwork } from '../support/simulated-network.ts';
import { NOW_MS } from './fixtures.ts';

const PROJECT = 1;
const ORIGIN = 'https://a.example';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const SETTINGS: EngineSettings = {
  ...ENGINE_SETTINGS,
  logRetentionMs: DAY_MS,
  dlqRetentionMs: 2 * DAY_MS,
  retentionIntervalMs: HOUR_MS,
};

interface Bench {
  clock: SimulatedClock;
  store: Store;
  network: SimulatedNetwork;
  engine: Engine;
}

/** An engine whose only endpoint responds with `status` after 10 ms. */
async function bench(
  options: {
    settings?: Partial<EngineSettings>;
    status?: number;
    prepare?: (store: Store) => Promise<unknown>;
    /** Other workers may use the store. */
    isShared?: boolean;
    /** If set, each check of the elapsed time takes a millisecond. */
    onTurn?: (world: Omit<Bench, 'engine'>) => unknown;
  } = {},
): Promise<Bench> {
  const driver = await openDatabase();
  const store = storeOver(driver);
  onTestFinished(async () => {
    await store.close(); // after the pending writes
    await driver.close();
  });
  await options.prepare?.(store);
  const clock = new SimulatedClock(NOW_MS);
  const network = new SimulatedNetwork(clock, { travelMs: () => 0, timeoutMs: 60_000 });
  network.setEndpoint(ORIGIN, () => ({ kind: 'answer', status: options.status ?? 200, afterMs: 10 }));
  const settings = { ...SETTINGS, ...options.settings };
  const randomness = new SeededRandom(1);
  const world = { clock, store, network };
  const deps = { store, clock, randomness, delivery: network.connect(), log: SILENT, settings, worker: 'worker-1' };
  const { onTurn } = options;
  const slow = onTurn && { clock: slowed(clock), endOfTurn: async () => void (await onTurn(world)) };
  return { ...world, engine: await createEngine({ ...deps, ...slow, ...(options.isShared && sharing(world)) }) };
}

function sharing({ clock: machine, store }: Pick<Bench, 'clock' | 'store'>): Pick<EngineDeps, 'clock' | 'recovery'> {
  const { heartbeat } = store.workers;
  store.workers.heartbeat = async (state) => ({ ...(await heartbeat(state)), wallMs: machine.wallMs() });
  const clock = new DatabaseClock(machine);
  return { clock, recovery: { kind: 'heartbeat', clock, timeoutMs: 15_000 } };
}

function slowed(clock: SimulatedClock): Clock {
  let elapsedMs = 0;
  return {
    nowMs: () => clock.nowMs(),
    wallMs: () => clock.wallMs(),
    leadMs: 0,
    onJump: (listener) => clock.onJump(listener),
    get elapsedMs() {
      elapsedMs += 1;
      return elapsedMs;
    },
    startTimer: (delayMs, task) => clock.startTimer(delayMs, task),
  };
}

function command(changes: Partial<PublishCommand['options']> = {}): PublishCommand {
  const settings = { dialect: 'upstash' as const, maxRetries: 0 };
  const options = { method: 'POST' as const, header: {}, explicitHeader: {}, settings, ...changes };
  return { url: `${ORIGIN}/hook`, body: new Uint8Array(), options };
}

/** Publishes a message that must not be refused. */
async function publish(engine: Engine, commands: PublishCommand[]): Promise<Published[]> {
  const outcomes = await engine.publish(PROJECT, commands);
  return outcomes.filter((outcome) => outcome !== 'tooManyQueues');
}

async function statesOf({ engine }: Bench, id: string): Promise<LogState[]> {
  const page = await engine
    .storeOf(PROJECT)
    .logs.listLogs({ filter: { messageId: [id] }, page: { count: 100, order: 'earliestFirst' } });
  return page.items.map(({ state }) => state);
}

describe('publishing', () => {
  test('responds once the message is saved, in the given order', async () => {
    const { engine, store } = await bench();
    const published = await publish(engine, [command(), command({ delayMs: 1_000 }), command()]);
    const saved = await Promise.all(
      published.map(({ messageId }) =>
        store.messages.find({ projectId: PROJECT, id: messageId, deliveredSinceMs: NOW_MS }),
      ),
    );
    expect(saved.map((message) => message?.notBeforeMs)).toEqual([NOW_MS, NOW_MS + 1_000, NOW_MS]);
    const keys = saved.map((message) => message?.key ?? 0);
    expect(keys).toEqual(keys.toSorted((a, b) => a - b));
    expect(published.every(({ deduplicated }) => !deduplicated)).toBe(true);
  });

  test('keeps the date of a client, however long the machine takes', async () => {
    const { store, network, ...world } = await bench();
    let wallMs = NOW_MS;
    const clock = new SteadyClock({
      ...{ wallMs: () => wallMs++, elapsedMs: 0 },
      startTimer: (delayMs, task) => world.clock.startTimer(delayMs, task),
    });
    const deps = { store, clock, randomness: new SeededRandom(2), delivery: network.connect(), log: SILENT };
    const engine = await createEngine({ ...deps, settings: SETTINGS, worker: 'slow' });
    const [{ messageId = '' } = {}] = await publish(engine, [command({ notBeforeMs: NOW_MS + HOUR_MS })]);
    expect(
      (await store.messages.find({ projectId: PROJECT, id: messageId, deliveredSinceMs: NOW_MS }))?.notBeforeMs,
    ).toBe(NOW_MS + HOUR_MS);
  });

  test('a past time means at once', async () => {
    const { engine, network } = await bench();
    await publish(engine, [command({ notBeforeMs: NOW_MS - 1 })]);
    expect(network.attempts.length).toBe(1);
  });

  test('a duplicate gets a response although the state of the first message cannot be read', async () => {
    const { engine, store } = await bench();
    const twin = command({ deduplication: { by: 'id', id: 'x' } });
    const [first] = await publish(engine, [twin]);
    store.logs.listLogs = async () => {
      throw new StoreUnavailable('the database is away');
    };
    const [second] = await publish(engine, [twin]);
    expect(second).toEqual({ messageId: first?.messageId, url: twin.url, deduplicated: true });
  });

  test('duplicates in one batch are one message, and the slot of the second one is free again', async () => {
    const { engine, network, clock } = await bench({ settings: { inFlightMax: 6 } });
    const twin = command({ deduplication: { by: 'id', id: 'x' } });
    const [first, second] = await publish(engine, [twin, twin]);
    expect(second).toEqual({ messageId: first?.messageId, url: twin.url, deduplicated: true });
    await publish(engine, [command()]);
    expect(network.attempts.length).toBe(2);
    await clock.advanceBy(1_000);
    expect(network.attempts.length).toBe(2);
  });

  test('P14: a message that waits because its project is at its limit of silent endpoints is explained', async () => {
    const { engine, network, clock } = await bench({ settings: { inFlightMax: 4, inFlightPerOriginMax: 1 } });
    network.setEndpoint(ORIGIN, () => ({ kind: 'silence' }));
    const silent = ['https://b.example', 'https://c.example'].map((origin) => ({
      ...command(),
      url: `${origin}/hook`,
    }));
    for (const { url } of silent) network.setEndpoint(new URL(url).origin, () => ({ kind: 'silence' }));
    const published = await publish(engine, [command(), ...silent, command()]);
    await clock.advanceBy(100);
    const reasons = await Promise.all(
      published.map(async ({ messageId }) => (await engine.explainMessage(PROJECT, messageId))?.reason),
    );
    expect(reasons).toEqual(['attempting', 'attempting', 'endpoint_unproven', 'endpoint_busy']);
  });

  describe('while nothing is saved, a publish', () => {
    async function standingStill(): Promise<Bench> {
      const world = await bench();
      const { accept } = world.store.messages;
      world.store.messages.accept = () => new Promise(() => {});
      for (let nth = 0; nth < 200; nth += 1) void publish(world.engine, [command()]);
      await world.clock.advanceBy(2 * SETTINGS.publishDelayTargetMs);
      world.store.messages.accept = accept;
      return world;
    }

    test('is refused, with the time of the next try', async () => {
      const { engine } = await standingStill();
      await expect(publish(engine, [command()])).rejects.toBeInstanceOf(Overloaded);
    });

    test('is accepted if another project sends it', async () => {
      const { engine } = await standingStill();
      await expect(engine.publish(PROJECT + 1, [command()])).resolves.toHaveLength(1);
    });

    test('is accepted if it continues a run, with everything that follows', async () => {
      const { engine } = await standingStill();
      const append = { kind: 'append' as const, runId: 'wfr_none', callType: 'step' as const, features: [] };
      // Everything but the missing run is as usual.
      await expect(publish(engine, [command(), command({ run: append })])).rejects.toThrow('cancelled workflow');
    });
  });
});

describe('reading a message', () => {
  test('works for a while after its delivery, and then no more', async () => {
    const { engine, clock } = await bench();
    const [published] = await publish(engine, [command()]);
    const id = published?.messageId ?? '';
    await clock.advanceBy(5_000);
    expect((await engine.findMessage(PROJECT, id))?.id).toBe(id);
    await clock.advanceBy(20);
    expect(await engine.findMessage(PROJECT, id)).toBeUndefined();
  });
});

describe('cancelling in bulk', () => {
  const labelled = (label: string) =>
    command({ delayMs: HOUR_MS, settings: { dialect: 'upstash', maxRetries: 0, labels: [label] } });

  test('cancels up to its count, or all that match, however many, and nothing else', async () => {
    const { engine, clock, network } = await bench();
    for (let batch = 0; batch < 12; batch += 1) {
      await engine.publish(
        PROJECT,
        Array.from({ length: 100 }, () => labelled('red')),
      );
    }
    await publish(engine, [labelled('green')]);
    await expect(engine.cancelMatching(PROJECT, { label: ['red'] }, 600)).resolves.toBe(600);
    await expect(engine.cancelMatching(PROJECT, { label: ['red'] })).resolves.toBe(600);
    await expect(engine.cancelMatching(PROJECT, { label: ['red'] })).resolves.toBe(0);
    await clock.advanceBy(2 * HOUR_MS);
    expect(network.attempts.length).toBe(1);
  });
});

describe('retrying from the DLQ', () => {
  async function withDead(count: number): Promise<Bench & { dlqIds: string[] }> {
    const world = await bench({ status: 500 });
    await world.engine.publish(
      PROJECT,
      Array.from({ length: count }, () => command()),
    );
    await world.clock.advanceBy(1_000);
    const page = await world.engine
      .storeOf(PROJECT)
      .dead.listDead({ filter: {}, page: { count: 100, order: 'earliestFirst' } });
    return { ...world, dlqIds: page.items.map(({ dlqId }) => dlqId) };
  }

  test('retries more entries than fit into one transaction, and none when one of them never existed', async () => {
    const { engine, dlqIds } = await withDead(40);
    const left = async () =>
      (await engine.storeOf(PROJECT).dead.listDead({ filter: {}, page: { count: 100, order: 'latestFirst' } })).items
        .length;
    await expect(engine.retryDead(PROJECT, [...dlqIds, '1-1'])).resolves.toBeUndefined();
    expect(await left()).toBe(40);
    const ids = (await engine.retryDead(PROJECT, dlqIds)) ?? [];
    expect(new Set(ids).size).toBe(40);
    expect(await left()).toBe(0);
  });

  test('retries all entries that still exist when one is removed after the first were retried', async () => {
    const { engine, dlqIds } = await withDead(40);
    const { dead } = engine.storeOf(PROJECT);
    const [ids] = await Promise.all([engine.retryDead(PROJECT, dlqIds), dead.deleteDead({ dlqIds: dlqIds.slice(-1) })]);
    expect(ids?.length).toBe(39);
    expect((await dead.listDead({ filter: {}, page: { count: 100, order: 'latestFirst' } })).items).toEqual([]);
  });

  test('retries an entry that is named twice once', async () => {
    const { engine, dlqIds } = await withDead(1);
    const ids = await engine.retryDead(PROJECT, [...dlqIds, ...dlqIds]);
    expect(ids?.length).toBe(1);
  });
});

describe('a shutdown', () => {
  test('refuses new messages, saves none of them, and ends once', async () => {
    const { engine, clock, network } = await bench();
    const drained = engine.drain(1_000);
    expect(engine.drain(5_000)).toBe(drained);
    await expect(publish(engine, [command()])).rejects.toMatchObject({ code: 'unavailable' });
    await clock.advanceBy(10);
    await drained;
    expect(network.attempts).toEqual([]);
    expect(
      (await engine.storeOf(PROJECT).logs.listLogs({ filter: {}, page: { count: 10, order: 'latestFirst' } })).items,
    ).toEqual([]);
  });

  test('completes a message that was accepted just before it', async () => {
    const world = await bench();
    const publishing = publish(world.engine, [command()]);
    await Promise.resolve();
    const [published] = await publishing;
    const drained = world.engine.drain(10_000);
    await world.clock.advanceBy(100);
    await drained;
    expect(await statesOf(world, published?.messageId ?? '')).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  });
});

describe('a publish of many messages', () => {
  const MANY = 60;
  const settings = { inFlightMax: 1_000, inFlightPerOriginMax: 1_000 };
  const many = (): PublishCommand[] => Array.from({ length: MANY }, () => command());

  test('lets others run while its messages are drafted, get their slots and are started', async () => {
    const sentAtTurns: number[] = [];
    const { engine, network } = await bench({
      settings,
      onTurn: (world) => sentAtTurns.push(world.network.attempts.length),
    });
    await publish(engine, many());
    expect(network.attempts).toHaveLength(MANY);
    const portions = [...sentAtTurns, MANY].map((sent, turn) => sent - (sentAtTurns[turn - 1] ?? 0));
    expect(Math.max(...portions)).toBeLessThanOrEqual(5);
    // The same number of slices again, until all were drafted and had their slots.
    expect(sentAtTurns.filter((sent) => sent === 0).length).toBeGreaterThanOrEqual(2 * (MANY / 5));
  });

  test('is completed, each message once, when the server is drained while they are started', async () => {
    let drained: Promise<void> | undefined;
    let sentUntilDrained = 0;
    const world = await bench({
      settings,
      onTurn: ({ network }) => {
        if (network.attempts.length === 0) return;
        drained ??= world.engine.drain(10_000).then(() => {
          sentUntilDrained = network.attempts.length;
        });
      },
    });
    const published = await publish(world.engine, many());
    await world.clock.advanceBy(10);
    await drained;
    expect(sentUntilDrained).toBe(MANY);
    expect(world.network.attempts.map(({ messageId }) => messageId)).toEqual(
      published.map(({ messageId }) => messageId),
    );
    expect(await world.store.messages.releaseAll({ nowMs: NOW_MS })).toBe(0);
  });

  test('is released, as far as it is not sent yet, when the limit of a shutdown passes while messages are started', async () => {
    let drained: Promise<void> | undefined;
    const world = await bench({
      settings,
      onTurn: ({ network, clock }) => {
        if (network.attempts.length === 0 || drained !== undefined) return;
        drained = world.engine.drain(0);
        return clock.advanceBy(0);
      },
    });
    const published = await publish(world.engine, many());
    await world.clock.advanceBy(10);
    await drained;
    expect(world.network.attempts.length).toBeLessThan(MANY);
    expect(await world.store.messages.releaseAll({ nowMs: NOW_MS })).toBe(0);
    const left = published.map(({ messageId }) =>
      world.store.messages.findLive({ projectId: PROJECT, id: messageId, nowMs: NOW_MS }),
    );
    expect((await Promise.all(left)).map((live) => live?.message.id)).toEqual(
      published.map(({ messageId }) => messageId),
    );
  });
});

describe('P13: retention', () => {
  test('drops logs and dead messages when their time has passed, not before', async () => {
    const { engine, clock } = await bench({ status: 500 });
    await publish(engine, [command()]);
    const counts = async () => {
      const page = { count: 10, order: 'latestFirst' as const };
      const [logs, dead] = [
        await engine.storeOf(PROJECT).logs.listLogs({ filter: {}, page }),
        await engine.storeOf(PROJECT).dead.listDead({ filter: {}, page }),
      ];
      return [logs.items.length, dead.items.length];
    };
    await clock.advanceBy(DAY_MS);
    expect(await counts()).toEqual([4, 1]);
    await clock.advanceBy(2 * HOUR_MS);
    expect(await counts()).toEqual([0, 1]);
    await clock.advanceBy(DAY_MS);
    expect(await counts()).toEqual([0, 0]);
  });

  test('finishes the deletion of a queue that a crash has interrupted as soon as it starts', async () => {
    const left: string[] = [];
    const prepare = async (store: Store) => {
      const world = await World.open(async () => store);
      for (let index = 0; index < 3; index += 1) {
        left.push((await world.accept({ settings: { queueName: 'line' }, createdAtMs: NOW_MS })).id);
      }
      await store.queues.deleteQueue({ projectId: PROJECT, name: 'line', nowMs: NOW_MS }); // and then the process is killed
    };
    const world = await bench({ prepare });
    await world.clock.advanceBy(1);
    const cancelled = ['CREATED', 'CANCEL_REQUESTED', 'CANCELED'];
    expect(await Promise.all(left.map((id) => statesOf(world, id)))).toEqual([cancelled, cancelled, cancelled]);
    expect(world.network.attempts).toEqual([]);
  });

  test('continues in the next round when the store refuses', async () => {
    const { engine, clock, store } = await bench();
    await publish(engine, [command()]);
    const dropExpired = store.retention.dropExpired.bind(store);
    let refused = 0;
    store.retention.dropExpired = async (limits) => {
      refused += 1;
      if (refused <= 31) throw new StoreUnavailable('the disk is full');
      return await dropExpired(limits);
    };
    await clock.advanceBy(30 * HOUR_MS);
    expect(
      (await engine.storeOf(PROJECT).logs.listLogs({ filter: {}, page: { count: 10, order: 'latestFirst' } })).items
        .length,
    ).toBe(3);
    await clock.advanceBy(2 * HOUR_MS);
    expect(
      (await engine.storeOf(PROJECT).logs.listLogs({ filter: {}, page: { count: 10, order: 'latestFirst' } })).items,
    ).toEqual([]);
  });
});

test.each([
  ['messages', {}],
  [
    'runs',
    {
      run: {
        kind: 'start' as const,
        features: [],
        isInvoke: false,
        isBySdk: false,
        isUnknownSdk: false,
        isRest: false,
      },
    },
  ],
])('reports that it cannot save while the store refuses %s, although a small write succeeds', async (_, options) => {
  const { engine, store } = await bench();
  await engine.ping();
  const accept = store.messages.accept.bind(store);
  store.messages.accept = () => Promise.reject(new StoreUnavailable('could not extend file: No space left on device'));
  const publishing = publish(engine, [command(options)]);
  await expect(publishing).rejects.toThrow(StoreUnavailable);
  await store.ping();
  await expect(engine.ping()).rejects.toThrow(StoreUnavailable);
  store.messages.accept = accept;
  for (let message = 0; message < 10; message += 1) await publish(engine, [command()]);
  await engine.ping();
});

test.each([
  { workers: 'its only worker', isShared: false, withinMs: 100 },
  { workers: 'one of several workers, with a heartbeat', isShared: true, withinMs: 5_100 },
])('more backlogs than are read at a time are served by $workers', async ({ isShared, withinMs }) => {
  const askedFor: number[] = [];
  const origins = Array.from({ length: 2_100 }, (_, index) => `https://${index}.example`);
  const { clock, network } = await bench({
    ...{ settings: { inFlightMax: 10_000 }, isShared },
    prepare: async (store) => {
      const world = await World.open(async () => store);
      const state = { kind: 'origin', dueAtMs: NOW_MS } as const;
      await store.messages.accept({ messages: origins.map((url) => world.message({ url, state })), nowMs: NOW_MS });
      const { waitingBacklogs } = store.messages;
      store.messages.waitingBacklogs = (piece) => {
        askedFor.push(piece.limit);
        return waitingBacklogs(piece);
      };
    },
  });
  for (const origin of origins) network.setEndpoint(origin, () => ({ kind: 'answer', status: 200, afterMs: 10 }));
  await clock.advanceBy(withinMs);
  expect(new Set(network.attempts.map(({ origin }) => origin)).size).toBe(origins.length);
  expect(Math.max(...askedFor)).toBeLessThanOrEqual(2_000);
});

test('a wait that was registered before a restart reaches its deadline after it', async () => {
  const first = await bench();
  const { engine, store, clock, network } = first;
  const start = { kind: 'start' as const, features: [], isInvoke: false, isBySdk: false, isUnknownSdk: false };
  await publish(engine, [command({ run: { ...start, isRest: false, runId: 'wfr_a' } })]);
  const settings = { dialect: 'upstash' as const, maxRetries: 0 };
  const result = { url: `${ORIGIN}/hook`, header: {}, settings };
  const step = new TextEncoder().encode('{"stepId":1,"stepType":"Wait"}');
  await engine.wait(PROJECT, {
    ...{ runId: 'wfr_a', eventId: 'e', timeout: '1m', timeoutMs: 60_000, step, stepId: 1, features: [] },
    ...{ notified: result, timedOut: result, headers: {}, timeoutHeaders: {} },
  });
  await clock.advanceBy(30);
  await engine.drain(0);
  const randomness = new SeededRandom(2);
  const delivery = network.connect();
  await createEngine({ store, clock, randomness, delivery, log: SILENT, settings: SETTINGS, worker: 'worker-2' });
  const before = network.attempts.length;
  await clock.advanceBy(60_000);
  expect(network.attempts.length).toBe(before + 1);
});
