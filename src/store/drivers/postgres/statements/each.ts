/**
 * Runs one query for many sets of values as a single statement over arrays. One statement for each set would cost this
 * program and the server far more than the few rows it returns.
 */
import type { SqlValue } from '../../../driver.ts';
import { toPostgres } from '../../../sql/postgres.ts';
import type { ColumnType } from './arrays.ts';
import type { BulkStatement } from './bulk.ts';

/**
 * The types follow from the values in `given`. Each row of the answer has `nth`, the number of its set of values, from 1. The
 * rows of a set keep the order that `text` asks for, and a limit in `text` holds for each set.
 */
export function eachStatement(text: string, given: readonly SqlValue[]): BulkStatement {
  const types = given.map((value): ColumnType => (typeof value === 'number' ? 'int8' : 'text'));
  const arrays = types.map((type, index) => `$${index + 1}::${type}[]`);
  const values = types.map((_, index) => `v${index + 1}`);
  return {
    text: `select given.nth, answer.* from unnest(${arrays.join(', ')}) with ordinality given(${values.join(', ')}, nth)
      cross join lateral (${toPostgres(text).replaceAll(/\$(\d+)/g, 'given.v$1')}) answer`,
    types,
  };
}
