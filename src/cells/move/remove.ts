/** How do the rows of a project leave a database that has them no longer, a bounded piece at a time? */
import type { Driver, Transaction } from '../../store/driver.ts';
import { dropUnreferencedContents } from '../../store/operations/retention.ts';
import {
  type DependentRows,
  HISTORY,
  keysOf,
  PRESENT,
  type Row,
  type RowGroup,
  type RowRange,
  valuesOf,
  within,
} from './row-groups.ts';

const ROWS_MAX = 1_000;

/** What becomes of the contents that the rows tell of: all go, or those of which no other row tells. */
type Contents = 'all' | 'unreferenced';

/** Removes all rows of the project. What is due goes first, so that nobody comes across it. */
export async function removeProject(driver: Driver, projectId: number, afterPiece = () => {}): Promise<void> {
  for (const sheet of [...PRESENT.toReversed(), ...HISTORY]) {
    await removeStretch(driver, sheet, projectId, {}, 'all', afterPiece);
  }
}

/** Removes the rows of a stretch, with their parts. */
export async function removeStretch(
  driver: Driver,
  sheet: RowGroup,
  projectId: number,
  stretch: RowRange,
  contents: Contents,
  afterPiece = () => {},
): Promise<number> {
  // Each piece begins behind the one before. From the beginning, the database would go through all that it has deleted and
  // not yet vacuumed, again for each piece.
  let { after } = stretch;
  let reached = after;
  for (let removed = 0; ; ) {
    const count = await driver.transaction(async (tx) => {
      const rest = { ...stretch, after };
      const { condition, params } = within(sheet, projectId, rest);
      const rows = await tx.query<Row>(
        `select ${ownersOf(sheet).join(', ')} from ${sheet.table.name} where ${condition} order by ${sheet.order.join(', ')} limit ?`,
        [...params, ROWS_MAX],
      );
      const last = rows.at(-1);
      if (last === undefined) return 0;
      const upTo = valuesOf(last, sheet.order);
      await removeRows(tx, sheet, projectId, { ...rest, upTo }, rows, contents);
      reached = upTo;
      return rows.length;
    });
    after = reached;
    removed += count;
    if (count > 0) afterPiece();
    if (count < ROWS_MAX) return removed;
  }
}

/** Removes `rows`, which are those of the stretch. */
async function removeRows(
  tx: Transaction,
  sheet: RowGroup,
  projectId: number,
  stretch: RowRange,
  rows: readonly Row[],
  contents: Contents,
): Promise<void> {
  const told = sheet.content === undefined ? [] : keysOf(rows, sheet.content);
  for (const part of sheet.parts) told.push(...(await removePart(tx, part, keysOf(rows, part.owner))));
  const { condition, params } = within(sheet, projectId, stretch);
  await tx.run(`delete from ${sheet.table.name} where ${condition}`, params);
  if (told.length === 0) return;
  if (contents === 'all') await tx.run('delete from contents where key in (??)', [told]);
  else await dropUnreferencedContents(tx, told);
}

/** Removes the rows of a part; answers the keys of the contents that they told of. */
export async function removePart(
  tx: Transaction,
  { table, column, content }: DependentRows,
  keys: readonly number[],
): Promise<number[]> {
  if (keys.length === 0) return [];
  const told =
    content === undefined
      ? []
      : await tx.query<Row>(`select ${content} from ${table.name} where ${column} in (??)`, [keys]);
  await tx.run(`delete from ${table.name} where ${column} in (??)`, [keys]);
  return content === undefined ? [] : keysOf(told, content);
}

/** The columns by which a row is found, and what belongs to it. */
export function ownersOf({ order, parts, content }: RowGroup): string[] {
  return [...new Set([...order, ...parts.map(({ owner }) => owner), ...(content === undefined ? [] : [content])])];
}
