/**
 * The projects that each command locks where several transactions run at once. Runs over SQLite, which takes no locks,
 * and records what would be locked. `postgres-locks.full.test.ts` shows that PostgreSQL needs these locks.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { Message, ProjectId } from '../../src/engine/model.ts';
import type { Schedule } from '../../src/engine/schedules/schedules.ts';
import type { StoreLimits } from '../../src/engine/stores.ts';
import { createStore } from '../../src/store/create.ts';
import type { Driver, Queries, Transaction } from '../../src/store/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import type { WriteCommand } from '../../src/store/operations/all.ts';
import { lockFor } from '../../src/store/operations/locking/locks.ts';
import { appended, ending, NO_LIMITS, startRun, waiter } from './conformance/run-world.ts';
import {
  bytes,
  delivered,
  type MessageOptions,
  OTHER_PROJECT,
  PROJECT,
  retrying,
  settlement,
  T0,
  World,
} from './conformance/world.ts';

/** Pretends to have many writers, and records the projects whose rows would be locked. */
class RecordingDriver implements Driver {
  readonly #driver = new SqliteDriver({ path: ':memory:' });
  readonly dialect: Driver['dialect'] = { ...this.#driver.dialect, manyWriters: true };
  /** Projects whose rows another transaction has locked: nobody waits for them here. */
  readonly others = new Set<ProjectId>();
  locked: ProjectId[] = [];
  /** Whether messages appear only after the claim has read which projects to lock. */
  comesLater = false;
  /** Whether others have every message locked. */
  areMessagesTaken = false;

  migrate(): Promise<void> {
    return migrate(this.#driver);
  }

  transaction: Driver['transaction'] = (work) => this.#driver.transaction((tx) => work(this.#recorded(tx)));

  read: Driver['read'] = (work) => this.#driver.read(work);

  close(): Promise<void> {
    return this.#driver.close();
  }

  #recorded(tx: Transaction): Transaction {
    const query: Queries['query'] = async (text, params) => {
      if (this.comesLater && /^select (distinct project_id|p\.value as project_id)/.test(text)) return [];
      if (this.areMessagesTaken && /from messages\b.*skip locked$/s.test(text)) return [];
      const rows = await tx.query<never>(text, params);
      if (!/^select id, placement from projects .*for no key update/.test(text)) return rows;
      const free = text.endsWith('skip locked')
        ? rows.filter(({ id }: { id: ProjectId }) => !this.others.has(id))
        : rows;
      this.locked.push(...free.map(({ id }: { id: ProjectId }) => id));
      return free;
    };
    return { ...tx, query };
  }
}

let driver: RecordingDriver;
let world: World;

async function open(limits: Partial<StoreLimits> = {}): Promise<void> {
  driver = new RecordingDriver();
  await driver.migrate();
  const store = createStore(driver, { limits: { ...NO_LIMITS, ...limits } });
  for (const name of ['one', 'two', 'three'])
    await store.projects.ensureProject({ name, signingKeys: { current: 'c', next: 'n' }, nowMs: T0 });
  world = await World.open(async () => store);
  // Numbers for the log, so that no transaction runs again to get them.
  await settle(await world.acceptClaimed());
}

async function reopen(limits: Partial<StoreLimits>): Promise<void> {
  await world.store.close();
  await open(limits);
}

beforeEach(() => open());
afterEach(() => world.store.close());

/** The projects whose rows `act` locks, sorted, for each lock separately. */
async function lockedBy(act: () => Promise<unknown>): Promise<RecordingDriver['locked']> {
  driver.locked = [];
  await act();
  return driver.locked.toSorted();
}

const IN_QUEUE = { settings: { queueName: 'q' } } satisfies MessageOptions;
const OF_KEY = { settings: { flowControl: { key: 'k', parallelism: 1, periodS: 1 } } } satisfies MessageOptions;
const DEDUPLICATED = { deduplication: { hash: 'h', expiresAtMs: T0 + 1_000 } } satisfies MessageOptions;
const OF_OTHER = { projectId: OTHER_PROJECT } satisfies MessageOptions;
const settle = ({ message, claimToken }: { message: Message; claimToken: number }, change = delivered()) =>
  world.settle(message, claimToken, change);

describe('a new message', () => {
  it('locks nothing when it shares nothing', async () => {
    expect(await lockedBy(() => world.accept())).toEqual([]);
  });

  it.each([
    ['a queue', IN_QUEUE],
    ['a flow-control key', OF_KEY],
    ['a deduplication id', DEDUPLICATED],
  ])('with %s locks its project', async (_, options) => {
    expect(await lockedBy(() => world.accept(options))).toEqual([PROJECT]);
  });

  it('that starts a run, or is one of its messages, locks its project', async () => {
    let run: Message | undefined;
    const beginIt = async () => {
      run = await startRun(world);
    };
    expect(await lockedBy(beginIt)).toEqual([PROJECT]);
    const newMessages = appended(world, run as Message);
    expect(await lockedBy(() => world.save([newMessages]))).toEqual([PROJECT]);
    const { entry: _entry, ...withoutEntry } = appended(world, run as Message);
    expect(await lockedBy(() => world.save([withoutEntry]))).toEqual([PROJECT]);
  });

  it.each([{ parallelismMax: 5 }, { messagesPerDayMax: 5 }])('locks its project where there is %j', async (limits) => {
    await reopen(limits);
    expect(await lockedBy(() => world.accept())).toEqual([PROJECT]);
  });

  it('locks only those projects of its batch that share something', async () => {
    const batch = [world.message(IN_QUEUE), world.message(OF_OTHER), world.message({ projectId: 3, ...OF_KEY })];
    expect(await lockedBy(() => world.save(batch))).toEqual([PROJECT, 3]);
  });
});

describe('the end of an attempt', () => {
  it('locks nothing for a message that shares nothing, known to be alone or not', async () => {
    const one = await world.acceptClaimed();
    expect(await lockedBy(() => settle(one))).toEqual([]);
    const { message, claimToken } = await world.acceptClaimed();
    const alone = { ...settlement(message, claimToken, delivered()), isAlone: true as const };
    expect(await lockedBy(() => world.store.messages.settle({ settlement: alone, nowMs: T0 }))).toEqual([]);
  });

  it.each([
    ['of a queue', IN_QUEUE],
    ['of a flow-control key', OF_KEY],
  ])('of a message %s locks its project', async (_, options) => {
    const one = await world.acceptClaimed(options);
    expect(await lockedBy(() => settle(one))).toEqual([PROJECT]);
  });

  it('of a message of a run locks its project', async () => {
    const state = { kind: 'claimed', claimToken: world.number(), worker: 'w' } as const;
    const message = await startRun(world, { state });
    expect(await lockedBy(() => settle({ message, claimToken: state.claimToken }))).toEqual([PROJECT]);
  });

  it('locks the projects of messages that follow, including those that follow only after a cancel request', async () => {
    const one = await world.acceptClaimed();
    const follows = [world.message(IN_QUEUE)];
    expect(await lockedBy(() => settle(one, { ...delivered(), follows }))).toEqual([PROJECT]);
    const { message, claimToken } = await world.acceptClaimed();
    const either = {
      ...settlement(message, claimToken, retrying(T0, T0 + 5, 1)),
      changeIfCancelRequested: { ...delivered(), follows: [world.message(IN_QUEUE)] },
    };
    expect(await lockedBy(() => world.store.messages.settle({ settlement: either, nowMs: T0 }))).toEqual([PROJECT]);
    const alone = await world.acceptClaimed();
    expect(await lockedBy(() => settle(alone, { ...delivered(), follows: [world.message()] }))).toEqual([]);
  });

  it('locks its project when attempts are limited, even if it is alone', async () => {
    await reopen({ parallelismMax: 5 });
    const { message, claimToken } = await world.acceptClaimed();
    const alone = { ...settlement(message, claimToken, delivered()), isAlone: true as const };
    expect(await lockedBy(() => world.store.messages.settle({ settlement: alone, nowMs: T0 }))).toEqual([PROJECT]);
  });

  it('locks nothing when only messages per day are limited, and no message follows', async () => {
    await reopen({ messagesPerDayMax: 5 });
    const one = await world.acceptClaimed();
    expect(await lockedBy(() => settle(one))).toEqual([]);
  });

  it('of a run locks its project, and those of messages that follow', async () => {
    const run = await startRun(world);
    const end = () =>
      world.store.runs.endRuns({
        endings: [{ ending: ending(run), follows: [world.message({ ...IN_QUEUE, ...OF_OTHER })] }],
        nowMs: T0,
      });
    expect(await lockedBy(end)).toEqual([PROJECT, OTHER_PROJECT]);
  });
});

describe('a message that is named by its key', () => {
  it('is locked with its project when it is in a lane, or attempts are limited', async () => {
    const plain = await world.accept();
    const queued = await world.accept(IN_QUEUE);
    expect(
      await lockedBy(() => world.store.messages.cancelById({ projectId: PROJECT, ids: [plain.id], nowMs: T0 })),
    ).toEqual([]);
    expect(
      await lockedBy(() => world.store.messages.cancelById({ projectId: PROJECT, ids: [queued.id], nowMs: T0 })),
    ).toEqual([PROJECT]);
    await reopen({ parallelismMax: 5 });
    const limited = await world.accept();
    expect(
      await lockedBy(() => world.store.messages.cancelById({ projectId: PROJECT, ids: [limited.id], nowMs: T0 })),
    ).toEqual([PROJECT]);
  });

  it('is locked with its project when its claim is released', async () => {
    const release = ({ message, claimToken }: { message: Message; claimToken: number }) =>
      world.store.messages.release({
        claims: [{ key: message.key, projectId: message.projectId, claimToken }],
        nowMs: T0,
      });
    const plain = await world.acceptClaimed();
    expect(await lockedBy(() => release(plain))).toEqual([]);
    const ofKey = await world.acceptClaimed({ ...OF_KEY, ...OF_OTHER });
    expect(await lockedBy(() => release(ofKey))).toEqual([OTHER_PROJECT]);
    await reopen({ parallelismMax: 5 });
    const limited = await world.acceptClaimed();
    expect(await lockedBy(() => release(limited))).toEqual([PROJECT]);
  });

  it('locks nothing if it does not exist', async () => {
    const stale = { ...world.message(IN_QUEUE), claimToken: 1 };
    expect(await lockedBy(() => settle(stale))).toEqual([]);
  });
});

describe('a claim', () => {
  const claim = (request: Parameters<World['claim']>[0] = {}, nowMs = T0) =>
    lockedBy(() => world.claim(request, nowMs));
  const settled = async (options: MessageOptions) => {
    const first = await world.acceptClaimed(options);
    await world.accept(options);
    await settle(first);
  };

  it('locks nothing for messages that share nothing', async () => {
    await world.accept();
    await world.accept({ state: { kind: 'origin', dueAtMs: T0 } });
    expect(await claim({ backlogsToServe: [backlogKey(PROJECT, 'https://example.com')] })).toEqual([]);
  });

  it('locks the projects whose keys are due to be served, unless it takes no due messages', async () => {
    await settled({ ...OF_KEY, ...OF_OTHER });
    expect(await claim({}, T0 - 1)).toEqual([]);
    expect(await claim({ due: false })).toEqual([]);
    expect(await claim()).toEqual([OTHER_PROJECT]);
  });

  it('locks the projects of backlogs that have messages with a key', async () => {
    await world.accept();
    await world.accept(OF_KEY);
    await world.claim({ defaultCapacity: 0 });
    const backlogsToServe = [backlogKey(PROJECT, 'https://example.com')];
    expect(await claim({ due: false, backlogsToServe: [backlogKey(OTHER_PROJECT, 'https://example.com')] })).toEqual(
      [],
    );
    expect(await claim({ due: false, backlogsToServe })).toEqual([PROJECT]);
  });

  it('locks the projects of all messages that it may take when attempts are limited', async () => {
    await reopen({ parallelismMax: 1 });
    await world.accept({ state: { kind: 'origin', dueAtMs: T0 } });
    await world.accept({ ...OF_OTHER, notBeforeMs: T0 + 1 });
    const backlogsToServe = [backlogKey(PROJECT, 'https://example.com')];
    expect(await claim({ due: false, backlogsToServe })).toEqual([PROJECT]);
    expect(await claim()).toEqual([]);
    expect(await claim({}, T0 + 1)).toEqual([OTHER_PROJECT]);
  });

  it('locks the projects whose messages wait for the end of attempts', async () => {
    await reopen({ parallelismMax: 1 });
    const first = await world.acceptClaimed();
    await world.accept({ state: { kind: 'claimed', claimToken: world.number(), worker: 'w' } });
    expect(await claim()).toEqual([PROJECT]);
    expect(first.message.projectId).toBe(PROJECT);
  });
});

describe('a claim with concurrent transactions', () => {
  const keysOf = async (request: Parameters<World['claim']>[0] = {}) =>
    (await world.claim(request)).claimed.map(({ message }) => message.key);

  it('leaves messages of projects that it has not locked unchanged, and takes messages that share nothing', async () => {
    const listed = await world.accept(OF_KEY);
    const inBacklog = await world.accept({ ...OF_KEY, projectId: OTHER_PROJECT });
    await world.claim({ defaultCapacity: 0 });
    const plain = await world.accept();
    const backlogsToServe = [
      backlogKey(PROJECT, 'https://example.com'),
      backlogKey(OTHER_PROJECT, 'https://example.com'),
    ];
    driver.comesLater = true;
    expect(await keysOf({ backlogsToServe })).toEqual([plain.key]);
    driver.comesLater = false;
    expect(await keysOf({ backlogsToServe })).toEqual([listed.key, inBacklog.key]);
  });

  it('takes no message of a project with limited attempts that it has not locked', async () => {
    await reopen({ parallelismMax: 5 });
    const { key } = await world.accept();
    driver.comesLater = true;
    expect(await keysOf()).toEqual([]);
    driver.comesLater = false;
    expect(await keysOf()).toEqual([key]);
  });

  it('reports when other workers have locked the due messages', async () => {
    await world.accept();
    driver.areMessagesTaken = true;
    expect(await world.claim()).toMatchObject({ nextDueAtMs: T0, isLocked: true });
    expect(await world.claim({}, T0 - 5)).toMatchObject({ nextDueAtMs: T0, isLocked: false });
    expect(await world.claim({ limit: 0 })).toMatchObject({ nextDueAtMs: T0, isLocked: false });
    driver.areMessagesTaken = false;
    for (let nth = 1; nth <= 2; nth += 1)
      expect(await world.claim()).toMatchObject({ nextDueAtMs: undefined, isLocked: false });
  });
});

describe('other commands', () => {
  const schedule = (projectId: ProjectId): Schedule => ({
    key: world.number(),
    projectId,
    id: 's',
    createdAtMs: T0,
    plan: {
      cron: '* * * * *',
      destination: { kind: 'url', url: 'https://example.com/hook' },
      method: 'POST',
      header: {},
      body: new Uint8Array(0),
      settings: { dialect: 'upstash', maxRetries: 3, scheduleId: 's' },
    },
    state: { version: world.number(), isPaused: false, nextAtMs: T0 },
  });

  it('of schedules lock the project of the schedule', async () => {
    const saved = schedule(OTHER_PROJECT);
    expect(
      await lockedBy(() =>
        world.store.schedules.saveSchedule({ schedule: saved, fromVersion: undefined, schedulesMax: 0 }),
      ),
    ).toEqual([OTHER_PROJECT]);
    const { key, state } = saved;
    const change = {
      key,
      fromVersion: state.version,
      state: { ...state, version: world.number() },
      messages: [],
    };
    expect(await lockedBy(() => world.store.schedules.changeSchedules({ changes: [change], nowMs: T0 }))).toEqual([
      OTHER_PROJECT,
    ]);
    expect(await lockedBy(() => world.store.schedules.deleteSchedule({ projectId: OTHER_PROJECT, id: 's' }))).toEqual([
      OTHER_PROJECT,
    ]);
  });

  it('of waits and pending events lock the project of the run', async () => {
    const run = await startRun(world);
    const wait = waiter(world, run);
    expect(await lockedBy(() => world.store.waiters.addWaiter({ waiter: wait, taken: undefined, nowMs: T0 }))).toEqual([
      PROJECT,
    ]);
    const result = appended(world, run);
    const resolve = () =>
      world.store.waiters.resolveWaiters({ resolutions: [{ waiterKey: wait.record.message.key, result }], nowMs: T0 });
    expect(await lockedBy(resolve)).toEqual([PROJECT]);
    const pendingEvent = { key: world.number(), body: bytes('m') };
    const save = () =>
      world.store.waiters.savePendingEvent({
        projectId: PROJECT,
        runKey: run.key,
        eventId: 'e',
        ...pendingEvent,
        limits: { events: 10, bytes: 1_000 },
      });
    expect(await lockedBy(save)).toEqual([PROJECT]);
  });

  it('that name a project lock it', async () => {
    const queue = { name: 'q', parallelism: 1, isPaused: false };
    expect(
      await lockedBy(() => world.store.queues.saveQueue({ projectId: OTHER_PROJECT, ...queue, nowMs: T0 })),
    ).toEqual([OTHER_PROJECT]);
    expect(
      await lockedBy(() =>
        world.store.keys.pinKey({ projectId: PROJECT, key: 'k', pin: { parallelism: 1 }, nowMs: T0 }),
      ),
    ).toEqual([PROJECT]);
  });

  it('for retention lock the projects whose keys may be dropped; a start, which runs alone, locks none', async () => {
    await settle(await world.acceptClaimed({ ...OF_KEY, ...OF_OTHER }));
    const bounds = { logsBeforeMs: 0, deadBeforeMs: 0, minutesBeforeMs: 0, nowMs: T0, rowsMax: 100 };
    expect(await lockedBy(() => world.store.retention.dropExpired({ ...bounds, keysUsedBeforeMs: 0 }))).toEqual([]);
    const forgets = () => world.store.retention.dropExpired({ ...bounds, keysUsedBeforeMs: T0 + 1_000_000 });
    expect(await lockedBy(forgets)).toEqual([OTHER_PROJECT]);
    expect(await lockedBy(() => world.store.messages.releaseAll({ nowMs: T0 }))).toEqual([]);
  });
});

describe('a batch with suspect projects', () => {
  const SUSPECT = new Set([OTHER_PROJECT, 3]);
  const of = (projectId: ProjectId) => ({ method: 'saveQueue', args: { projectId } }) as WriteCommand;

  /** The projects that it has locked, and the missing project of each command. */
  async function take(
    commands: WriteCommand[],
    { suspects = SUSPECT, parallelismMax = 0 }: { suspects?: ReadonlySet<ProjectId>; parallelismMax?: number } = {},
  ) {
    driver.locked = [];
    return driver.transaction(async (tx) => {
      const { locked, blocked } = await lockFor(tx, commands, { ...NO_LIMITS, parallelismMax }, suspects);
      return {
        locked: [PROJECT, OTHER_PROJECT, 3].filter((id) => locked.has(id)),
        lacking: commands.map((command) => (blocked.has(command) ? blocked.get(command)?.projectId : 'none')),
      };
    });
  }

  it('takes the free locks, and waits for the others that it needs', async () => {
    expect(await take([of(PROJECT), of(OTHER_PROJECT)])).toEqual({
      locked: [PROJECT, OTHER_PROJECT],
      lacking: ['none', 'none'],
    });
    expect(driver.locked).toEqual([PROJECT, OTHER_PROJECT]);
  });

  it('runs the commands that need no locked project', async () => {
    driver.others.add(OTHER_PROJECT);
    expect(await take([of(OTHER_PROJECT), of(PROJECT), of(3)])).toEqual({
      locked: [PROJECT, 3],
      lacking: [OTHER_PROJECT, 'none', 'none'],
    });
    expect(driver.locked).toEqual([PROJECT, 3]);
  });

  it('needs no project that does not exist', async () => {
    expect((await take([of(99)], { suspects: new Set([99]) })).lacking).toEqual([99]);
    expect((await take([of(99)])).lacking).toEqual(['none']);
  });

  it('claims without the messages of locked projects', async () => {
    for (const projectId of [PROJECT, OTHER_PROJECT]) await world.accept({ projectId });
    driver.others.add(OTHER_PROJECT);
    const args = { request: { due: true, backlogsToServe: [], limit: 10 }, nowMs: T0 };
    const claim = { method: 'claim', args } as unknown as WriteCommand;
    expect(await take([claim], { parallelismMax: 1 })).toEqual({ locked: [PROJECT], lacking: ['none'] });
  });

  it('examines all messages that its commands name when attempts are limited, and only those of lanes otherwise', async () => {
    const plain = await world.accept(OF_OTHER);
    const release = { method: 'release', args: { claims: [{ key: plain.key }] } } as unknown as WriteCommand;
    expect((await take([of(PROJECT), release], { parallelismMax: 5 })).locked).toEqual([PROJECT, OTHER_PROJECT]);
    expect((await take([of(PROJECT), release])).locked).toEqual([PROJECT]);
  });
});
