/** The number of passes of a move through the history of its project. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { moveProject } from '../../../../src/cells/move/move-project.ts';
import type { Driver, Queries, SqlParam } from '../../../../src/store/driver.ts';
import { SqliteDriver } from '../../../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../../../src/store/migrations/index.ts';
import { T0 } from '../../conformance/world.ts';
import { type Cells, there, twoCells } from './cells-world.ts';

const DAY_MS = 86_400_000;

const opened: Driver[] = [];
let cells: Cells;
let asked: { text: string; params: readonly SqlParam[] }[];

beforeEach(async () => {
  const open = async () => {
    const driver = new SqliteDriver({ path: ':memory:' });
    opened.push(driver);
    await migrate(driver);
    return driver;
  };
  cells = await twoCells([await open(), await open()]);
  asked = [];
});
afterEach(async () => {
  for (const driver of opened.splice(0)) await driver.close();
});

/** Records the queries of `driver`. */
function watched(driver: Driver): Driver {
  const noting = <Q extends Queries>(queries: Q): Q =>
    Object.assign(Object.create(queries), {
      query: (text: string, params: readonly SqlParam[] = []) => {
        asked.push({ text, params });
        return queries.query(text, params);
      },
    });
  return Object.assign(Object.create(driver), {
    dialect: driver.dialect,
    read: <T>(work: (queries: Queries) => Promise<T>) => driver.read((queries) => work(noting(queries))),
    transaction: ((work, options) => driver.transaction((tx) => work(noting(tx)), options)) as Driver['transaction'],
  });
}

it('compares the whole log at its start and in the pause, however many passes it makes in between', async () => {
  let elapsedMs = 0;
  const clock = {
    wallMs: () => T0 + DAY_MS,
    get elapsedMs() {
      elapsedMs += 700; // each pass seems long, so another follows
      return elapsedMs;
    },
  };
  const options = there(cells);
  const [first] = await options.source.read((queries) =>
    queries.query<{ at: number }>('select min(at_ms) as at from logs where project_id = 1'),
  );
  await moveProject({ ...options, source: watched(options.source as Driver), clock });
  const digestsOf = (table: string) =>
    asked.filter(({ text }) => new RegExp(`count\\(\\*\\) as rows.* from ${table} `, 's').test(text));
  expect(digestsOf('runs').length).toBeGreaterThan(3);
  const whole = digestsOf('logs').filter(({ params: [, fromMs = 0] }) => Number(fromMs) <= Number(first?.at));
  expect(whole).toHaveLength(2);
});

it('deletes moved rows in chunks, each of which starts after the one before', async () => {
  const options = there(cells);
  const hashes = Array.from({ length: 2_500 }, (_, nth) => `hash ${String(nth).padStart(4, '0')}`);
  await cells.first.driver.transaction((tx) =>
    tx.insertMany(
      'deduplications',
      ['project_id', 'hash', 'message_id', 'expires_at_ms'],
      hashes.map((hash) => [1, hash, 'msg_1', T0 + DAY_MS]),
    ),
  );
  await moveProject({
    ...options,
    source: watched(options.source as Driver),
    onProgress: (progress) => {
      if ('step' in progress && progress.step === 'deleting') asked = [];
    },
  });
  const pieces = asked.filter(({ text }) => /^select hash from deduplications/.test(text));
  expect(pieces.map(({ params }) => params[1])).toEqual([1_000, 'hash 0999', 'hash 1999']);
});
