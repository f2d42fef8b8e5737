/** Deletes the rows of a project from a database, in bounded chunks. */
import type { Driver, Transaction } from '../../store/driver.ts';
import { dropUnreferencedContents } from '../../store/operations/retention.ts';
import {
  CURRENT_GROUPS,
  type DependentTable,
  HISTORY_GROUPS,
  keysOf,
  type Row,
  type RowGroup,
  type RowRange,
  rangeCondition,
  valuesOf,
} from './row-groups.ts';

const CHUNK_ROWS = 1_000;

/** Which contents are deleted with their rows: all contents, or only contents to which no other row refers. */
type ContentRemoval = 'all' | 'unreferenced';

/** Removes all rows of the project. Due messages are removed first, so that no worker finds a due message. */
export async function removeProject(driver: Driver, projectId: number, afterChunk = () => {}): Promise<void> {
  for (const group of [...CURRENT_GROUPS.toReversed(), ...HISTORY_GROUPS]) {
    await removeRange(driver, group, projectId, {}, 'all', afterChunk);
  }
}

/** Removes the rows of a range, with their dependents. */
export async function removeRange(
  driver: Driver,
  group: RowGroup,
  projectId: number,
  range: RowRange,
  contents: ContentRemoval,
  afterChunk = () => {},
): Promise<number> {
  // Each chunk starts after the last row of the previous chunk. Otherwise each query would scan all rows that were
  // deleted and not yet vacuumed.
  let { after } = range;
  let lastKey = after;
  for (let removed = 0; ; ) {
    const count = await driver.transaction(async (tx) => {
      const rest = { ...range, after };
      const { condition, params } = rangeCondition(group, projectId, rest);
      const rows = await tx.query<Row>(
        `select ${keyColumnsOf(group).join(', ')} from ${group.table.name} where ${condition} order by ${group.order.join(', ')} limit ?`,
        [...params, CHUNK_ROWS],
      );
      const last = rows.at(-1);
      if (last === undefined) return 0;
      const upTo = valuesOf(last, group.order);
      await removeRows(tx, group, projectId, { ...rest, upTo }, rows, contents);
      lastKey = upTo;
      return rows.length;
    });
    after = lastKey;
    removed += count;
    if (count > 0) afterChunk();
    if (count < CHUNK_ROWS) return removed;
  }
}

/** Removes `rows`, which must be all rows of the range, with their dependents and contents. */
async function removeRows(
  tx: Transaction,
  group: RowGroup,
  projectId: number,
  range: RowRange,
  rows: readonly Row[],
  contents: ContentRemoval,
): Promise<void> {
  const contentKeys = group.content === undefined ? [] : keysOf(rows, group.content);
  for (const dependent of group.dependents)
    contentKeys.push(...(await removeDependents(tx, dependent, keysOf(rows, dependent.owner))));
  const { condition, params } = rangeCondition(group, projectId, range);
  await tx.run(`delete from ${group.table.name} where ${condition}`, params);
  if (contentKeys.length === 0) return;
  if (contents === 'all') await tx.run('delete from contents where key in (??)', [contentKeys]);
  else await dropUnreferencedContents(tx, contentKeys);
}

/** Removes dependent rows. Returns the keys of the contents to which these rows referred. */
export async function removeDependents(
  tx: Transaction,
  { table, column, content }: DependentTable,
  keys: readonly number[],
): Promise<number[]> {
  if (keys.length === 0) return [];
  const contentKeys =
    content === undefined
      ? []
      : await tx.query<Row>(`select ${content} from ${table.name} where ${column} in (??)`, [keys]);
  await tx.run(`delete from ${table.name} where ${column} in (??)`, [keys]);
  return content === undefined ? [] : keysOf(contentKeys, content);
}

/** The columns that identify a row, its dependents and its content. */
export function keyColumnsOf({ order, dependents, content }: RowGroup): string[] {
  return [...new Set([...order, ...dependents.map(({ owner }) => owner), ...(content === undefined ? [] : [content])])];
}
