/** No statement reads a table as large as the backlog: each uses a key or an index. */
import { constants, DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { COUNTED_OF_ALL_MAX } from '../../src/engine/lists/unfinished.ts';
import { createStore } from '../../src/store/create.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { MIGRATIONS, migrate } from '../../src/store/migrations/index.ts';
import { toSqlite } from '../../src/store/sql/sqlite.ts';
import { World } from './conformance/world.ts';
import { RecordingDriver } from './recording-driver.ts';
import { useEverything, useLanes, useRuns } from './use-everything.ts';

/** The statements of all operations of a store, and an empty database for them. */
let everything: { texts: ReadonlySet<string>; db: DatabaseSync };
beforeAll(async () => {
  const driver = new RecordingDriver(new SqliteDriver({ path: ':memory:' }));
  await migrate(driver);
  driver.params.clear();
  const world = await World.open(async () =>
    createStore(driver, { limits: { queuesMax: 5, parallelismMax: 5, messagesPerDayMax: 1000, journalBytesMax: 0 } }),
  );
  await useEverything(world);
  await world.store.close();
  const db = new DatabaseSync(':memory:');
  for (const statement of MIGRATIONS.flatMap((migration) => migration.statements(driver.dialect))) db.exec(statement);
  everything = { texts: new Set(driver.params.keys()), db };
});
afterAll(() => everything.db.close());

it('uses a key or an index wherever a table may be large', () => {
  const { texts, db } = everything;
  const scans: string[] = [];
  for (const text of texts) {
    const steps = db.prepare(`explain query plan ${toSqlite(text)}`).all() as { detail: string }[];
    for (const { detail } of steps) {
      const large =
        /^SCAN (messages|contents|logs|dead|deduplications|log_details|url_groups|url_group_endpoints|schedules|schedule_plans|queues|flow_keys|message_counts|minutes|runs|journal|invocations|waiters|pending_events|[mcdlsqfprjit])\b/.test(
          detail,
        );
      if (large && !isBounded(detail) && !isCountedToLimit(text)) scans.push(`${detail}: ${text}`);
    }
  }
  expect(texts.size).toBeGreaterThan(60);
  expect(scans).toEqual([]);
});

it('prepares no statement again to run it with other values', () => {
  const { texts, db } = everything;
  let asked = 0;
  db.setAuthorizer(() => {
    asked += 1; // for each table and column of a statement, whenever it is prepared
    return constants.SQLITE_OK;
  });
  const preparedAnew: string[] = [];
  for (const text of texts) {
    if (!text.includes('limit ')) continue; // the others change rows, or are like these
    const statement = db.prepare(toSqlite(text));
    const before = asked;
    for (const value of [1, 2]) statement.all(...Array.from(text.matchAll(/\?+/g), () => value));
    if (asked > before) preparedAnew.push(text);
  }
  db.setAuthorizer(null);
  expect(preparedAnew).toEqual([]);
});

it("counts the holders of a lane's permits without reading its waiting messages", async () => {
  const driver = new RecordingDriver(new SqliteDriver({ path: ':memory:' }));
  await migrate(driver);
  driver.params.clear();
  const world = await World.open(async () => createStore(driver));
  await useLanes(world);
  await world.store.close();
  const db = new DatabaseSync(':memory:');
  const { dialect } = driver;
  for (const statement of MIGRATIONS.flatMap((migration) => migration.statements(dialect))) db.exec(statement);
  const holders = [
    [
      '(select count(*) from messages m where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is not null)',
      'messages_flow_permits',
    ],
    [
      '(select count(*) from (select 1 from messages m where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is null and m.wait_state in (1, 4) limit 1000) as counted)',
      'messages_flow_released',
    ],
    [
      '(select count(distinct m.queue_permit) from messages m where m.project_id = q.project_id and m.queue_id = q.id and m.queue_permit is not null)',
      'messages_queue_permits',
    ],
  ] as const;
  for (const [part, index] of holders) {
    const users = [...driver.params.keys()].filter((text) => text.replaceAll(/\s+/g, ' ').includes(part));
    expect(users, part).not.toEqual([]);
    const from = part.includes('q.id') ? 'queues q' : 'flow_keys f';
    const steps = db.prepare(`explain query plan select ${part} from ${from}`).all() as { detail: string }[];
    expect(steps.map(({ detail }) => detail).join('\n')).toMatch(new RegExp(`USING (COVERING )?INDEX ${index} `));
  }
  db.close();
});

/** These indexes contain only messages in flight, are read in order up to a limit, or once at a start. */
it('looks up entry keys without reading whole journals', async () => {
  const driver = new RecordingDriver(new SqliteDriver({ path: ':memory:' }));
  await migrate(driver);
  driver.params.clear();
  const world = await World.open(async () => createStore(driver));
  await useRuns(world);
  await world.store.close();
  const db = new DatabaseSync(':memory:');
  const { dialect } = driver;
  for (const statement of MIGRATIONS.flatMap((migration) => migration.statements(dialect))) db.exec(statement);
  const lookups = [...driver.params.keys()].filter((text) => text.includes('j.entry_key in (??)'));
  for (const text of lookups) {
    const steps = db.prepare(`explain query plan ${toSqlite(text)}`).all() as { detail: string }[];
    const details = steps.map(({ detail }) => detail);
    expect(details).toContainEqual(expect.stringMatching(/INDEX journal_entry_key \(run_key=\? AND entry_key=\?\)/));
  }
  db.close();
  expect(lookups).toHaveLength(2);
});

/** It counts whole indexes, but up to a limit. */
function isCountedToLimit(text: string): boolean {
  return text.includes(` limit ${COUNTED_OF_ALL_MAX}) w`);
}

function isBounded(detail: string): boolean {
  return /USING (COVERING )?INDEX (messages_(claimed|due|held)|queues_deleted|schedules_due|flow_keys_wake)$/.test(
    detail,
  );
}
