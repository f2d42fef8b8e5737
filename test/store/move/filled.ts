/** Stores for tests of moves: one with every kind of row and value, and one with workflows. */
import type { EngineSettings } from '../../../src/engine/settings.ts';
import type { Driver, SqlValue } from '../../../src/store/driver.ts';
import { SqliteDriver } from '../../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../../src/store/migrations/index.ts';
import { MOVED_TABLES, type MovedTable } from '../../../src/store/move/tables.ts';
import { openDatabase } from '../../simulation/database.ts';
import { WorkflowWorkload } from '../../simulation/workflow-workload.ts';
import { BODY_BYTES_MAX, World } from '../../simulation/world.ts';
import { ENGINE_SETTINGS } from '../../support/engine-settings.ts';
import { SeededRandom } from '../../support/seeded-random.ts';

const T0 = 1_800_000_000_000;
const DAY_MS = 86_400_000;
const NUMBER_MAX = Number.MAX_SAFE_INTEGER;

export interface Column {
  name: string;
  type: 'integer' | 'text' | 'blob';
  isRequired: boolean;
}

/** The actual columns of a migrated SQLite database. */
export async function columnsOf(driver: Driver, table: string): Promise<Column[]> {
  const rows = await driver.read((queries) =>
    queries.query<{ name: string; type: string; notnull: number; pk: number }>(`pragma table_info(${table})`),
  );
  return rows.map(({ name, type, notnull, pk }) => ({
    name,
    type: type.toLowerCase() as Column['type'],
    // The store sets the time of each event, a rule that SQLite cannot have for a column that was added later.
    isRequired: notnull === 1 || pk > 0 || name === 'at_ms',
  }));
}

/** Fills every table with `rows` rows with every kind of value that its columns may have. */
export async function fillRandomly(driver: Driver, random: SeededRandom, rows: number): Promise<void> {
  const model = new SqliteDriver({ path: ':memory:' });
  await migrate(model);
  for (const table of MOVED_TABLES) {
    const columns = await columnsOf(model, table.name);
    await driver.transaction(async (tx) => {
      if (table.name === 'numbers') {
        await tx.run('update numbers set next = next + ?', [random.int(1, 2 ** 52)]);
        return;
      }
      const values = Array.from({ length: rows }, (_, index) => rowOf(table, columns, random, index));
      await tx.insertMany(
        table.name,
        columns.map(({ name }) => name),
        values,
      );
    });
  }
  await model.close();
}

function rowOf(table: MovedTable, columns: readonly Column[], random: SeededRandom, index: number): SqlValue[] {
  return columns.map((column) => {
    if (!column.isRequired && random.chance(0.3)) return null;
    const isUnique = table.key.includes(column.name) || ['id', 'name', 'entry_key'].includes(column.name);
    if (column.type === 'text') return isUnique ? `${textOf(random)}${index}` : textOf(random);
    if (column.type === 'blob') return random.bytes(random.choose([1, 3, 200, 20_000]));
    if (isUnique && table.key.length > 1 && isOwner(column.name)) return index % 3;
    return numberOf(column.name, random, isUnique, index);
  });
}

/** Many rows belong to each owner, so that keys of two columns matter. */
function isOwner(column: string): boolean {
  return column === 'project_id' || column === 'run_key';
}

function numberOf(column: string, random: SeededRandom, isUnique: boolean, index: number): number {
  if (column.endsWith('_ms')) return T0 + random.int(-10, 10) * DAY_MS + random.int(0, DAY_MS);
  if (isUnique) return NUMBER_MAX - index * 1_000; // the first one is the largest possible number
  if (/_key$|_token$|_seq$/.test(column)) return random.int(1, NUMBER_MAX);
  return random.int(0, 3);
}

/** Texts of programs, people and attackers. */
const TEXTS = [
  '',
  'plain',
  "it's",
  'ä ß 漢字 👩‍🚀',
  '{"a":"\\u0000"}',
  'two\nlines\r\n',
  ' blank ',
  '%00',
  '\uF8FE0',
  '\\N',
  'NUL\0NUL',
];

function textOf(random: SeededRandom): string {
  return random.chance(0.2) ? random.choose(TEXTS).repeat(random.int(1, 300)) : random.choose(TEXTS);
}

/** The database of a simulated server that runs workflows, stopped while they run. */
export async function playWorkflows(seed: number, steps: number): Promise<Driver> {
  const random = new SeededRandom(seed);
  const driver = await openDatabase();
  const world = new World({ random, drivers: [driver], settings: SETTINGS });
  const workload = new WorkflowWorkload(world, random);
  void world.start();
  await world.clock.runUntil(() => world.engine !== undefined, 1_000);
  for (let step = 0; step < steps; step += 1) {
    workload.step();
    await world.clock.advanceBy(workload.pauseMs());
  }
  world.crash('to be moved');
  return driver;
}

const SETTINGS: EngineSettings = {
  ...ENGINE_SETTINGS,
  inFlightPerOriginMax: 4,
  inFlightBytesMax: 1_000 * BODY_BYTES_MAX,
  logRetentionMs: 10 * DAY_MS,
  dlqRetentionMs: 10 * DAY_MS,
  retentionIntervalMs: 3_600_000,
  lazyFetchBytes: 3_000,
};
