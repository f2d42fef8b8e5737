/**
 * Counts the statements, transactions and WAL bytes of a message with PostgreSQL's own statistics: pg_stat_statements counts
 * every executed statement, including the statements that begin and end transactions.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Cluster } from '../../test/support/postgres/cluster.ts';
import { countStatements, onDatabase } from './database.ts';

export interface DatabaseWork {
  statements: number;
  /** Transactions with writes. */
  transactions: number;
  /** Inserted, updated or deleted rows. */
  rowsWritten: number;
  walRecords: number;
  walBytes: number;
  /** Syncs of the WAL. */
  fsyncs: number;
  /** The most frequent statements. */
  frequent: StatementCount[];
}

export interface StatementCount {
  text: string;
  calls: number;
  /** Total time in the server. */
  milliseconds: number;
}

/** An idle session publishes its sync statistics within ten seconds. */
export const SYNCS_PUBLISHED_AFTER_MS = 11_000;

/** A separate schema, outside of the store's own. */
const SCHEMA = 'bench_statements';
const FREQUENT = 15;
const POLL_MS = 20;

/** The database work during `work`, which must resolve when all messages are settled. No other client may be active. */
export async function countWork(
  server: Cluster,
  url: string,
  syncsPublishedAfterMs: number,
  work: () => Promise<void>,
): Promise<DatabaseWork> {
  return onDatabase(url, async (client) => {
    await client.query(`create schema if not exists ${SCHEMA}`);
    await client.query(`create extension if not exists pg_stat_statements schema ${SCHEMA}`);
    const fsyncsBefore = await readSyncs(client, syncsPublishedAfterMs);
    await countStatements(server, 'top');
    await client.query(`select ${SCHEMA}.pg_stat_statements_reset()`);
    const before = await readPosition(client);
    try {
      await work();
    } finally {
      await countStatements(server, 'none');
    }
    const after = await readPosition(client);
    const rows = await readStatements(client);
    const sum = (value: (row: StatementRow) => number) => rows.reduce((total, row) => total + value(row), 0);
    return {
      statements: sum(({ calls }) => calls),
      transactions: after.transaction - before.transaction,
      rowsWritten: sum(({ text, rowCount }) => (/^\s*(insert|update|delete|with)\b/i.test(text) ? rowCount : 0)),
      walRecords: sum(({ walRecords }) => walRecords),
      walBytes: after.walBytes - before.walBytes,
      fsyncs: (await readSyncs(client, syncsPublishedAfterMs)) - fsyncsBefore,
      frequent: rows.slice(0, FREQUENT).map(({ text, calls, milliseconds }) => ({ text, calls, milliseconds })),
    };
  });
}

/** Resolves once each message is settled, which happens after its arrival. The queries for this are not counted. */
export async function waitForSettledMessages(url: string): Promise<void> {
  await onDatabase(url, async (client) => {
    await client.query("set pg_stat_statements.track = 'none'");
    while ((await client.query('select 1 from messages limit 1')).rowCount !== 0) await sleep(POLL_MS);
  });
}

interface Position {
  /** The number of transactions with writes since the server was created. */
  transaction: number;
  walBytes: number;
}

async function readPosition(client: pg.Client): Promise<Position> {
  const { rows } = await client.query<{ transaction: string; bytes: string }>(
    "select pg_snapshot_xmax(pg_current_snapshot())::text as transaction, pg_current_wal_insert_lsn() - '0/0' as bytes",
  );
  const [row] = rows;
  return { transaction: Number(row?.transaction), walBytes: Number(row?.bytes) };
}

async function readSyncs(client: pg.Client, publishedAfterMs: number): Promise<number> {
  await client.query('select pg_sleep($1)', [publishedAfterMs / 1_000]);
  const { rows } = await client.query<{ syncs: string }>(
    "select coalesce(sum(fsyncs), 0) as syncs from pg_stat_io where object = 'wal'",
  );
  return Number(rows[0]?.syncs);
}

interface StatementRow extends StatementCount {
  rowCount: number;
  walRecords: number;
}

/** All statements except those of this measurement, most frequent first. */
async function readStatements(client: pg.Client): Promise<StatementRow[]> {
  const { rows } = await client.query<Record<'text' | 'calls' | 'milliseconds' | 'rows' | 'wal_records', string>>(`
    select query as text, calls, total_exec_time as milliseconds, rows, wal_records from ${SCHEMA}.pg_stat_statements
    where dbid = (select oid from pg_database where datname = current_database()) and query not like '%pg_stat_%'
      and query not like '%pg_snapshot_xmax%'
    order by calls desc`);
  return rows.map((row) => ({
    text: row.text,
    calls: Number(row.calls),
    milliseconds: Number(row.milliseconds),
    rowCount: Number(row.rows),
    walRecords: Number(row.wal_records),
  }));
}
