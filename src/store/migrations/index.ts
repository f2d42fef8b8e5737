/** Brings a database to this program's schema, or refuses one that a newer program has changed too much. */
import type { Driver, SqlDialect } from '../driver.ts';
import { messages } from './001-messages.ts';
import { urlGroups } from './002-url-groups.ts';
import { lanes } from './003-lanes.ts';
import { schedules } from './004-schedules.ts';
import { tokens } from './005-tokens.ts';
import { runs } from './006-runs.ts';
import { workers } from './007-workers.ts';

/** One numbered step. Never edited once released: a change is another step. */
export interface Migration {
  number: number;
  name: string;
  /**
   * True when programs that do not know this step must not work on the database any more. Prefer to expand
   * first and contract a release later, so that this stays false.
   */
  breaking: boolean;
  statements(dialect: SqlDialect): string[];
}

export const MIGRATIONS: readonly Migration[] = [messages, urlGroups, lanes, schedules, tokens, runs, workers];

/** The database was written by a newer Waypost in a way that this one cannot work with. */
export class SchemaTooNew extends Error {
  constructor(name: string) {
    super(`the database was changed by a newer Waypost (migration "${name}"); start that version or a later one`);
    this.name = 'SchemaTooNew';
  }
}

/** Applies what is missing in one transaction. Throws `SchemaTooNew`, having changed nothing. */
export function migrate(driver: Driver, migrations: readonly Migration[] = MIGRATIONS): Promise<void> {
  return driver.transaction(async (tx) => {
    if (driver.dialect.migrationLock !== null) await tx.query(driver.dialect.migrationLock);
    await tx.run(
      'create table if not exists migrations (number integer primary key, name text not null, breaking integer not null)',
    );
    const applied = await tx.query<{ number: number; name: string; breaking: number }>(
      'select number, name, breaking from migrations order by number',
    );
    const known = new Set(migrations.map((migration) => migration.number));
    const tooNew = applied.find((row) => row.breaking === 1 && !known.has(row.number));
    if (tooNew) throw new SchemaTooNew(tooNew.name);
    const done = new Set(applied.map((row) => row.number));
    for (const migration of migrations) {
      if (done.has(migration.number)) continue;
      for (const statement of migration.statements(driver.dialect)) await tx.run(statement);
      await tx.insertMany(
        'migrations',
        ['number', 'name', 'breaking'],
        [[migration.number, migration.name, migration.breaking ? 1 : 0]],
      );
    }
  });
}
