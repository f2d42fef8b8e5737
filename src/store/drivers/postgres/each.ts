/**
 * How is one question asked for many values at once? As one statement that goes through arrays of the values: a statement for each would
 * cost this program and the server far more than its few rows.
 */
import type { SqlValue } from '../../driver.ts';
import type { ColumnType } from './arrays.ts';
import type { BulkStatement } from './bulk.ts';
import { toPostgres } from './text.ts';

/**
 * `given` shows the types of the values. Each row of the answer has `nth`: of which of them it is, from 1. The rows of one are
 * in the order that `text` asks for, since what has a limit of its own runs once for each.
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
