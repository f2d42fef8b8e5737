/**
 * Builds a statement that runs one query for many sets of values, passed as arrays. One statement per set would cost this
 * process and the server far more than the few rows that such a statement returns.
 */
import type { SqlValue } from '../../../driver.ts';
import { toPostgres } from '../../../sql/postgres.ts';
import type { ColumnType } from './arrays.ts';
import type { BulkStatement } from './bulk.ts';

/**
 * `firstSet` determines the types. Each row of the result has `nth`, the number of its set of values, from 1. The rows of
 * a set keep the order of `text`, and a limit in `text` applies to each set.
 */
export function eachStatement(text: string, firstSet: readonly SqlValue[]): BulkStatement {
  const types = firstSet.map((value): ColumnType => (typeof value === 'number' ? 'int8' : 'text'));
  const arrays = types.map((type, index) => `$${index + 1}::${type}[]`);
  const values = types.map((_, index) => `v${index + 1}`);
  return {
    text: `select value_sets.nth, results.* from unnest(${arrays.join(', ')}) with ordinality value_sets(${values.join(', ')}, nth)
      cross join lateral (${toPostgres(text).replaceAll(/\$(\d+)/g, 'value_sets.v$1')}) results`,
    types,
  };
}
