/**
 * Copies a store into another database of either kind, table by table and in chunks. Each chunk is saved in one transaction
 * with the progress of the copy. Then it reads both sides and compares them.
 */
import type { Driver, Queries } from '../driver.ts';
import { appliedMigrations } from '../migrations/index.ts';
import { CHUNK_LIMITS, type ChunkLimits, readChunk } from './chunks.ts';
import {
  checkVersion,
  fingerprintOf,
  finishMove,
  forgetTables,
  MoveRefused,
  noteProgress,
  progressOf,
  startMove,
} from './progress.ts';
import { RowSum } from './row-sum.ts';
import { MOVED_TABLES, type MovedTable } from './tables.ts';

export type Source = Pick<Driver, 'read'>;

export interface CopyOptions {
  /** Replace what the target has, whatever that is. */
  overwrite?: boolean;
  /** Called after each copied chunk of rows. */
  onProgress?: (progress: { table: string; rows: number }) => void;
  /** Prepares the target, which is still empty, for the logs of these times. */
  prepareLogs?: (logs: { fromMs: number; toMs: number }) => Promise<void>;
  /** Maintenance of the target after each chunk. */
  afterChunk?: () => void;
  limits?: ChunkLimits;
}

/** A table that is the same on both sides. */
export interface CopiedTable {
  table: string;
  rows: number;
  checksum: string;
}

/**
 * Copies all of `source` and returns the tables, found equal on both sides. `source` is a store with this program's schema
 * to which nobody writes, or one snapshot of it. After an interruption, call it again with the same arguments to continue.
 * Throws `MoveRefused` when source and target do not fit, when the source has changed since the start, or when a copied
 * table differs. The target then stays closed to servers.
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
      'the source was used while it was copied: stop its servers, then begin anew with --overwrite',
    );
  }
  await finishMove(target);
  return copied;
}

/** The times of the first and the last log entry; undefined: there are none. */
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
      await noteProgress(tx, table, chunk?.lastKey);
    });
    afterChunk?.();
    if (chunk === undefined) return;
    after = chunk.lastKey;
    rows += chunk.rows.length;
    onProgress?.({ table: table.name, rows });
  }
}

/** Throws `MoveRefused` naming the tables that differ, which the next try copies anew. */
async function compareAll(source: Source, target: Driver, limits?: ChunkLimits): Promise<CopiedTable[]> {
  const copied: CopiedTable[] = [];
  const different: string[] = [];
  for (const table of MOVED_TABLES) {
    const [wanted, found] = await Promise.all([sumTable(source, table, limits), sumTable(target, table, limits)]);
    if (!wanted.equals(found)) different.push(table.name);
    copied.push({ table: table.name, rows: found.rows, checksum: found.checksum });
  }
  if (different.length === 0) return copied;
  await forgetTables(target, different);
  throw new MoveRefused(`copied wrongly: ${different.join(', ')}; run the command again, which copies that anew`);
}

/** Number and checksum of a table's rows, read chunk by chunk. */
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
