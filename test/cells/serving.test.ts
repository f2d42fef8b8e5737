/**
 * Workers that share cells, in simulated time: which worker serves which cell, when a cell is closed to rest, and what opens it
 * again.
 */
import { expect, it, onTestFinished } from 'vitest';
import { StoredAccounts, sealKeys } from '../../src/accounts/accounts.ts';
import { moveProject } from '../../src/cells/move/move-project.ts';
import { openCells } from '../../src/cells/serve/open.ts';
import { seal } from '../../src/config/sealing.ts';
import type { Engine } from '../../src/engine/commands.ts';
import type { LogWatcher } from '../../src/engine/live/feed.ts';
import { type CellId, FIRST_CELL, type Millis, type ProjectId } from '../../src/engine/model.ts';
import type { Delivery, EventLog } from '../../src/engine/ports.ts';
import { CommitUnknown, StoreUnavailable } from '../../src/engine/store-errors.ts';
import { DatabaseClock } from '../../src/engine/workers/database-clock.ts';
import { createStore } from '../../src/store/create.ts';
import type { Driver, Queries, Transaction, TransactionOptions } from '../../src/store/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { decodeTotals, readTotals } from '../../src/store/operations/reports/totals.ts';
import { pollCell } from '../../src/store/operations/workers/poll.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const SECOND_MS = 1_000;
const TIMEOUT_MS = 15 * SECOND_MS;
/** Long enough that a cell without requests and due messages is closed. */
const QUIET_MS = 40 * SECOND_MS;
const SEALER = { encryptionKey: new Uint8Array(32), randomBytes: (count: number) => new Uint8Array(count) };

/** The databases of cells 1, 2, …. Each except the first has the project with the same number. */
class Installation {
  readonly clock = new SimulatedClock();
  readonly random = new SeededRandom(7);
  readonly databases: Driver[];
  readonly workers: Worker[] = [];
  /** By body: how often it was sent, and when it was first sent. */
  readonly sent = new Map<string, { times: number; atMs: Millis }>();

  private constructor(databases: Driver[]) {
    this.databases = databases;
  }

  static async open(cells: number): Promise<Installation> {
    const template = new SqliteDriver({ path: ':memory:' });
    await migrate(template);
    const image = template.image();
    await template.close();
    const databases = Array.from(
      { length: cells },
      () => new SqliteDriver({ path: ':memory:', ...(image && { image }) }),
    );
    const [directory, ...others] = databases.map((driver) => createStore(driver));
    if (!directory) throw new Error('there is no first cell');
    const signingKeys = sealKeys({ current: 'current', next: 'next' }, SEALER);
    await directory.projects.ensureProject({ name: 'project 1', signingKeys, nowMs: 0 });
    for (const [index, store] of others.entries()) {
      const cellId = index + FIRST_CELL + 1;
      const sealedUrl = seal(String(cellId), SEALER.encryptionKey, SEALER.randomBytes);
      await directory.cells.addCell({ name: `cell ${cellId}`, sealedUrl, nowMs: 0, firstName: 'cell 1' });
      await store.cells.initializeCell({ cellId });
      await directory.projects.ensureProject({ name: `project ${cellId}`, signingKeys, nowMs: 0 }); // placed in the emptiest cell
    }
    const installation = new Installation(databases);
    onTestFinished(async () => {
      for (const worker of installation.workers) worker.die();
      await Promise.all(databases.map((driver) => driver.close()));
    });
    return installation;
  }

  /** Starts `count` workers that know each other. */
  async start(count: number, cellsPerWorker?: number): Promise<Worker[]> {
    const started: Worker[] = [];
    for (let index = 0; index < count; index += 1) {
      const worker = new Worker(this, `worker ${this.workers.length + 1}`);
      this.workers.push(worker);
      started.push(worker);
      await this.clock.hold(worker.begin(cellsPerWorker));
    }
    await this.clock.advanceBy(TIMEOUT_MS / 2);
    return started;
  }

  /** Moves project 1 to cell 2, and advances the clock until all workers know the new placement. */
  async moveAway(): Promise<void> {
    const [source, target] = this.databases.map((driver) => onTime(driver, this.clock));
    if (!(source && target)) throw new Error('there are no two cells');
    const { moves: directory } = createStore(source);
    const way = { projectId: 1, fromCell: FIRST_CELL, toCell: 2, mover: 'mover' };
    await this.clock.hold(moveProject({ ...way, directory, source, target, clock: this.clock }));
    await this.clock.advanceBy(TIMEOUT_MS / 2);
  }

  /** The number of open cells of each worker, without the first cell. */
  get openedBy(): number[] {
    return this.workers.map(({ opened }) => opened.size);
  }
}

class Worker {
  readonly #at: Installation;
  readonly #id: string;
  readonly #dead = Promise.withResolvers<never>();
  #isDead = false;
  /** Whether its requests get no response. */
  hangs = false;
  /** The delay after which its next transaction with new messages is committed, although the worker has given up on it. */
  commitsLateBy: Millis | undefined;
  /** Resolves when its requests are responded to. */
  answering: Promise<void> = Promise.resolve();
  /** Resolves when its polls of idle cells are responded to. */
  pollResponses: Promise<void> = Promise.resolve();
  pollsInFlight = 0;
  #engine: Engine | undefined;
  readonly opened = new Set<string>();
  /** Makes an open cell fail. */
  readonly lose = new Map<CellId, (error: Error) => void>();
  /** The number of transactions and reads in each database. */
  readonly calls = new Map<CellId, number>();

  constructor(at: Installation, id: string) {
    this.#at = at;
    this.#id = id;
  }

  /** From then on its transactions never end, and its attempts have no outcome. */
  die(): void {
    this.#isDead = true;
  }

  get engine(): Engine {
    if (!this.#engine) throw new Error('not started');
    return this.#engine;
  }

  async begin(cellsPerWorker: number | undefined): Promise<void> {
    const { clock, random } = this.#at;
    const databaseClock = new DatabaseClock(clock);
    const store = createStore(this.#connect(FIRST_CELL));
    const accounts = await StoredAccounts.open(store, SEALER, databaseClock, { isShared: true });
    const note = (event: string, { cell = '' }: Record<string, unknown> = {}) => {
      if (event === 'cell_opened') this.opened.add(String(cell));
      if (event === 'cell_rests') this.opened.delete(String(cell));
    };
    const log: EventLog = { debug: note, info: note, warn: note, error: note };
    this.#engine = await openCells({
      first: {
        store,
        clock: databaseClock,
        randomness: { bytes: (count) => Uint8Array.from({ length: count }, () => random.int(0, 255)) },
        delivery: this.#delivery(),
        log,
        settings: { ...ENGINE_SETTINGS, retentionIntervalMs: 3_600_000 },
        worker: this.#id,
        recovery: { kind: 'heartbeat', clock: databaseClock, timeoutMs: TIMEOUT_MS, accounts },
      },
      accounts,
      machine: clock,
      sealer: SEALER,
      cellsPerWorker: cellsPerWorker,
      openCell: async (url, onFatal) => {
        this.lose.set(Number(url), onFatal);
        return createStore(this.#connect(Number(url)));
      },
      watchCell: (url) => ({
        poll: async () => {
          this.pollsInFlight += 1;
          await this.pollResponses;
          this.pollsInFlight -= 1;
          return this.#connect(Number(url)).read((queries) => pollCell(queries, clock.wallMs()));
        },
        readTotals: () =>
          this.#connect(Number(url)).read(async (queries) => {
            const args = { nowMs: clock.wallMs() };
            return decodeTotals(await readTotals(queries, args), args);
          }),
        listen: () => {}, // the tests must pass without notifications
        close: async () => {},
      }),
    });
  }

  async publish(projectId: ProjectId, body: string, delayMs: Millis): Promise<void> {
    const settings = { dialect: 'upstash', maxRetries: 0 } as const;
    const command = {
      ...{ url: 'https://a.example/', body: Buffer.from(body) },
      options: { method: 'POST', header: {}, explicitHeader: {}, settings, delayMs },
    } as const;
    await this.#at.clock.hold(this.engine.publish(projectId, [command]));
  }

  #delivery(): Delivery {
    return {
      attempt: async ({ message }) => {
        if (this.#isDead || this.hangs) return this.#dead.promise;
        const body = Buffer.from(message.body).toString();
        const { times = 0, atMs = this.#at.clock.nowMs() } = this.#at.sent.get(body) ?? {};
        this.#at.sent.set(body, { times: times + 1, atMs });
        await this.answering;
        return { kind: 'responded', status: 200, header: {}, body: new Uint8Array(0) };
      },
      close: async () => {},
    };
  }

  async #commit<T>(
    transaction: Driver['transaction'],
    work: (tx: Transaction) => Promise<T>,
    options: TransactionOptions | undefined,
  ): Promise<T> {
    const lateMs = this.commitsLateBy;
    if (lateMs === undefined) return transaction(work, options);
    const insertMany: Transaction['insertMany'] = async (table) => {
      if (table === 'messages') throw new CommitUnknown('the connection was lost');
    };
    try {
      return await transaction((tx) => work({ ...tx, insertMany }), options);
    } catch (error) {
      if (error instanceof CommitUnknown) {
        this.commitsLateBy = undefined;
        this.#at.clock.startTimer(lateMs, () => void transaction(work, options));
      }
      throw error;
    }
  }

  /** A connection to the database of a cell, on the simulated clock. */
  #connect(cellId: CellId): Driver {
    const driver = this.#at.databases[cellId - FIRST_CELL];
    if (!driver) throw new StoreUnavailable('there is no such database');
    let isClosed = false;
    const living = async <T>(work: () => Promise<T>): Promise<T> => {
      if (this.#isDead) return this.#dead.promise;
      if (isClosed) throw new StoreUnavailable('the database is closed');
      this.calls.set(cellId, (this.calls.get(cellId) ?? 0) + 1);
      const answer = await work();
      return this.#isDead ? this.#dead.promise : answer;
    };
    const { dialect, transaction, read } = onTime(driver, this.#at.clock);
    return {
      dialect,
      transaction: (work, options) => living(() => this.#commit(transaction, work, options)),
      read: (work) => living(() => read(work)),
      close: async () => {
        isClosed = true;
      },
    };
  }
}

/** The database, on the simulated clock. */
function onTime(driver: Driver, clock: SimulatedClock): Driver {
  return {
    dialect: driver.dialect,
    transaction: (work, options) =>
      driver.transaction((tx) => work({ ...tx, nowMs: async () => clock.wallMs() }), options),
    read: (work) => driver.read(work),
    close: async () => {},
  };
}

/** A driver that fails as if the database were unreachable. */
function away(driver: Driver): Driver {
  const refuse = () => Promise.reject(new StoreUnavailable('away'));
  return { dialect: driver.dialect, transaction: refuse, read: refuse, close: () => driver.close() };
}

it('with few cells, each worker serves all of them, and closes those without work', async () => {
  const at = await Installation.open(5);
  await at.start(2);
  expect(at.openedBy).toEqual([4, 4]);
  await at.clock.advanceBy(QUIET_MS);
  expect(at.openedBy).toEqual([0, 0]);
});

it('a request opens an idle cell, and no other worker opens it for work that is already done', async () => {
  const at = await Installation.open(3);
  const [one] = await at.start(2);
  await at.clock.advanceBy(QUIET_MS);
  await one?.publish(2, 'a', 0);
  await at.clock.advanceBy(TIMEOUT_MS);
  expect(at.sent.get('a')).toMatchObject({ times: 1 });
  expect(at.openedBy).toEqual([1, 0]);
});

it('an idle cell is opened before a message that was published long ago is due', async () => {
  const at = await Installation.open(3);
  const [one] = await at.start(2);
  const dueAtMs = at.clock.nowMs() + 600 * SECOND_MS;
  await one?.publish(2, 'later', 600 * SECOND_MS);
  await at.clock.advanceBy(2 * QUIET_MS);
  expect(at.openedBy).toEqual([0, 0]);
  await at.clock.advanceBy(600 * SECOND_MS);
  const { times, atMs = 0 } = at.sent.get('later') ?? {};
  expect([times, atMs - dueAtMs]).toEqual([1, expect.closeTo(0, -2)]);
});

it('the totals of an idle cell are reported without opening it', async () => {
  const at = await Installation.open(3);
  const [one, other] = await at.start(2);
  await one?.publish(2, 'later', 600 * SECOND_MS);
  const reported = async (worker: Worker | undefined) =>
    Promise.all(
      (worker?.engine.cells ?? []).map(async (cell) => {
        const { scheduled } = await at.clock.hold(cell.readTotals());
        return [cell.name, cell.state, scheduled];
      }),
    );
  expect(await reported(one)).toEqual([
    ['cell 1', 'open', 0],
    ['cell 2', 'open', 1],
    ['cell 3', 'open', 0],
  ]);
  await at.clock.advanceBy(2 * QUIET_MS);
  expect(await reported(other)).toEqual([
    ['cell 1', 'open', 0],
    ['cell 2', 'resting', 1],
    ['cell 3', 'resting', 0],
  ]);
  expect(at.openedBy).toEqual([0, 0]);
});

it('many cells are divided: two workers serve each cell, and the others do not touch it', async () => {
  const at = await Installation.open(41);
  const workers = await at.start(4, 8);
  await at.clock.advanceBy(QUIET_MS);
  for (const { calls } of workers) calls.clear();
  await at.clock.advanceBy(QUIET_MS);
  for (let cellId = 2; cellId <= 41; cellId += 1) {
    expect(workers.filter(({ calls }) => calls.has(cellId))).toHaveLength(2);
  }
});

it('with many cells, a starting worker opens only those with messages that are due soon', async () => {
  const at = await Installation.open(41);
  const [former] = await at.start(1, 8);
  await former?.publish(2, 'soon', 60 * SECOND_MS);
  await former?.publish(3, 'later', 600 * SECOND_MS);
  former?.die();
  await at.clock.advanceBy(55 * SECOND_MS);
  const [worker] = await at.start(1, 8);
  expect([...(worker?.opened ?? [])]).toContain('cell 2');
  expect(worker?.opened.size).toBeLessThan(5);
  expect(worker?.engine.cells?.map(({ state }) => state)).not.toContain('away');
  await at.clock.advanceBy(10 * SECOND_MS);
  expect(at.sent.get('soon')).toMatchObject({ times: 1 });
});

it('opens each idle cell within an hour, and never many at once', async () => {
  const at = await Installation.open(41);
  const [worker] = await at.start(1, 8);
  const seen = new Set<string>();
  let most = 0;
  for (let minutes = 0; minutes < 62; minutes += 1) {
    await at.clock.advanceBy(60 * SECOND_MS);
    for (const name of worker?.opened ?? []) seen.add(name);
    most = Math.max(most, worker?.opened.size ?? 0);
  }
  expect(seen.size).toBe(40);
  expect(most).toBeLessThan(5);
});

it('polls no more cells while many polls have no response', async () => {
  const at = await Installation.open(41);
  const [worker] = (await at.start(1, 8)) as [Worker];
  const answers = Promise.withResolvers<void>();
  worker.pollResponses = answers.promise;
  await at.clock.advanceBy(QUIET_MS);
  expect(worker.pollsInFlight).toBeGreaterThan(0);
  expect(worker.pollsInFlight).toBeLessThan(2 * 8);
  answers.resolve();
  await at.clock.advanceBy(SECOND_MS);
  expect(worker.pollsInFlight).toBe(0);
});

it('any worker accepts a message for any cell, and then leaves the cell to the workers that serve it', async () => {
  const at = await Installation.open(41);
  const workers = await at.start(4, 8);
  await at.clock.advanceBy(QUIET_MS);
  for (const [index, worker] of workers.entries()) await worker.publish(2, `by ${index}`, 0);
  await at.clock.advanceBy(SECOND_MS);
  expect([...at.sent.values()].map(({ times }) => times)).toEqual([1, 1, 1, 1]);
  expect(at.openedBy).toEqual([1, 1, 1, 1]);
  await at.clock.advanceBy(2 * QUIET_MS);
  expect(at.openedBy).toEqual([0, 0, 0, 0]);
});

it('when a worker dies, the others deliver every due message of any cell within the heartbeat timeout', async () => {
  const at = await Installation.open(41);
  const workers = await at.start(4, 8);
  const [lost] = workers;
  const dueAtMs = new Map<string, Millis>();
  for (let project = 1; project <= 41; project += 1) {
    for (const delayMs of [5, 60, 300].map((seconds) => seconds * SECOND_MS)) {
      const body = `${project} after ${delayMs}`;
      dueAtMs.set(body, at.clock.nowMs() + delayMs);
      await lost?.publish(project, body, delayMs);
    }
  }
  lost?.die();
  await at.clock.advanceBy(400 * SECOND_MS);
  const lateMs = [...dueAtMs].map(([body, ms]) => (at.sent.get(body)?.atMs ?? Infinity) - ms);
  expect(Math.max(...lateMs)).toBeLessThan(TIMEOUT_MS + 10 * SECOND_MS);
  expect(new Set([...at.sent.values()].map(({ times }) => times))).toEqual(new Set([1]));
});

it('a cell whose worker died during an attempt is opened by the workers that serve it', async () => {
  const at = await Installation.open(41);
  const workers = await at.start(4, 8);
  await at.clock.advanceBy(QUIET_MS);
  for (const { calls } of workers) calls.clear();
  await at.clock.advanceBy(QUIET_MS);
  const stranger = workers.find(({ calls }) => !calls.has(2)) as Worker;
  stranger.hangs = true;
  await stranger.publish(2, 'under way', 0);
  await at.clock.advanceBy(SECOND_MS);
  expect(at.sent.size).toBe(0);
  stranger.die();
  await at.clock.advanceBy(TIMEOUT_MS + 10 * SECOND_MS);
  expect(at.sent.get('under way')).toMatchObject({ times: 1 });
});

it('a worker that does not serve a cell polls it again on the first request after the cell was unavailable', async () => {
  const at = await Installation.open(41);
  const workers = await at.start(4, 8);
  await at.clock.advanceBy(QUIET_MS);
  for (const { calls } of workers) calls.clear();
  await at.clock.advanceBy(QUIET_MS);
  const stranger = workers.find(({ calls }) => !calls.has(2)) as Worker;
  const publish = async (body: string) => {
    stranger.engine.checkAdmission(2);
    await stranger.publish(2, body, 0);
  };
  const alive = at.databases[1] as Driver;
  at.databases[1] = away(alive);
  await expect(publish('refused')).rejects.toThrow(StoreUnavailable);
  await at.clock.advanceBy(2 * QUIET_MS);
  at.databases[1] = alive;
  await publish('accepted');
  await at.clock.advanceBy(SECOND_MS);
  expect([...at.sent.keys()]).toEqual(['accepted']);
});

it('keeps the last known list of workers while the directory is unavailable', async () => {
  const at = await Installation.open(41);
  const workers = await at.start(4, 8);
  await at.clock.advanceBy(QUIET_MS);
  at.databases[0] = away(at.databases[0] as Driver);
  expect(workers).toHaveLength(4);
  for (let project = 2; project <= 41; project += 1)
    await workers[project % 4]?.publish(project, `${project}`, SECOND_MS);
  await at.clock.advanceBy(2 * TIMEOUT_MS);
  expect([...at.sent.values()].filter(({ times }) => times === 1)).toHaveLength(40);
});

it('a worker that is shutting down saves the outcome of an attempt in the new cell of a moved project', async () => {
  const at = await Installation.open(2);
  const [leaving] = await at.start(2);
  const answer = Promise.withResolvers<void>();
  if (leaving) leaving.answering = answer.promise;
  await leaving?.publish(1, 'under way', 0);
  await at.moveAway();
  void leaving?.engine.drain(TIMEOUT_MS);
  await at.clock.advanceBy(SECOND_MS); // the new cell of the project has no other work
  answer.resolve();
  await at.clock.advanceBy(5 * TIMEOUT_MS);
  expect(at.sent.get('under way')).toMatchObject({ times: 1 });
  const left = (queries: Queries) => queries.query('select key from messages');
  expect(await at.databases[1]?.read(left)).toEqual([]);
});

/** Starts a watcher that records its notifications. */
function watch({ engine }: Worker, projectId: ProjectId): { reported: string[]; stop: () => void } {
  const reported: string[] = [];
  const watcher: LogWatcher = {
    start: () => reported.push('begin'),
    publish: (entries) => reported.push(...entries.map(({ state }) => state)),
    skip: (count) => reported.push(`lost ${count}`),
    close: () => reported.push('leave'),
  };
  return { reported, stop: engine.watchLog(projectId, watcher) };
}

it.each<[string, ProjectId, (at: Installation, worker: Worker) => unknown]>([
  ['its project has moved to another cell', 1, (at) => at.moveAway()],
  ['its cell is lost', 2, (_, worker) => worker.lose.get(2)?.(new Error('the disk is gone'))],
])('a watcher of a log is closed when %s, and receives new entries when watching again', async (_, project, happen) => {
  const at = await Installation.open(2);
  const [worker, other] = (await at.start(2)) as [Worker, Worker];
  const { reported, stop } = watch(worker, project);
  await at.clock.advanceBy(2 * SECOND_MS);
  await happen(at, worker);
  await at.clock.advanceBy(2 * SECOND_MS);
  expect(reported).toEqual(['begin', 'leave']);
  stop();
  const again = watch(worker, project);
  await at.clock.advanceBy(2 * SECOND_MS);
  await other.publish(project, 'new', 0);
  await at.clock.advanceBy(2 * SECOND_MS);
  again.stop();
  expect(again.reported).toEqual(['begin', 'CREATED', 'ACTIVE', 'DELIVERED']);
  expect(reported).toEqual(['begin', 'leave']);
});

it.each<[string, (worker: Worker) => unknown]>([
  ['continues', () => {}],
  ['is drained', ({ engine }) => engine.drain(SECOND_MS)],
  ['dies', (worker) => worker.die()],
])(
  'a commit that succeeds after its worker gave up waiting is delivered within a timeout, even if the worker %s',
  async (_, next) => {
    const at = await Installation.open(2);
    const [unlucky] = (await at.start(2)) as [Worker];
    // Later than the polls for messages whose commit was unknown.
    unlucky.commitsLateBy = 2 * TIMEOUT_MS;
    await expect(unlucky.publish(2, 'saved', 0)).rejects.toThrow(CommitUnknown);
    void next(unlucky);
    await at.clock.advanceBy(2 * TIMEOUT_MS);
    expect(at.sent.size).toBe(0);
    await at.clock.advanceBy(TIMEOUT_MS + 10 * SECOND_MS);
    expect(at.sent.get('saved')).toMatchObject({ times: 1 });
  },
);
