/** Migrates a database to this program's schema, or refuses a database that this program cannot use. */
import { type Driver, type Queries, StoreFatal } from '../driver.ts';
import { baseline } from './001-baseline.ts';
import type { Migration } from './migration.ts';

export const MIGRATIONS: readonly Migration[] = [baseline];

/** A newer Waypost has migrated the database to a schema that this program cannot use. */
export class SchemaTooNew extends StoreFatal {
  constructor(name: string) {
    super(`the database was changed by a newer Waypost (migration "${name}"); start that version or a later one`);
    this.name = 'SchemaTooNew';
  }
}

/** The database has a schema from before the first release, which cannot be migrated. */
class SchemaUnreleased extends StoreFatal {
  constructor(name: string) {
    super(
      `the database was made before Waypost 0.1.0, by a version that was never released (migration "${name}"); no release can open it: use an empty database`,
    );
    this.name = 'SchemaUnreleased';
  }
}

/**
 * The number of the row in `migrations` that marks the target of an unfinished move. The row is breaking, so every
 * program refuses the database, even a program that does not know moves.
 */
export const UNFINISHED_MOVE = 1_000_000_000;

/** The database is the target of an unfinished move. */
export class MoveUnfinished extends Error {
  constructor() {
    super(
      'the database is the target of a move that is not complete: run the same "waypost migrate-store" or "waypost restore" again, which continues where it stopped',
    );
    this.name = 'MoveUnfinished';
  }
}

export interface AppliedMigration {
  number: number;
  name: string;
  breaking: number;
}

/** Throws `SchemaUnreleased` if a number of `known` has another name: numbers before 0.1.0 started at 1 too. */
export async function appliedMigrations(
  queries: Queries,
  known: readonly Migration[] = MIGRATIONS,
): Promise<AppliedMigration[]> {
  const applied = await queries.query<AppliedMigration>(
    'select number, name, breaking from migrations order by number',
  );
  const names = new Map(known.map(({ number, name }) => [number, name]));
  const other = applied.find(({ number, name }) => (names.get(number) ?? name) !== name);
  if (other) throw new SchemaUnreleased(other.name);
  return applied;
}

/** Whether the database is a store of Waypost. */
export async function isStore(driver: Pick<Driver, 'dialect'>, queries: Queries): Promise<boolean> {
  return (await queries.query(driver.dialect.isStore)).length > 0;
}

/** Throws `SchemaTooNew` or `SchemaUnreleased` if this program cannot use the database. */
export async function checkSchema(queries: Queries): Promise<void> {
  refuseNewer(await appliedMigrations(queries), new Set(MIGRATIONS.map(({ number }) => number)));
}

function refuseNewer(applied: readonly AppliedMigration[], known: ReadonlySet<number>): void {
  const tooNew = applied.find((row) => row.breaking === 1 && !known.has(row.number));
  if (tooNew) throw new SchemaTooNew(tooNew.name);
}

/**
 * Applies all missing migrations in one transaction. Throws `SchemaTooNew`, `SchemaUnreleased`, or (unless the caller is the
 * move itself, `forMove`) `MoveUnfinished`, and then changes nothing.
 */
export async function migrate(
  driver: Driver,
  migrations: readonly Migration[] = MIGRATIONS,
  { forMove = false }: { forMove?: boolean } = {},
): Promise<void> {
  const { migrationLock } = driver.dialect;
  const readMissing = async (queries: Queries) =>
    missingMigrations(await appliedMigrations(queries, migrations), migrations, forMove);
  // Most starting programs find no missing migration, and need not wait for the lock, which another program may have for
  // long.
  const isCurrent = await driver.read(
    async (queries) => (await isStore(driver, queries)) && (await readMissing(queries)).length === 0,
  );
  if (isCurrent) return;
  await driver.transaction(async (tx) => {
    if (migrationLock !== null) await tx.query(migrationLock);
    await tx.run(
      'create table if not exists migrations (number integer primary key, name text not null, breaking integer not null)',
    );
    for (const migration of await readMissing(tx)) {
      for (const statement of migration.statements(driver.dialect)) await tx.run(statement);
      await tx.insertMany(
        'migrations',
        ['number', 'name', 'breaking'],
        [[migration.number, migration.name, migration.breaking ? 1 : 0]],
      );
    }
  });
}

/** Throws `SchemaTooNew` or `MoveUnfinished`. */
function missingMigrations(
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[],
  forMove: boolean,
): readonly Migration[] {
  if (!forMove && applied.some(({ number }) => number === UNFINISHED_MOVE)) throw new MoveUnfinished();
  refuseNewer(applied, new Set([UNFINISHED_MOVE, ...migrations.map(({ number }) => number)]));
  const done = new Set(applied.map(({ number }) => number));
  return migrations.filter(({ number }) => !done.has(number));
}
