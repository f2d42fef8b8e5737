/** What is one numbered step of the schema? */
import type { SqlDialect } from '../driver.ts';

/** One numbered step. Never edited once released: a change is another step. */
export interface Migration {
  number: number;
  name: string;
  /**
   * True when programs that do not know this step must stop working on the database. It is better to expand first and
   * to contract a release later, so that this stays false.
   */
  breaking: boolean;
  statements(dialect: SqlDialect): string[];
}
