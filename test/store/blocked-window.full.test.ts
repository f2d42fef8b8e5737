/**
 * The cost of a claim and of a publish while many messages wait that may not start (P9). Counts rows and pages instead
 * of time: they must read about as many as with hardly any messages.
 */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import { createStore } from '../../src/store/create.ts';
import type { Driver, Queries } from '../../src/store/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { type MessageOptions, OTHER_PROJECT, PROJECT, T0, World } from './conformance/world.ts';

const CROWD = 50_000;
/** The expected cost of a claim is that with so few messages. */
const FEW = 500;
const HEALTHY = 100;
const PAGE_BYTES = 4_096;
/** Bytes of the page cache: enough for a claim, and a tenth of the index with the crowd. */
const CACHED_PAGES = 64;

const LIMITED = { key: 'key', parallelism: 1, periodS: 1 };

interface Blocked {
  title: string;
  /** The lane in which the crowd waits. */
  crowd: MessageOptions['settings'];
  block(world: World): Promise<unknown>;
}

const BLOCKED: Blocked[] = [
  {
    title: 'a paused key',
    crowd: { flowControl: LIMITED },
    block: ({ store }) => store.keys.setKeyPaused({ projectId: PROJECT, key: LIMITED.key, isPaused: true, nowMs: T0 }),
  },
  {
    title: 'a key whose slots are taken',
    crowd: { flowControl: LIMITED },
    block: async (world) => expect((await world.claim()).claimed).toHaveLength(1),
  },
  {
    title: 'a key that has spent its rate',
    crowd: { flowControl: LIMITED },
    block: async (world) => {
      await world.store.keys.pinKey({
        projectId: PROJECT,
        key: LIMITED.key,
        pin: { parallelism: 10, rate: 1, periodS: 3_600 },
        nowMs: T0,
      });
      expect((await world.claim()).claimed).toHaveLength(1);
    },
  },
  {
    title: 'a paused queue',
    crowd: { queueName: 'queue' },
    block: ({ store }) => store.queues.setQueuePaused({ projectId: PROJECT, name: 'queue', isPaused: true, nowMs: T0 }),
  },
  {
    title: 'a queue whose slot is taken',
    crowd: { queueName: 'queue' },
    block: async (world) => expect((await world.claim()).claimed).toHaveLength(1),
  },
];

const CASES = BLOCKED.map((blocked) => [blocked.title, blocked] as const);

/** Counts the rows that queries return. */
class CountingDriver implements Driver {
  rows = 0;
  readonly dialect;
  readonly #inner: Driver;

  constructor(inner: Driver) {
    this.#inner = inner;
    this.dialect = inner.dialect;
  }

  transaction: Driver['transaction'] = (work) =>
    this.#inner.transaction((tx) => work({ ...tx, query: this.#counted(tx) }));

  read: Driver['read'] = (work) => this.#inner.read((queries) => work({ query: this.#counted(queries) }));

  close(): Promise<void> {
    return this.#inner.close();
  }

  #counted(queries: Queries): Queries['query'] {
    return async <Row extends object>(...args: Parameters<Queries['query']>) => {
      const rows = await queries.query<Row>(...args);
      this.rows += rows.length;
      return rows;
    };
  }
}

let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waypost-blocked-'));
  for (const { crowd } of BLOCKED) {
    for (const count of [FEW, CROWD]) await buildTemplate(pathOf(crowd, count), crowd, count);
  }
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function pathOf(crowd: Blocked['crowd'], count: number): string {
  return join(folder, `${crowd?.queueName ?? crowd?.flowControl?.key}-${count}.db`);
}

async function buildTemplate(path: string, settings: Blocked['crowd'], count: number): Promise<void> {
  if (existsSync(path)) return;
  const driver = new SqliteDriver({ path });
  await migrate(driver);
  const world = await World.open(async () => createStore(driver));
  const step = 500;
  for (let from = 0; from < count; from += step) {
    const newMessages = Array.from({ length: step }, () => world.message({ settings: { ...settings } }));
    await world.save(newMessages);
  }
  await world.store.close();
}

interface Cost {
  rows: number;
  pages: number;
}

/** The cost of `work` with a crowd of `count` messages, after `prepare`. */
async function costOf(
  { crowd, block }: Blocked,
  count: number,
  work: (world: World) => Promise<unknown>,
  prepare: (world: World) => Promise<unknown> = async () => {},
): Promise<Cost> {
  const path = join(folder, 'open.db');
  rmSync(path, { force: true });
  copyFileSync(pathOf(crowd, count), path);
  const sqlite = new SqliteDriver({ path });
  const driver = new CountingDriver(sqlite);
  const world = await World.open(async () => createStore(driver));
  try {
    await block(world);
    await prepare(world);
    sqlite.pragma(`cache_size = ${CACHED_PAGES}`);
    const [rowsBefore, bytesBefore] = [driver.rows, bytesRead()];
    await work(world);
    return { rows: driver.rows - rowsBefore, pages: Math.ceil((bytesRead() - bytesBefore) / PAGE_BYTES) };
  } finally {
    await world.store.close();
  }
}

/** Half of the messages, in their own key. */
async function acceptHealthy(world: World): Promise<void> {
  const flowControl = { key: 'healthy', parallelism: HEALTHY, periodS: 1 };
  for (let index = 0; index < HEALTHY; index += 1) {
    await world.accept(index % 2 === 0 ? { settings: { flowControl } } : {});
  }
}

async function claimHealthy(world: World): Promise<void> {
  const { claimed } = await world.claim({ limit: 2 * HEALTHY, defaultCapacity: 2 * HEALTHY });
  expect(claimed).toHaveLength(HEALTHY);
}

/** Bytes that this thread has read so far, including the page cache of the system; 0 if the kernel does not report it. */
function bytesRead(): number {
  const account = '/proc/thread-self/io';
  return existsSync(account) ? Number(/^rchar: (\d+)$/m.exec(readFileSync(account, 'latin1'))?.[1]) : 0;
}

const BUSY = 'https://busy.example';

async function buildBacklog(count: number): Promise<string> {
  const path = join(folder, `line-${count}.db`);
  const driver = new SqliteDriver({ path });
  await migrate(driver);
  const world = await World.open(async () => createStore(driver));
  const state = { kind: 'origin', dueAtMs: T0 } as const;
  for (let from = 0; from < count; from += FEW) {
    await world.save(Array.from({ length: FEW }, () => world.message({ url: BUSY, state })));
  }
  // In addition, a backlog of each of so many origins.
  const lines = Array.from({ length: count }, (_, index) => world.message({ url: `https://${index}.example`, state }));
  for (let from = 0; from < count; from += FEW) await world.save(lines.slice(from, from + FEW));
  for (let index = 0; index < HEALTHY; index += 1) await world.accept({ url: BUSY, projectId: OTHER_PROJECT, state });
  await world.store.close();
  return path;
}

async function costOfBacklog(count: number): Promise<Cost> {
  const sqlite = new SqliteDriver({ path: await buildBacklog(count) });
  const driver = new CountingDriver(sqlite);
  const world = await World.open(async () => createStore(driver));
  sqlite.pragma(`cache_size = ${CACHED_PAGES}`);
  const [rowsBefore, bytesBefore] = [driver.rows, bytesRead()];
  const { claimed } = await world.claim({
    ...{ limit: 2 * HEALTHY, defaultCapacity: 2 * HEALTHY },
    backlogsToServe: [backlogKey(OTHER_PROJECT, BUSY)],
  });
  expect(claimed).toHaveLength(HEALTHY);
  const cost = { rows: driver.rows - rowsBefore, pages: Math.ceil((bytesRead() - bytesBefore) / PAGE_BYTES) };
  await world.store.close();
  return cost;
}

it('P9: a backlog of one project is read as fast with ten thousand messages in a backlog of another and before it at the same origin', async () => {
  const few = await costOfBacklog(FEW);
  const crowded = await costOfBacklog(20 * FEW);
  expect(crowded.rows).toBe(few.rows);
  expect(crowded.pages).toBeLessThanOrEqual(few.pages + CACHED_PAGES);
}, 120_000);

describe(`P9: with ${CROWD} messages of`, () => {
  it.each(CASES)('%s, a claim of others reads no more than with a few', async (_title, blocked) => {
    const few = await costOf(blocked, FEW, claimHealthy, acceptHealthy);
    const crowded = await costOf(blocked, CROWD, claimHealthy, acceptHealthy);
    expect(few.rows).toBeGreaterThanOrEqual(HEALTHY);
    expect(few.rows).toBeLessThan(10 * HEALTHY);
    expect(crowded.rows).toBe(few.rows);
    expect(crowded.pages).toBeLessThanOrEqual(few.pages + CACHED_PAGES);
  });

  it.each(CASES)('%s, one more of them is accepted without reading the others', async (_title, blocked) => {
    const join = (world: World) => world.accept({ settings: { ...blocked.crowd } });
    const few = await costOf(blocked, FEW, join);
    const crowded = await costOf(blocked, CROWD, join);
    expect(crowded.rows).toBe(few.rows);
    expect(crowded.pages).toBeLessThanOrEqual(few.pages + CACHED_PAGES);
  });
});
