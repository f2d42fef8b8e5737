/**
 * No statement reads a whole table on PostgreSQL or compares every row with every other, whatever the statistics are,
 * even right after a burst. Checks the prepared statements of the store with the settings of its transactions.
 */
import pg from 'pg';
import { beforeAll, describe, expect, it } from 'vitest';
import { COUNTED_OF_ALL_MAX } from '../../src/engine/lists/unfinished.ts';
import { createStore } from '../../src/store/create.ts';
import type { Transaction } from '../../src/store/driver.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { LogPartitions } from '../../src/store/drivers/postgres/log-partitions.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { systemClock } from '../../src/system/system.ts';
import type { PostgresVersion } from '../support/postgres/binaries.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { T0, World } from './conformance/world.ts';
import { useEverything } from './use-everything.ts';

/** Their statements are collected on all of them. */
const CONNECTIONS = 5;
const ROWS = 3_000;

const LARGE =
  /^(messages|contents|logs_\w+|log_details_\w+|dead|deduplications|url_groups|url_group_endpoints|schedules|schedule_plans|queues|flow_keys|message_counts|minutes|runs|journal|invocations|waiters|pending_events)$/;

/** They contain only messages in flight, or are read in order up to a limit. */
const BOUNDED = /^(messages_(claimed|due|held)|queues_deleted|schedules_due|flow_keys_wake)$/;

interface Node {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Filter?: string;
  'Join Filter'?: string;
  Plans?: Node[];
}

interface Statement {
  name: string;
  statement: string;
  params: number;
}

export function plansOn(version: PostgresVersion): void {
  describe(`on PostgreSQL ${version}`, () => {
    let driver: PostgresDriver;
    let client: pg.Client;

    beforeAll(async () => {
      const url = await freshDatabase(version);
      client = new pg.Client({ connectionString: url });
      await client.connect();
      const options = { url, connectionsMax: CONNECTIONS, timeoutMs: 30_000, prepares: true, clock: systemClock };
      const migrating = new PostgresDriver(options);
      await migrate(migrating);
      await new LogPartitions(migrating).createAhead(T0);
      await migrating.close();
      driver = new PostgresDriver(options);
      await keepStatisticsStale();
      const limits = { queuesMax: 5, parallelismMax: 5, messagesPerDayMax: 1000, journalBytesMax: 0 };
      const world = await World.open(async () => createStore(driver, { limits }));
      await useEverything(world);
      return async () => {
        await client.end();
        await driver.close();
      };
    });

    async function largeTables(): Promise<string[]> {
      const { rows } = await client.query<{ name: string }>(
        "select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'",
      );
      return rows.map(({ name }) => name).filter((name) => LARGE.test(name));
    }

    async function keepStatisticsStale(): Promise<void> {
      for (const name of await largeTables()) await client.query(`alter table ${name} set (autovacuum_enabled = off)`);
    }

    async function emptyAll(): Promise<void> {
      for (const name of await largeTables()) await client.query(`delete from ${name}`);
    }

    /** A few thousand rows in each table, which differ in all required columns. */
    async function fillAll({ after = 0, project = 'n' } = {}): Promise<void> {
      for (const name of await largeTables()) {
        const { rows: columns } = await client.query<{ name: string; type: string; required: boolean }>(
          `select attname as name, format_type(atttypid, null) as type, attnotnull as required from pg_attribute
         where attrelid = $1::regclass and attnum > 0 and not attisdropped`,
          [name],
        );
        const required = columns.filter((column) => column.required);
        const values = required.map((column) => {
          if (column.name === 'project_id') return project;
          if (column.name === 'at_ms') return `(${startOf(name)} + n)`;
          return column.type === 'text' ? "'x' || n" : column.type === 'smallint' ? '0' : 'n';
        });
        await client.query(
          `insert into ${name} (${required.map((column) => column.name).join(', ')})
         select ${values.join(', ')} from generate_series(${after + 1}, ${after + ROWS}) n`,
        );
      }
    }

    /** The statements of each connection, in a transaction of the driver. */
    async function onEachConnection(work: (tx: Transaction) => Promise<void>): Promise<void> {
      let begun = 0;
      const all = Promise.withResolvers<void>();
      const ask = () =>
        driver.transaction(async (tx) => {
          begun += 1;
          if (begun === CONNECTIONS) all.resolve();
          await all.promise; // so that none gets the connection of one that has finished
          await work(tx);
        });
      await Promise.all(Array.from({ length: CONNECTIONS }, ask));
    }

    async function findScans(): Promise<{ statements: number; scans: string[] }> {
      const seen = new Set<string>();
      const scans: string[] = [];
      await onEachConnection(async (tx) => {
        const prepared = await tx.query<Statement>(
          `select name, statement, cardinality(parameter_types) as params from pg_prepared_statements
         where name like 'waypost%' and statement ~ '^(select|insert|update|delete|with)' and statement !~ ' (pg_|information_schema)'`,
        );
        await tx.run('discard plans');
        for (const { name, statement, params } of prepared) {
          if (seen.has(statement)) continue;
          seen.add(statement);
          if (statement.includes(` limit ${COUNTED_OF_ALL_MAX}) w`)) continue; // it counts whole indexes, but up to a limit
          const values = params === 0 ? '' : `(${Array.from({ length: params }, () => 'null').join(', ')})`;
          const [row] = await tx.query<{ 'QUERY PLAN': string }>(`explain (format json) execute ${name}${values}`);
          const [{ Plan: plan }] = JSON.parse(row?.['QUERY PLAN'] ?? '') as [{ Plan: Node }];
          scans.push(...scansIn(plan).map((scan) => `${scan}: ${statement}`));
        }
      });
      return { statements: seen.size, scans };
    }

    it('uses a key or an index wherever a table may be large, when the planner has no statistics', async () => {
      const { statements, scans } = await findScans();
      expect(statements).toBeGreaterThan(60);
      expect(scans).toEqual([]);
    });

    it('uses them whichever tables the planner assumes to be nearly empty or huge', async () => {
      const names = await largeTables();
      const scans = new Set<string>();
      for (const isHuge of divisions(names.length)) {
        for (const [index, name] of names.entries()) {
          // As an `analyze` leaves it that comes amid a burst: the planner multiplies the rows a page that were seen
          // then with the pages that there are now.
          await client.query('update pg_class set relpages = $2, reltuples = $3 where oid = $1::regclass', [
            name,
            ...(isHuge(index) ? [1, 1_000_000] : [1_000_000, 1]),
          ]);
        }
        for (const scan of (await findScans()).scans) scans.add(scan);
      }
      expect([...scans]).toEqual([]);
    });

    it('uses them even if the tables were empty when they were last analyzed', async () => {
      await emptyAll();
      await client.query('vacuum analyze');
      await fillAll();
      expect((await findScans()).scans).toEqual([]);
    });

    it('uses them even if all rows were of one project when they were last analyzed', async () => {
      await emptyAll();
      await fillAll({ project: '1' });
      await client.query('vacuum analyze');
      await fillAll({ after: ROWS });
      expect((await findScans()).scans).toEqual([]);
    });
  });
}

/** Ways to make `count` things of two kinds, so that each pair differs in one of the ways. */
function divisions(count: number): ((index: number) => boolean)[] {
  const bits = Array.from({ length: Math.ceil(Math.log2(count)) }, (_, bit) => bit);
  return bits.flatMap((bit) => [
    (index: number) => ((index >> bit) & 1) === 1,
    (index: number) => ((index >> bit) & 1) === 0,
  ]);
}

/** Of the day of a table of logs, or of none. */
function startOf(table: string): number {
  const [, year, month, day] = /_(\d{4})(\d\d)(\d\d)$/.exec(table) ?? [];
  return day === undefined ? T0 + 100 * 86_400_000 : Date.UTC(Number(year), Number(month) - 1, Number(day));
}

function scansIn(node: Node): string[] {
  const { 'Relation Name': table = '', 'Index Name': index = '', 'Index Cond': condition, Plans: parts = [] } = node;
  // The due messages of one project must not be searched among those of all.
  const isOfOne = index === 'messages_due' && (node.Filter ?? '').includes('project_id');
  const isWhole =
    node['Node Type'] === 'Seq Scan' || (node['Node Type'].startsWith('Index') && condition === undefined);
  const found =
    isOfOne || (isWhole && LARGE.test(table) && !BOUNDED.test(index)) ? [`${node['Node Type']} ${table} ${index}`] : [];
  // Compares each row of one side with each of the other.
  const compared = node['Join Filter'] === undefined ? [] : [`each with each by ${node['Join Filter']}`];
  return [...found, ...compared, ...parts.flatMap(scansIn)];
}
