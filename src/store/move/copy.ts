/**
 * Copies a store into another database of either kind, table by table and in chunks, and then compares both sides. One
 * transaction saves each chunk with the progress of the copy.
 */
import type { Driver, Queries } from '../driver.ts';
import { appliedMigrations } from '../migrations/index.ts';
import { CHUNK_LIMITS, type ChunkLimits, readChunk } from './chunks.ts';
import {
  checkVersion,
  fingerprintOf,
  finishMove,
  MoveRefused,
  progressOf,
  resetTables,
  saveProgress,
  startMove,
} from './progress.ts';
import { RowSum } from './row-sum.ts';
import { MOVED_TABLES, type MovedTable } from './tables.ts';

export type Source = Pick<Driver, 'read'>;

export interface CopyOptions {
  /** Whether to replace all rows of the target. */
  overwrite?: boolean;
  /** Called after each copied chunk of rows. */
  onProgress?: (progress: { table: string; rows: number }) => void;
  /** Prepares the empty target for log entries of this period. */
  prepareLogs?: (logs: { fromMs: number; toMs: number }) => Promise<void>;
  /** Runs maintenance of the target after each chunk. */
  afterChunk?: () => void;
  limits?: ChunkLimits;
}

/** A copied table that is equal on both sides. */
export interface CopiedTable {
  table: string;
  rows: number;
  checksum: string;
}

/**
 * Copies all of `source` and returns the tables, after comparing both sides. `source` is a store with this program's
 * schema that no program writes to, or one snapshot of a store. After an interruption, call this function again with the
 * same arguments to continue. Throws `MoveRefused` when source and target do not fit, when the source has changed since
 * the start, or when a copied table differs. Servers then still refuse to open the target.
 */
export async function copyStore(source: Source, target: Driver, options: CopyOptions = {}): Promise<CopiedTable[]> {
  const fingerprint = await source.read(async (queries) => {
    checkVersion(await appliedMigrations(queries), 'source');
    return fingerprintOf(queries);
  });
  await startMove(target, fingerprint, { overwrite: options.overwrite ?? false });
  const logs = await source.read(logTimes);
  if (logs) await options.prepareLogs?.(logs);
  for (const table of MOVED_TABLES) await copyTable(source, target, table, options);
  const copied = await compareAll(source, target, options.limits);
  if ((await source.read(fingerprintOf)) !== fingerprint) {
    throw new MoveRefused(
      'the source was used while it was copied: stop its servers, then start again with --overwrite',
    );
  }
  await finishMove(target);
  return copied;
}

/** The times of the first and the last log entry, or undefined if the logs are empty. */
async function logTimes(queries: Queries): Promise<{ fromMs: number; toMs: number } | undefined> {
  const [row] = await queries.query<{ first: number | null; last: number | null }>(
    'select min(at_ms) as first, max(at_ms) as last from logs',
  );
  return row?.first == null || row.last === null ? undefined : { fromMs: row.first, toMs: row.last };
}

async function copyTable(
  source: Source,
  target: Driver,
  table: MovedTable,
  { onProgress, afterChunk, limits = CHUNK_LIMITS }: CopyOptions,
): Promise<void> {
  const progress = await progressOf(target, table);
  if (progress.kind === 'complete') return;
  let { after } = progress;
  for (let rows = 0; ; ) {
    const from = after;
    const chunk = await source.read((queries) => readChunk(queries, table, from, limits));
    await target.transaction(async (tx) => {
      if (chunk) await tx.insertMany(table.name, table.columns, chunk.rows);
      await saveProgress(tx, table, chunk?.lastKey);
    });
    afterChunk?.();
    if (chunk === undefined) return;
    after = chunk.lastKey;
    rows += chunk.rows.length;
    onProgress?.({ table: table.name, rows });
  }
}

/** Throws `MoveRefused` with the names of the tables that differ, which the next try copies again. */
async function compareAll(source: Source, target: Driver, limits?: ChunkLimits): Promise<CopiedTable[]> {
  const copied: CopiedTable[] = [];
  const different: string[] = [];
  for (const table of MOVED_TABLES) {
    const [wanted, found] = await Promise.all([sumTable(source, table, limits), sumTable(target, table, limits)]);
    if (!wanted.equals(found)) different.push(table.name);
    copied.push({ table: table.name, rows: found.rows, checksum: found.checksum });
  }
  if (different.length === 0) return copied;
  await resetTables(target, different);
  throw new MoveRefused(
    `not copied correctly: ${different.join(', ')}; run the command again to copy these tables again`,
  );
}

/** The number and the checksum of a table's rows, read in chunks. */
async function sumTable(source: Source, table: MovedTable, limits = CHUNK_LIMITS): Promise<RowSum> {
  const sum = new RowSum();
  for (let chunk = await readFrom(undefined); chunk !== undefined; chunk = await readFrom(chunk.lastKey)) {
    for (const row of chunk.rows) sum.add(row);
  }
  return sum;

  function readFrom(after: Parameters<typeof readChunk>[2]) {
    return source.read((queries) => readChunk(queries, table, after, limits));
  }
}
