/** Checks the pages for operators: the events of the log, the database role, and every query as it is printed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { systemClock } from '../../src/system/system.ts';
import { type Cluster, startCluster } from '../support/postgres/cluster.ts';
import { findLogEvents } from './log-events.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8');

describe('the events that operators are told of', () => {
  it('are those that the server can log', () => {
    const [, table = ''] = /## Events in the log\n(.*?)\n## /s.exec(page) ?? [];
    const rows = table.split('\n').filter((line) => line.startsWith('| `'));
    const listed = rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name));
    const { names, problems } = findLogEvents();
    expect(problems).toEqual([]);
    expect(listed.toSorted()).toEqual([...names].toSorted());
    expect(new Set(listed).size).toBe(listed.length);
  });
});

describe('the SQL that operators are told', () => {
  const statements = [...page.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, sql = '']) => sql);
  const queries = statements.filter((sql) => sql.startsWith('select'));
  const [forRole = '', forMonitor = '', ...others] = statements.filter((sql) => !sql.startsWith('select'));
  let cluster: Cluster;
  let monitor: pg.Client;

  beforeAll(async () => {
    // Roles belong to a whole cluster, so this one is no one else's.
    cluster = await startCluster();
    for (const statement of forRole.split(';\n')) if (statement !== '') await cluster.query(statement);
  });
  afterAll(async () => {
    await monitor?.end();
    await cluster?.dispose();
  });

  const urlFor = (role: string) => `postgres://${role}@127.0.0.1:${cluster.port}/waypost`;

  it('makes a role that can do all that a worker does', async () => {
    const store = await openPostgresStore({
      url: urlFor('waypost'),
      clock: systemClock,
      onFatal: (error) => {
        throw error;
      },
      sender: 'test',
    });
    try {
      const { projectId } = await store.projects.ensureProject({
        name: 'default',
        signingKeys: { current: 'a', next: 'b' },
        nowMs: systemClock.nowMs(),
      });
      expect(await store.projects.listProjects()).toMatchObject([{ projectId, name: 'default' }]);
    } finally {
      await store.close();
    }
  });

  it('makes a role that can ask every question on the page, and sees no body', async () => {
    expect(others).toEqual([]);
    for (const statement of forMonitor.split(';\n'))
      if (statement !== '') await cluster.query(statement, [], 'waypost');

    monitor = new pg.Client({ connectionString: urlFor('waypost_monitor') });
    await monitor.connect();
    expect(queries.length).toBeGreaterThan(10);
    for (const query of queries) await monitor.query(query);
    await expect(monitor.query('select body from contents')).rejects.toThrow('permission denied');
    await expect(monitor.query('select response_body from dead')).rejects.toThrow('permission denied');
  });

  it('asks an embedded database in its own words', async () => {
    const driver = new SqliteDriver({ path: ':memory:' });
    await migrate(driver);
    const asked = [...page.matchAll(/^sqlite3 -readonly waypost\.db "(.*)"$/gm)].map(([, sql = '']) => sql);
    expect(asked).toHaveLength(2);
    for (const sql of asked) await driver.read((on) => on.query(sql));
    await driver.close();
  });
});
