/**
 * Proves that each lock of a project is needed. Two workers race: the first stops just before its commit, while the
 * second does all that it can. With the locks, the result equals that of one worker after the other; without them it
 * does not, so these tests notice a removed lock.
 */

import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { Message, NewMessage } from '../../src/engine/model.ts';
import type { Schedule, ScheduleChange } from '../../src/engine/schedules/schedules.ts';
import type { StoreLimits } from '../../src/engine/stores.ts';
import { createStore } from '../../src/store/create.ts';
import type { Driver, Queries, Transaction } from '../../src/store/driver.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import type { Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/system.ts';
import { eventually } from '../support/eventually.ts';
import { migratedDatabase } from '../support/postgres/shared.ts';
import { appended, ending, NO_LIMITS, startRun, waiter } from './conformance/run-world.ts';
import { bytes, delivered, type MessageOptions, PROJECT, settlement, T0, World } from './conformance/world.ts';

interface Race<State, First, Second> {
  limits?: Partial<StoreLimits>;
  /** Done by the first worker, before the race. */
  prepare?: (first: World) => Promise<State>;
  first: (world: World, state: State) => Promise<First>;
  second: (world: World, state: State) => Promise<Second>;
  /** The state after both, whoever was first. */
  holds: (results: [First, Second], world: World, state: State) => boolean | Promise<boolean>;
}

type AnyRace = Race<unknown, unknown, unknown>;

/** Lets a race name its own types. */
function race<State, First, Second>(described: Race<State, First, Second>): AnyRace {
  return described as AnyRace;
}

const KEYS = { current: 'c', next: 'n' };
const IN_QUEUE = { settings: { queueName: 'q' } };
const OF_KEY = { settings: { flowControl: { key: 'k', parallelism: 1, periodS: 1 } } };
const DEDUPLICATED = { deduplication: { hash: 'h', expiresAtMs: T0 + 1_000 } };

const accept = async (world: World, newMessages: NewMessage) => (await world.save([newMessages]))[0];
const claimedNews = (world: World, options: MessageOptions = {}): NewMessage =>
  world.message({ ...options, state: { kind: 'claimed', claimToken: world.number(), worker: 'w' } });
const acceptClaimed = (options: MessageOptions) => (world: World) => accept(world, claimedNews(world, options));

type Accepted = Awaited<ReturnType<typeof accept>>;
const states = (results: Accepted[]) =>
  results.map((result) => (result?.kind === 'accepted' ? result.state : result?.kind)).toSorted();
const oneOf = (kind: string, results: readonly (Accepted | string)[]): boolean =>
  results.filter((result) => (typeof result === 'string' ? result : result?.kind) === kind).length === 1;
const makeQueue = (parallelism: number, isPaused: boolean) => async (world: World) => {
  await world.store.queues.saveQueue({ projectId: PROJECT, name: 'q', parallelism, isPaused, nowMs: T0 });
};
const claimsAll = async (world: World, ...messages: Message[]): Promise<boolean> => {
  const { claimed } = await world.claim({}, T0 + 10_000);
  const keys = new Set(claimed.map(({ message }) => message.key));
  return messages.every(({ key }) => keys.has(key));
};

/** The last message of a queue is settled, while another one is added. */
function comesToWait<State extends { next: NewMessage }>(
  prepare: (world: World) => Promise<State>,
  second: (world: World, state: State) => Promise<unknown>,
): AnyRace {
  return race({
    prepare: async (world) => {
      await makeQueue(1, false)(world);
      return { last: await world.acceptClaimed(IN_QUEUE), more: await prepare(world) };
    },
    first: ({ store }, { last }) =>
      store.messages.settle({ settlement: settlement(last.message, last.claimToken, delivered()), nowMs: T0 }),
    second: (world, { more }) => second(world, more),
    holds: (_, world, { more }) => claimsAll(world, more.next.message),
  });
}

const RACES: Record<string, AnyRace> = {
  'a deduplication id': race({
    first: (world) => accept(world, world.message(DEDUPLICATED)),
    second: (world) => accept(world, world.message(DEDUPLICATED)),
    holds: (results) => oneOf('duplicate', results),
  }),
  'the slot of a queue': race({
    prepare: makeQueue(1, false),
    first: acceptClaimed(IN_QUEUE),
    second: acceptClaimed(IN_QUEUE),
    holds: (results) => String(states(results)) === 'claimed,queue',
  }),
  'the slot of a flow-control key': race({
    prepare: (world) => world.store.keys.pinKey({ projectId: PROJECT, key: 'k', pin: { parallelism: 1 }, nowMs: T0 }),
    first: acceptClaimed(OF_KEY),
    second: acceptClaimed(OF_KEY),
    holds: (results) => String(states(results)) === 'claimed,flow',
  }),
  'the limit of a project': race({
    limits: { parallelismMax: 1 },
    first: acceptClaimed({}),
    second: acceptClaimed({}),
    holds: (results) => String(states(results)) === 'claimed,project',
  }),
  'a cancel of the first in a queue, and a message that comes to wait there': race({
    prepare: async (world) => {
      await makeQueue(1, false)(world);
      return { message: await world.accept(IN_QUEUE), next: world.message(IN_QUEUE) };
    },
    first: ({ store }, { message }) => store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 }),
    second: (world, { next }) => accept(world, next),
    holds: (_, world, { next }) => claimsAll(world, next.message),
  }),
  'a claim given back that was to be cancelled, and a message that comes to wait in its queue': race({
    prepare: async (world) => {
      await makeQueue(1, false)(world);
      const { message, claimToken } = await world.acceptClaimed(IN_QUEUE);
      await world.store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 });
      return { claim: { key: message.key, projectId: PROJECT, claimToken }, next: world.message(IN_QUEUE) };
    },
    first: ({ store }, { claim }) => store.messages.release({ claims: [claim], nowMs: T0 }),
    second: (world, { next }) => accept(world, next),
    holds: (_, world, { next }) => claimsAll(world, next.message),
  }),
  'a queue that goes on, and a message that comes to wait there': race({
    prepare: async (world) => {
      await makeQueue(2, true)(world);
      return { message: await world.accept(IN_QUEUE), next: world.message(IN_QUEUE) };
    },
    first: ({ store }) => store.queues.setQueuePaused({ projectId: PROJECT, name: 'q', isPaused: false, nowMs: T0 }),
    second: (world, { next }) => accept(world, next),
    holds: (_, world, { message, next }) => claimsAll(world, message, next.message),
  }),
  'a wait and a notification': race({
    prepare: async (world) => ({ run: await startRun(world) }),
    first: async (world, { run }) =>
      (await world.store.waiters.addWaiter({ waiter: waiter(world, run), taken: undefined, nowMs: T0 })).kind as string,
    second: async (world, { run }) => notify(world, run),
    holds: ([wait, pendingEvent]) => !(wait === 'registered' && pendingEvent === 'saved'),
  }),
  'a notification and a wait': race({
    prepare: async (world) => ({ run: await startRun(world) }),
    first: async (world, { run }) => notify(world, run),
    second: async (world, { run }) =>
      (await world.store.waiters.addWaiter({ waiter: waiter(world, run), taken: undefined, nowMs: T0 })).kind as string,
    holds: ([pendingEvent, wait]) => !(wait === 'registered' && pendingEvent === 'saved'),
  }),
  'a claim of a project with a limit, and a message that goes out at once': race({
    limits: { parallelismMax: 1 },
    prepare: (world) => world.accept(),
    first: async (world) => (await world.claim()).claimed.length,
    second: acceptClaimed({}),
    holds: ([claimed, result]) => claimed + (String(states([result])) === 'claimed' ? 1 : 0) === 1,
  }),
  'a claim from the line of an origin, and a message that goes out at once': race({
    limits: { parallelismMax: 1 },
    prepare: (world) => accept(world, world.message({ state: { kind: 'origin', dueAtMs: T0 } })),
    first: async (world) =>
      (await world.claim({ due: false, backlogsToServe: [backlogKey(PROJECT, 'https://example.com')] })).claimed.length,
    second: acceptClaimed({}),
    holds: ([claimed, result]) => claimed + (String(states([result])) === 'claimed' ? 1 : 0) === 1,
  }),
  'a queue that becomes empty, and a message that comes to wait there': comesToWait(
    async (world) => ({ next: world.message(IN_QUEUE) }),
    (world, { next }) => accept(world, next),
  ),
  'a queue that becomes empty, and what follows from an attempt': comesToWait(
    async (world) => ({ ...(await world.acceptClaimed()), next: world.message(IN_QUEUE) }),
    ({ store }, { message, claimToken, next }) =>
      store.messages.settle({
        settlement: settlement(message, claimToken, { ...delivered(), follows: [next] }),
        nowMs: T0,
      }),
  ),
  'a queue that becomes empty, and what follows from the end of a run': comesToWait(
    async (world) => ({ run: await startRun(world), next: world.message(IN_QUEUE) }),
    ({ store }, { run, next }) =>
      store.runs.endRuns({ endings: [{ ending: ending(run), follows: [next] }], nowMs: T0 }),
  ),
  'a queue that becomes empty, and the message of a schedule': comesToWait(
    async (world) => {
      const saved = schedule(world, 's');
      await world.store.schedules.saveSchedule({ schedule: saved, fromVersion: undefined, schedulesMax: 0 });
      const change = triggered(world, saved, IN_QUEUE.settings);
      const [next] = change.messages;
      if (!next) throw new Error('it makes no message');
      return { change, next };
    },
    ({ store }, { change }) => store.schedules.changeSchedules({ changes: [change], nowMs: T0 }),
  ),
  'a queue that becomes empty, and the result of a wait': comesToWait(
    async (world) => {
      const run = await startRun(world);
      const wait = waiter(world, run);
      await world.store.waiters.addWaiter({ waiter: wait, taken: undefined, nowMs: T0 });
      return { waiterKey: wait.record.message.key, next: appended(world, run, IN_QUEUE) };
    },
    ({ store }, { waiterKey, next }) =>
      store.waiters.resolveWaiters({ resolutions: [{ waiterKey, result: next }], nowMs: T0 }),
  ),
  'a queue that becomes empty, and a dead message that is published anew': comesToWait(
    async (world) => ({ ...(await world.acceptDead(T0)), next: world.message(IN_QUEUE) }),
    ({ store }, { dlqId, next }) =>
      store.dead.retryDead({ projectId: PROJECT, retries: [{ dlqId, successor: next }], nowMs: T0 }),
  ),
  'a message that comes to a key that nobody has used for long, and retention': race({
    prepare: async (world) => {
      await useKey(world);
      return { next: world.message(OF_KEY) };
    },
    first: (world, { next }) => accept(world, next),
    second: dropUnusedKeys,
    holds: (_, world, { next }) => claimsAll(world, next.message),
  }),
  'the number of queues': race({
    limits: { queuesMax: 1 },
    first: ({ store }) =>
      store.queues.saveQueue({ projectId: PROJECT, name: 'a', parallelism: 1, isPaused: false, nowMs: T0 }),
    second: ({ store }) =>
      store.queues.saveQueue({ projectId: PROJECT, name: 'b', parallelism: 1, isPaused: false, nowMs: T0 }),
    holds: (results) => oneOf('tooManyQueues', results),
  }),
  'the number of schedules': race({
    first: (world) =>
      world.store.schedules.saveSchedule({ schedule: schedule(world, 'a'), fromVersion: undefined, schedulesMax: 1 }),
    second: (world) =>
      world.store.schedules.saveSchedule({ schedule: schedule(world, 'b'), fromVersion: undefined, schedulesMax: 1 }),
    holds: (results) => oneOf('tooMany', results),
  }),
  'two that publish a dead message anew': race({
    prepare: (world) => world.acceptDead(T0),
    first: revive,
    second: revive,
    holds: (results) => results.filter((result) => result === 'missing').length === 1,
  }),
};

/** Races that the rows protect too: here the lock of the project only avoids deadlocks. */
const ROW_RACES: Record<string, AnyRace> = {
  "a project's messages of the day": race({
    limits: { messagesPerDayMax: 2 },
    prepare: (world) => world.accept(),
    first: (world) => accept(world, world.message()),
    second: (world) => accept(world, world.message()),
    holds: (results) => oneOf('overDayLimit', results),
  }),
  'a claim from the list of a key, and a message that goes out at once': race({
    prepare: async (world) => {
      const { message, claimToken } = await world.acceptClaimed(OF_KEY);
      await world.accept(OF_KEY);
      await world.settle(message, claimToken, delivered());
    },
    first: async (world) => (await world.claim()).claimed.length,
    second: acceptClaimed(OF_KEY),
    holds: ([claimed, result]) => claimed + (String(states([result])) === 'claimed' ? 1 : 0) === 1,
  }),
  'messages of a run that settle at the same time, each with a result': race({
    prepare: async (world) => {
      const run = await startRun(world);
      const made = [1, 2].map((step) =>
        appended(world, run, {
          entry: { entryKey: `s${step}` },
          state: { kind: 'claimed', claimToken: world.number(), worker: 'w' },
        }),
      );
      await world.save(made);
      return { run, made };
    },
    first: (world, { run, made }) => settleWithResult(world, run, made[0], 3),
    second: (world, { run, made }) => settleWithResult(world, run, made[1], 4),
    holds: async (_, { store }, { run }) => {
      const positions = (await store.runs.readJournal({ projectId: run.projectId, runKey: run.key })).map(
        ({ position }) => position,
      );
      return positions.length === 5 && new Set(positions).size === 5;
    },
  }),
  'the end of a run, and an entry for its journal': race({
    prepare: async (world) => ({ run: await startRun(world) }),
    first: async (world, { run }) => {
      await world.store.runs.endRuns({ endings: [{ ending: ending(run), follows: [] }], nowMs: T0 });
      return undefined;
    },
    second: async (world, { run }): Promise<Message | undefined> => {
      const newMessages = appended(world, run);
      const result = await accept(world, newMessages);
      return result?.kind === 'accepted' ? newMessages.message : undefined;
    },
    holds: async ([, saved], world) => saved === undefined || (await world.find(saved)) === undefined,
  }),
  'two that end a run': race({
    prepare: async (world) => ({ run: await startRun(world) }),
    first: endRun,
    second: endRun,
    holds: (results) => oneOf('ended', results),
  }),
  'a deadline that ends a wait, and an end of its run': race({
    prepare: async (world) => {
      const run = await startRun(world);
      const wait = waiter(world, run);
      await world.store.waiters.addWaiter({ waiter: wait, taken: undefined, nowMs: T0 });
      return { run, result: appended(world, run, { entry: { entryKey: 's1' } }), waiterKey: wait.record.message.key };
    },
    first: endRun,
    second: async ({ store }, { result, waiterKey }) => {
      await store.waiters.resolveWaiters({ resolutions: [{ waiterKey, result }], nowMs: T0 });
      return undefined;
    },
    holds: async (_, world, { result }) => (await world.find(result.message)) === undefined,
  }),
  'a trigger of a schedule, and its deletion': race({
    prepare: async (world) => {
      const saved = schedule(world, 's');
      await world.store.schedules.saveSchedule({ schedule: saved, fromVersion: undefined, schedulesMax: 0 });
      return { saved, change: triggered(world, saved) };
    },
    first: async ({ store }) => {
      await store.schedules.deleteSchedule({ projectId: PROJECT, id: 's' });
    },
    second: async ({ store }, { change }) => {
      await store.schedules.changeSchedules({ changes: [change], nowMs: T0 });
    },
    holds: async (_, world, { change }) => {
      const [made] = change.messages;
      return made !== undefined && (await world.find(made.message)) === undefined;
    },
  }),
  'two claims from the list of a flow-control key': race({
    prepare: async (world) => {
      const { message, claimToken } = await world.acceptClaimed(OF_KEY);
      await world.accept(OF_KEY);
      await world.accept(OF_KEY);
      await world.settle(message, claimToken, delivered());
    },
    first: async (world) => (await world.claim({ worker: 'a' })).claimed.length,
    second: async (world) => (await world.claim({ worker: 'b' })).claimed.length,
    holds: ([one, other]) => one + other === 1,
  }),
  'two claims of a project with a limit': race({
    limits: { parallelismMax: 1 },
    prepare: async (world) => {
      await world.accept();
      await world.accept();
    },
    first: async (world) => (await world.claim({ worker: 'a', limit: 1 })).claimed.length,
    second: async (world) => (await world.claim({ worker: 'b', limit: 1 })).claimed.length,
    holds: ([one, other]) => one + other === 1,
  }),
  'the slot of a key that becomes free, and a deleted queue that retention empties': race({
    prepare: async (world) => {
      await makeQueue(1, false)(world);
      const last = await world.acceptClaimed(OF_KEY);
      const next = await world.accept(OF_KEY);
      await world.accept({ settings: { ...IN_QUEUE.settings, ...OF_KEY.settings } });
      await world.store.queues.deleteQueue({ projectId: PROJECT, name: 'q', nowMs: T0 });
      return { last, next };
    },
    first: ({ store }, { last }) =>
      store.messages.settle({ settlement: settlement(last.message, last.claimToken, delivered()), nowMs: T0 }),
    second: dropUnusedKeys,
    holds: (_, world, { next }) => claimsAll(world, next),
  }),
  'a key that nobody has used for long, and a message that comes to it': race({
    prepare: async (world) => {
      await useKey(world);
      return { next: world.message(OF_KEY) };
    },
    first: dropUnusedKeys,
    second: async (world, { next }) => {
      await accept(world, next);
    },
    holds: (_, world, { next }) => claimsAll(world, next.message),
  }),
};

async function useKey(world: World): Promise<void> {
  const { message, claimToken } = await world.acceptClaimed(OF_KEY);
  await world.settle(message, claimToken, delivered());
}

async function dropUnusedKeys({ store }: World): Promise<void> {
  const never = { logsBeforeMs: 0, deadBeforeMs: 0, minutesBeforeMs: 0, nowMs: T0, rowsMax: 100 };
  await store.retention.dropExpired({ ...never, keysUsedBeforeMs: T0 + 1_000_000 });
}

function schedule(world: World, id: string): Schedule {
  return {
    key: world.number(),
    projectId: PROJECT,
    id,
    createdAtMs: T0,
    plan: {
      cron: '* * * * *',
      destination: { kind: 'url', url: 'https://example.com/hook' },
      method: 'POST',
      header: {},
      body: new Uint8Array(0),
      settings: { dialect: 'upstash', maxRetries: 3, scheduleId: id },
    },
    state: { version: world.number(), isPaused: false, nextAtMs: T0 },
  };
}

/** A change of the schedule to its next time, with one message. */
function triggered(
  world: World,
  { key, id, state }: Schedule,
  settings: MessageOptions['settings'] = {},
): ScheduleChange {
  const messages = [world.message({ settings: { scheduleId: id, ...settings } })];
  const next = { ...state, version: world.number(), nextAtMs: T0 + 60_000, passedUntilMs: T0 };
  return { key, fromVersion: state.version, state: next, messages };
}

async function settleWithResult(world: World, run: Message, of: NewMessage | undefined, step: number): Promise<void> {
  if (of?.state.kind !== 'claimed') throw new Error('it is not claimed');
  const follows = [appended(world, run, { entry: { entryKey: `s${step}` } })];
  const { message, state } = of;
  await world.settle(message, state.claimToken, { ...delivered(), follows });
}

async function endRun(world: World, { run }: { run: Message }): Promise<string | undefined> {
  const [result] = await world.store.runs.endRuns({ endings: [{ ending: ending(run), follows: [] }], nowMs: T0 });
  return result?.kind;
}

async function notify(world: World, run: Message): Promise<string> {
  const pendingEvent = { key: world.number(), body: bytes('m') };
  return world.store.waiters.savePendingEvent({
    projectId: PROJECT,
    runKey: run.key,
    eventId: 'e',
    ...pendingEvent,
    limits: { events: 10, bytes: 1_000 },
  });
}

async function revive(world: World, { dlqId }: { dlqId: string }): Promise<unknown> {
  return world.store.dead.retryDead({
    projectId: PROJECT,
    retries: [{ dlqId, successor: world.message() }],
    nowMs: T0,
  });
}

/** PostgreSQL, with a point at which a transaction can be stopped, and with or without the locks of projects. */
class RacingDriver implements Driver {
  readonly dialect: Driver['dialect'];
  readonly #driver: Driver;
  readonly #hasLocks: boolean;
  #beforeCommit: (() => Promise<void>) | undefined;

  constructor(driver: Driver, hasLocks: boolean) {
    this.dialect = driver.dialect;
    this.#driver = driver;
    this.#hasLocks = hasLocks;
  }

  /** Stops the next transaction before its commit. Resolves when it is there; `release` lets it continue. */
  hold(): { isThere: Promise<void>; release: () => void } {
    const there = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    this.#beforeCommit = async () => {
      there.resolve();
      await gate.promise;
    };
    return { isThere: there.promise, release: gate.resolve };
  }

  transaction: Driver['transaction'] = (work, options) =>
    this.#driver.transaction(async (tx) => {
      const result = await work(this.#hasLocks ? tx : withoutLocks(tx));
      const hold = this.#beforeCommit;
      this.#beforeCommit = undefined;
      // Pending writes are executed before others may continue.
      if (hold) await tx.query('select 1 as one');
      await hold?.();
      return result;
    }, options);

  read: Driver['read'] = (work) => this.#driver.read(work);

  close(): Promise<void> {
    return this.#driver.close();
  }
}

function withoutLocks(tx: Transaction): Transaction {
  const query: Queries['query'] = (text, params) =>
    tx.query(/ from projects\b/.test(text) ? text.replace(/ for no key update( skip locked)?/, '') : text, params);
  return new Proxy(tx, {
    get: (target, name) => {
      if (name === 'query') return query;
      const member = target[name as keyof Transaction];
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

let url: string;
let watcher: pg.Client;

beforeEach(async () => {
  url = await migratedDatabase();
  watcher = new pg.Client({ connectionString: url });
  await watcher.connect();
});
afterEach(() => watcher.end());

async function isWaiting(): Promise<boolean> {
  const { rowCount } = await watcher.query(
    "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return rowCount !== 0;
}

async function open(
  name: string,
  hasLocks: boolean,
  limits: StoreLimits,
): Promise<{ driver: RacingDriver; world: World }> {
  const options = { url, connectionsMax: 4, timeoutMs: 10_000, prepares: true, clock: systemClock };
  const driver = new RacingDriver(new PostgresDriver(options), hasLocks);
  const pause = () => new Promise<void>((resolve) => void systemClock.startTimer(5, resolve));
  const store: Store = createStore(driver, { limits, batch: { blocked: { pause, scoutsMax: 1_000 } } });
  await store.projects.ensureProject({ name: 'one', signingKeys: KEYS, nowMs: T0 });
  const world = await World.open(async () => store);
  // Numbers for the log, so that no transaction runs again to get them.
  const warm = await world.acceptClaimed({
    projectId: (await store.projects.ensureProject({ name, signingKeys: KEYS, nowMs: T0 })).projectId,
  });
  await store.messages.settle({ settlement: settlement(warm.message, warm.claimToken, delivered()), nowMs: T0 });
  return { driver, world };
}

async function holdsAfter(described: AnyRace, hasLocks: boolean): Promise<boolean> {
  const limits = { ...NO_LIMITS, ...described.limits };
  const [first, second] = await Promise.all([open('two', hasLocks, limits), open('three', hasLocks, limits)]);
  try {
    const state = await described.prepare?.(first.world);
    const { isThere, release } = first.driver.hold();
    const one = described.first(first.world, state);
    await isThere;
    let isDone = false;
    const other = described.second(second.world, state).finally(() => {
      isDone = true;
    });
    await eventually('the second to be done, or to wait for the first', async () => isDone || (await isWaiting()));
    release();
    return await described.holds(await Promise.all([one, other]), first.world, state);
  } finally {
    await first.world.store.close();
    await second.world.store.close();
  }
}

describe('two concurrent workers', () => {
  it.each(Object.entries(RACES))('%s need the lock, and have it', async (_, described) => {
    expect(await holdsAfter(described, true)).toBe(true);
  });
  it.each(Object.entries(RACES))('%s come to harm without it', async (_, described) => {
    expect(await holdsAfter(described, false)).toBe(false);
  });
  describe.each([true, false])('with locks of projects: %s', (hasLocks) => {
    it.each(Object.entries(ROW_RACES))('%s are kept apart by their rows', async (_, described) => {
      expect(await holdsAfter(described, hasLocks)).toBe(true);
    });
  });
});
