/**
 * How many statements, transactions and bytes of write-ahead log does a message cost? Asked of PostgreSQL itself:
 * pg_stat_statements counts each statement that is executed, those that begin and end transactions included.
 */
import type pg from 'pg';
import type { Cluster } from '../../test/support/postgres/cluster.ts';
import { countStatements, onDatabase } from './database.ts';

export interface DatabaseWork {
  statements: number;
  transactions: number;
  /** Inserted, updated or deleted. */
  rowsWritten: number;
  walRecords: number;
  walBytes: number;
  /** Of the write-ahead log. */
  fsyncs: number;
  /** The most frequent texts. */
  frequent: StatementCount[];
}

export interface StatementCount {
  text: string;
  calls: number;
  /** In the server, in all. */
  milliseconds: number;
}

interface Totals {
  transactions: number;
  rowsWritten: number;
  walRecords: number;
  walBytes: number;
  fsyncs: number;
}

const FREQUENT = 15;
/** A session that is idle tells its counts within ten seconds. */
const REPORTED_AFTER_MS = 11_000;

/** What the database at `url` does during `work`, which must end with all of it done. */
export async function countWork(server: Cluster, url: string, work: () => Promise<void>): Promise<DatabaseWork> {
  return onDatabase(url, async (client) => {
    await client.query('create extension if not exists pg_stat_statements');
    await countStatements(server, 'top');
    await client.query('select pg_sleep($1)', [REPORTED_AFTER_MS / 1_000]); // what was done before is told
    await client.query('select pg_stat_statements_reset()');
    const before = await readTotals(client);
    try {
      await work();
    } finally {
      await countStatements(server, 'none');
    }
    const statements = await readStatements(client);
    await client.query('select pg_sleep($1)', [REPORTED_AFTER_MS / 1_000]);
    const after = await readTotals(client);
    return {
      statements: statements.reduce((sum, { calls }) => sum + calls, 0),
      transactions: after.transactions - before.transactions,
      rowsWritten: after.rowsWritten - before.rowsWritten,
      walRecords: after.walRecords - before.walRecords,
      walBytes: after.walBytes - before.walBytes,
      fsyncs: after.fsyncs - before.fsyncs,
      frequent: statements.slice(0, FREQUENT),
    };
  });
}

async function readTotals(client: pg.Client): Promise<Totals> {
  const { rows } = await client.query<Record<keyof Totals, string>>(`
    select d.xact_commit + d.xact_rollback as transactions, d.tup_inserted + d.tup_updated + d.tup_deleted as "rowsWritten",
      w.wal_records as "walRecords", w.wal_bytes as "walBytes",
      (select sum(fsyncs) from pg_stat_io where object = 'wal') as fsyncs
    from pg_stat_database d, pg_stat_wal w where d.datname = current_database()`);
  const [row] = rows;
  if (row === undefined) throw new Error('PostgreSQL has no counts of this database');
  const { transactions, rowsWritten, walRecords, walBytes, fsyncs } = row;
  return {
    transactions: Number(transactions),
    rowsWritten: Number(rowsWritten),
    walRecords: Number(walRecords),
    walBytes: Number(walBytes),
    fsyncs: Number(fsyncs),
  };
}

/** Without those of this measurement. The most frequent first. */
async function readStatements(client: pg.Client): Promise<StatementCount[]> {
  const { rows } = await client.query<{ text: string; calls: string; milliseconds: number }>(`
    select query as text, calls, total_exec_time as milliseconds from pg_stat_statements
    where dbid = (select oid from pg_database where datname = current_database())
      and query not like '%pg_stat_%' and query not like '%pg_sleep%'
    order by calls desc`);
  return rows.map(({ text, calls, milliseconds }) => ({ text, calls: Number(calls), milliseconds }));
}
