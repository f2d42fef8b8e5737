/** No statement may walk a table whose size is the backlog's: each must go by a key or an index. */
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import type { RunFilter } from '../../src/engine/run-log-store.ts';
import type { Schedule } from '../../src/engine/schedules.ts';
import type { Store } from '../../src/engine/stores.ts';
import { mintMessageId } from '../../src/protocol/ids.ts';
import { createStore } from '../../src/store/create.ts';
import type { Driver, Queries } from '../../src/store/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { MIGRATIONS, migrate } from '../../src/store/migrations/index.ts';
import { appended, begin, beginning, ending, invoked, waiter } from './conformance/run-world.ts';
import { buried, bytes, delivered, PROJECT, settlement, T0, World } from './conformance/world.ts';

/** Notes the text of each statement that passes. */
class RecordingDriver implements Driver {
  readonly texts = new Set<string>();
  readonly dialect;
  readonly #inner: Driver;

  constructor(inner: Driver) {
    this.#inner = inner;
    this.dialect = inner.dialect;
  }

  transaction: Driver['transaction'] = (work) =>
    this.#inner.transaction((tx) =>
      work({
        ...tx,
        ...this.#recorded(tx),
        send: (text, params) => {
          this.texts.add(text);
          return tx.send(text, params);
        },
        run: (text, params) => {
          this.texts.add(text);
          return tx.run(text, params);
        },
      }),
    );

  read: Driver['read'] = (work) => this.#inner.read((queries) => work(this.#recorded(queries)));

  close(): Promise<void> {
    return this.#inner.close();
  }

  #recorded(queries: Queries): Queries {
    return {
      query: (text, params) => {
        this.texts.add(text);
        return queries.query(text, params);
      },
    };
  }
}

async function useEverything(world: World): Promise<void> {
  const { store } = world;
  const { message, claimToken } = await world.acceptClaimed({ deduplication: { hash: 'h', expiresAtMs: T0 } });
  await store.settle(settlement(message, claimToken, delivered()), T0);
  const waiting = await world.accept();
  await world.claim({ unpark: [waiting.origin] });
  await world.claim({ roomByOrigin: {}, defaultRoom: 0 });
  await store.releaseAll(T0);
  await store.release([{ key: waiting.key, projectId: PROJECT, claimToken: 1 }], T0);
  await store.parkedOrigins();
  await store.find(PROJECT, waiting.id, T0);
  await store.standingOf(PROJECT, waiting.id, T0);
  await store.cancelById(PROJECT, [waiting.id], T0);
  await world.acceptClaimed();
  await store.cancelMatching(PROJECT, { label: ['x'], fromMs: T0, toMs: T0 }, 10, T0);
  await store.cancelMatching(PROJECT, {}, 10, T0);
  const dead = [await world.bury(T0), await world.bury(T0)];
  const orders = ['latestFirst', 'earliestFirst'] as const;
  const filters = [{}, { label: ['x'] }, { messageId: [message.id] }, { fromMs: T0, toMs: T0, url: ['u'] }];
  for (const order of orders) {
    for (const filter of filters) {
      for (const cursor of [undefined, `${T0}-5`]) {
        const page = cursor === undefined ? { count: 5, order } : { count: 5, order, cursor };
        await store.listLogs(PROJECT, filter, page);
        await store.listLogs(PROJECT, { ...filter, state: ['FAILED'] }, page);
        await store.listDead(PROJECT, filter, page);
        await store.listDead(PROJECT, { ...filter, responseStatus: [1] }, page);
      }
    }
  }
  await readRunLogs(store);
  const [first, second] = dead.map(({ dlqId }) => dlqId);
  await store.findDead(PROJECT, first ?? '');
  await store.reviveDead(PROJECT, [{ dlqId: first ?? '', successor: world.message() }], T0);
  await store.deleteDead(PROJECT, [second ?? '']);
  const endpoints = [{ url: 'https://example.com/' }];
  await store.addEndpoints(PROJECT, 'g', endpoints, { groupsMax: 1, endpointsMax: 1 }, T0);
  await store.setGroupHeaders(PROJECT, 'g', { 'Upstash-Retries': ['1'] }, T0);
  await store.findUrlGroup(PROJECT, 'g');
  await store.listUrlGroups(PROJECT);
  await store.removeEndpoints(PROJECT, 'g', endpoints, T0);
  await store.deleteUrlGroup(PROJECT, 'g');
  const schedule: Schedule = {
    key: world.number(),
    projectId: PROJECT,
    id: 's',
    createdAtMs: T0,
    plan: {
      cron: '* * * * *',
      destination: { kind: 'url', url: 'https://example.com/' },
      method: 'POST',
      header: {},
      body: new Uint8Array(),
      settings: waiting.settings,
    },
    standing: { version: 1, isPaused: false, nextAtMs: T0 },
  };
  await store.saveSchedule(schedule, undefined, 1);
  await store.dueSchedules({ nowMs: T0 - 1, limit: 1, bytesMax: 1 });
  await store.dueSchedules({ nowMs: T0, limit: 1, bytesMax: 1 });
  const messages = [world.message({ notBeforeMs: T0 + 60_000 })];
  await store.changeSchedules([{ key: schedule.key, fromVersion: 1, standing: schedule.standing, messages }], T0);
  await store.findSchedule(PROJECT, 's');
  await store.listSchedules(PROJECT);
  await store.deleteSchedule(PROJECT, 's');
  await useLanes(world);
  await useRuns(world);
  await useDeadRuns(world);
  await world.bury(T0);
  await store.dropExpired({
    logsBeforeMs: T0 + 1,
    deadBeforeMs: T0 + 1,
    keysUsedBeforeMs: T0 + 1,
    nowMs: T0 + 1,
    rowsMax: 1_000,
  });
}

async function useRuns(world: World): Promise<void> {
  const { store } = world;
  const claimToken = world.number();
  const first = await begin(world, { id: 'failing', standing: { kind: 'claimed', claimToken, worker: 'w1' } });
  const others = [await begin(world, { id: 'a' }), await begin(world, { id: 'b' })];
  const body = bytes('{"stepId":1,"stepType":"Wait"}');
  const steps = [first, ...others].flatMap((run) =>
    ['s1', 's2'].map((slot) => appended(world, run, { body, entry: { slot } })),
  );
  await store.accept(steps, T0);
  await store.accept([invoked(world, first, { id: 'child' })], T0);
  await store.accept([invoked(world, first, { id: 'child' })], T0);
  const adopting = beginning(world, { id: 'a' });
  if (adopting.run && adopting.entry) {
    adopting.run.isBySdk = true;
    adopting.entry.runKey = others[0]?.key ?? 0;
  }
  await store.accept([adopting], T0);
  await store.addWaiter(waiter(world, first), undefined, T0);
  for (const order of ['latestFirst', 'earliestFirst'] as const) {
    await store.listRunEvents(PROJECT, {}, { count: 10, order });
    await store.listRunHistories(PROJECT, {}, { count: 10, order });
  }
  const run = await store.findActiveRun(PROJECT, 'child');
  await store.findRun(PROJECT, first.key);
  await store.readJournal(first.key);
  await store.findRecords(PROJECT, run?.invokers ?? []);
  const change = { ...buried(T0), ending: ending(first, { state: 'RUN_FAILED' }), failureCallback: 'none' as const };
  await store.settle(settlement(first, claimToken, change), T0);
  const late = appended(world, first, { entry: { slot: 's7' } });
  await store.endRuns([{ ending: ending(others[0] ?? first), follows: [late] }], T0);
  await store.endRuns([{ ending: ending(others[1] ?? first, { state: 'RUN_CANCELED' }), follows: [] }], T0);
}

async function readRunLogs(store: Store): Promise<void> {
  const page = { count: 5, order: 'latestFirst', cursor: `${T0}-5` } as const;
  const filters: RunFilter[] = [
    ...[{}, { runId: ['a'] }, { runCreatedAtMs: T0 }, { label: ['x'], state: ['RUN_FAILED'] } satisfies RunFilter],
    ...[{ runs: [{ id: 'a', createdAtMs: T0 }] }, { fromMs: T0, toMs: T0 }],
    { messageId: [mintMessageId(1, (count) => new Uint8Array(count))], runUrl: ['u'] },
  ];
  for (const { runs, state, ...filter } of filters) {
    await store.listRunHistories(PROJECT, { ...filter, ...(runs && { runs }), ...(state && { state }) }, page);
    await store.listRunHistories(PROJECT, filter, page, 10);
    await store.listRunEvents(PROJECT, filter, page);
    await store.listRunEvents(PROJECT, { ...filter, state: ['RUN_FAILED'] }, page);
  }
}

async function useDeadRuns(world: World): Promise<void> {
  const { store } = world;
  const dlqId = `${T0}-1`;
  const filters = [{}, { label: ['x'], failureCallback: ['fail' as const] }, { runId: 'r', fromMs: T0, toMs: T0 }];
  for (const order of ['latestFirst', 'earliestFirst'] as const) {
    for (const filter of filters) {
      for (const cursor of [undefined, `${T0}-5`]) {
        const page = cursor === undefined ? { count: 5, order } : { count: 5, order, cursor };
        await store.listDeadRuns(PROJECT, filter, page);
      }
    }
  }
  await store.findDeadRuns(PROJECT, [dlqId]);
  await store.deleteDeadRuns(PROJECT, [dlqId]);
  await store.outlineJournal(1);
  await store.activeRunKeys(PROJECT, { urlPrefix: ['https://a'], fromMs: T0, toMs: T0 }, { afterKey: -1, limit: 5 });
  await store.findFailureCallback(PROJECT, dlqId);
  await store.repeatFailureCallback(PROJECT, dlqId, world.message(), T0);
  await store.cancelFailureCallback(PROJECT, dlqId, T0);
}

async function useLanes(world: World): Promise<void> {
  const { store } = world;
  await store.saveQueue(PROJECT, { name: 'q', parallelism: 1, isPaused: false }, T0);
  await store.saveQueue(PROJECT, { name: 'q', parallelism: 2, isPaused: false }, T0);
  const limited = { queueName: 'q', flowControl: { key: 'k', parallelism: 1, rate: 10, periodS: 1 } };
  const running = await world.acceptClaimed({ settings: limited });
  const waiting = await world.accept({ settings: limited });
  await world.accept({ settings: { flowControl: limited.flowControl } });
  const queued = await world.accept({ settings: { queueName: 'q' } });
  for (const { id } of [waiting, queued]) await store.standingOf(PROJECT, id, T0);
  await store.setQueuePaused(PROJECT, 'q', true, T0);
  await store.setQueuePaused(PROJECT, 'q', false, T0);
  await store.findQueue(PROJECT, 'q');
  await store.listQueues(PROJECT);
  const succession = { worker: 'w1', claimToken: world.number(), bytesMax: 1_000 };
  await store.settle(settlement(running.message, running.claimToken, delivered()), T0, succession);
  await world.claim({ limit: 10 });
  const queue = await store.deleteQueue(PROJECT, 'q', T0);
  if (queue) await store.emptyQueue(queue, 10, T0);
  await store.setKeyPaused(PROJECT, 'k', true, T0);
  await store.setKeyPaused(PROJECT, 'k', false, T0);
  await store.pinKey(PROJECT, 'k', { parallelism: 1 }, T0);
  await store.unpinKey(PROJECT, 'k', { parallelism: true, rate: true }, T0);
  await store.resetKeyRate(PROJECT, 'k', T0);
  await store.findKey(PROJECT, 'k', T0);
  await store.listKeys(PROJECT, { search: 'k', after: '', count: 10 }, T0);
  await store.countInFlight(PROJECT);
}

it('goes by a key or an index wherever a table may be large', async () => {
  const driver = new RecordingDriver(new SqliteDriver({ path: ':memory:' }));
  await migrate(driver);
  driver.texts.clear();
  const world = await World.open(async () =>
    createStore(driver, { limits: { queuesMax: 5, parallelismMax: 5, messagesPerDayMax: 1000, journalBytesMax: 0 } }),
  );
  await useEverything(world);
  await world.store.close();

  const db = new DatabaseSync(':memory:');
  const { dialect } = driver;
  for (const statement of MIGRATIONS.flatMap((migration) => migration.statements(dialect))) db.exec(statement);
  const scans: string[] = [];
  for (const text of driver.texts) {
    const sql = text
      .replaceAll('in (??)', 'in (select value from json_each(?))')
      .replace(/ for update(?: of \w+)?(?: skip locked)?$/, '');
    const steps = db.prepare(`explain query plan ${sql}`).all() as { detail: string }[];
    for (const { detail } of steps) {
      const large =
        /^SCAN (messages|contents|logs|dead|deduplications|log_details|url_groups|url_group_endpoints|schedules|schedule_plans|queues|flow_keys|message_counts|runs|journal|invocations|waiters|mail|[mcdlsqfprjit])\b/.test(
          detail,
        );
      if (large && !isBounded(detail)) scans.push(`${detail}: ${text}`);
    }
  }
  db.close();
  expect(driver.texts.size).toBeGreaterThan(60);
  expect(scans).toEqual([]);
});

it('counts who holds the slots of a lane without walking those who wait', async () => {
  const driver = new RecordingDriver(new SqliteDriver({ path: ':memory:' }));
  await migrate(driver);
  driver.texts.clear();
  const world = await World.open(async () => createStore(driver));
  await useLanes(world);
  await world.store.close();
  const db = new DatabaseSync(':memory:');
  const { dialect } = driver;
  for (const statement of MIGRATIONS.flatMap((migration) => migration.statements(dialect))) db.exec(statement);
  const holders = [
    [
      '(select count(*) from messages m where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is not null)',
      'messages_flow_slots',
    ],
    [
      '(select count(*) from (select 1 from messages m where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is null and m.line in (1, 4) limit 1000) as counted)',
      'messages_flow_let_go',
    ],
    [
      '(select count(distinct m.queue_slot) from messages m where m.project_id = q.project_id and m.queue_id = q.id and m.queue_slot is not null)',
      'messages_queue_slots',
    ],
  ] as const;
  for (const [part, index] of holders) {
    const users = [...driver.texts].filter((text) => text.replaceAll(/\s+/g, ' ').includes(part));
    expect(users, part).not.toEqual([]);
    const from = part.includes('q.id') ? 'queues q' : 'flow_keys f';
    const steps = db.prepare(`explain query plan select ${part} from ${from}`).all() as { detail: string }[];
    expect(steps.map(({ detail }) => detail).join('\n')).toMatch(new RegExp(`USING (COVERING )?INDEX ${index} `));
  }
  db.close();
});

/** These indexes hold only what is in flight, are walked in order up to a limit, or once at a start (held). */
it('looks slots of journals up without walking the journals', async () => {
  const driver = new RecordingDriver(new SqliteDriver({ path: ':memory:' }));
  await migrate(driver);
  driver.texts.clear();
  const world = await World.open(async () => createStore(driver));
  await useRuns(world);
  await world.store.close();
  const db = new DatabaseSync(':memory:');
  const { dialect } = driver;
  for (const statement of MIGRATIONS.flatMap((migration) => migration.statements(dialect))) db.exec(statement);
  const lookups = [...driver.texts].filter((text) => text.includes('j.slot in (??)'));
  for (const text of lookups) {
    const sql = text.replaceAll('in (??)', 'in (select value from json_each(?))');
    const steps = db.prepare(`explain query plan ${sql}`).all() as { detail: string }[];
    const details = steps.map(({ detail }) => detail);
    expect(details).toContainEqual(expect.stringMatching(/INDEX journal_slot \(run_key=\? AND slot=\?\)/));
  }
  db.close();
  expect(lookups).toHaveLength(2);
});

function isBounded(detail: string): boolean {
  return /USING (COVERING )?INDEX (messages_(claimed|due|held)|queues_deleted|schedules_due|flow_keys_wake)$/.test(
    detail,
  );
}
