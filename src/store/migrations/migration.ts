/** The type of a schema migration. */
import type { SqlDialect } from '../driver.ts';

/** One numbered migration. A released migration is never edited: a change is another migration. */
export interface Migration {
  number: number;
  name: string;
  /**
   * True when programs that do not know this migration must not use the database any more. Prefer to expand the schema first
   * and to contract it a release later, so that this stays false.
   */
  breaking: boolean;
  statements(dialect: SqlDialect): string[];
}
