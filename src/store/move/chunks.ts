/** Reads a table of any size in bounded memory: in chunks, in the order of its primary key. */
import type { Queries, SqlValue } from '../driver.ts';
import type { MovedTable } from './tables.ts';

/** The values of a row's key columns. */
export type RowKey = readonly SqlValue[];

export interface Chunk {
  /** The values of the table's columns, per row. */
  rows: SqlValue[][];
  /** The key of the last row, after which the next chunk starts. */
  lastKey: RowKey;
}

export interface ChunkLimits {
  rowsMax: number;
  /** Maximum total bytes of the large columns. A chunk of one row may exceed this maximum. */
  bytesMax: number;
}

/** `bytesMax` is about the size of one publish. */
export const CHUNK_LIMITS: ChunkLimits = { rowsMax: 1_000, bytesMax: 8 * 1024 * 1024 };

type Row = Record<string, SqlValue>;

/** Reads the rows after the key `after`, or, if undefined, from the first row. Returns undefined after the last row. */
export async function readChunk(
  queries: Queries,
  table: MovedTable,
  after: RowKey | undefined,
  limits: ChunkLimits,
): Promise<Chunk | undefined> {
  const found =
    table.large.length === 0
      ? await readByCount(queries, table, after, limits.rowsMax)
      : await readBySize(queries, table, after, limits);
  const last = found.at(-1);
  if (last === undefined) return undefined;
  return { rows: found.map((row) => valuesOf(row, table.columns)), lastKey: valuesOf(last, table.key) };
}

function readByCount(queries: Queries, table: MovedTable, after: RowKey | undefined, rowsMax: number): Promise<Row[]> {
  const { name, columns, key } = table;
  return queries.query<Row>(
    `select ${columns.join(', ')} from ${name}${afterKey(table, after)} order by ${key.join(', ')} limit ?`,
    [...(after ?? []), rowsMax],
  );
}

/** Reads the sizes first. Otherwise a thousand bodies of 10 MiB would be in memory before their total is known. */
async function readBySize(
  queries: Queries,
  table: MovedTable,
  after: RowKey | undefined,
  { rowsMax, bytesMax }: ChunkLimits,
): Promise<Row[]> {
  const { name, columns, key, large } = table;
  const keys = key.join(', ');
  const weight = large.map((column) => `coalesce(length(${column}), 0)`).join(' + ');
  const weighed = await queries.query<Row & { weight: number }>(
    `select ${keys}, ${weight} as weight from ${name}${afterKey(table, after)} order by ${keys} limit ?`,
    [...(after ?? []), rowsMax],
  );
  let bytes = 0;
  let count = 0;
  for (const row of weighed) {
    bytes += row.weight;
    if (count > 0 && bytes > bytesMax) break;
    count += 1;
  }
  const last = weighed[count - 1];
  if (last === undefined) return [];
  const isFirst = after === undefined;
  return queries.query<Row>(
    `select ${columns.join(', ')} from ${name}
     where ${tuple(key)} <= ${marks(key)}${isFirst ? '' : ` and ${tuple(key)} > ${marks(key)}`} order by ${keys}`,
    [...valuesOf(last, key), ...(after ?? [])],
  );
}

function afterKey({ key }: MovedTable, after: RowKey | undefined): string {
  return after === undefined ? '' : ` where ${tuple(key)} > ${marks(key)}`;
}

function tuple(key: readonly string[]): string {
  return `(${key.join(', ')})`;
}

function marks(key: readonly string[]): string {
  return `(${key.map(() => '?').join(', ')})`;
}

function valuesOf(row: Row, columns: readonly string[]): SqlValue[] {
  return columns.map((column) => {
    const value = row[column];
    if (value === undefined) throw new Error(`a row was read without its column ${column}`);
    return value;
  });
}
