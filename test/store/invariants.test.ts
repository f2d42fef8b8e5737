/** The invariants of `waypost doctor`: a sound store passes, and each invariant finds a row that breaks it. */

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Schedule } from '../../src/engine/schedules/schedules.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { openInlineSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import { checkInvariants, INVARIANTS } from '../../src/store/operations/reports/invariants.ts';
import { testFolder } from '../support/folder.ts';
import { startRun } from './conformance/run-world.ts';
import { PROJECT, T0, World } from './conformance/world.ts';

/** The change that breaks each invariant of a store with one row of everything, and the offender that is found. */
const DAMAGE: Record<string, { sql: string; found: RegExp }> = {
  'Every unfinished message has its content.': {
    sql: 'delete from contents where key in (select key from messages where wait_state = 0 and claim_token is null)',
    found: /^message \d+$/,
  },
  'Every DLQ entry has its content.': {
    sql: 'delete from contents where key in (select key from dead)',
    found: /^DLQ entry \d+-\d+$/,
  },
  'Every log entry has the content it tells of.': {
    sql: 'delete from contents where key in (select key from dead)',
    found: /^log entry \d+$/,
  },
  'Every content is referred to by a message, a DLQ entry, a log entry, a journal or a run.': {
    sql: 'delete from logs; delete from dead',
    found: /^content msg_/,
  },
  'Every message belongs to a project that exists.': {
    sql: 'update messages set project_id = 99 where claim_token is not null',
    found: /^message \d+$/,
  },
  'Nothing is here of a project that lives in another cell.': {
    sql: 'update projects set placement = 4; delete from messages; delete from runs',
    found: /^project 1$/,
  },
  'A message is claimed with a token, a time and a worker, or not at all.': {
    sql: 'update messages set claimed_at_ms = null where claim_token is not null',
    found: /^message \d+$/,
  },
  'No claim token is used twice.': { sql: 'update messages set claim_token = 7', found: /^claim token 7$/ },
  'No message is both unfinished and dead.': {
    sql: 'update dead set key = (select min(key) from messages)',
    found: /^message \d+$/,
  },
  'Every message that waits for a queue has a queue.': { sql: 'delete from queues', found: /^message \d+$/ },
  'No message waits for a queue with a free permit.': {
    sql: 'update messages set queue_permit = null, queue_id = null where queue_permit is not null',
    found: /^queue line$/,
  },
  'No message waits for a queue that has given it a permit.': {
    sql: 'update messages set queue_permit = key where queue_id is not null and queue_permit is null',
    found: /^message \d+$/,
  },
  'Every message that waits for a flow-control key has one.': { sql: 'delete from flow_keys', found: /^message \d+$/ },
  'Every flow-control key that may start a message has a time at which it does.': {
    sql: 'update flow_keys set wake_at_ms = null, parallelism = null',
    found: /^flow-control key key$/,
  },
  'Every schedule has a plan of what it publishes.': { sql: 'delete from schedule_plans', found: /^schedule nightly$/ },
  'Every entry of a journal has its content.': {
    sql: 'delete from contents where key in (select key from journal where position = 0)',
    found: /^entry 0 of run \d+$/,
  },
  'Every run has the content of the message that it was triggered with.': {
    sql: 'delete from contents where key in (select key from runs)',
    found: /^run sleeping$/,
  },
  'Every journal belongs to a run.': { sql: 'delete from runs', found: /^journal \d+$/ },
  'The journal of an active run has all its entries, without a gap.': {
    sql: 'delete from journal where position = 0',
    found: /^run sleeping$/,
  },
  'Only active runs wait for events or have pending events.': {
    sql: "insert into waiters (key, project_id, run_key, event_id, deadline_ms) values (5, 1, 6, 'e', 7)",
    found: /^waiter 5$/,
  },
  'Of a run that is over and not ending, only what tells of its failure goes out; what was in flight is marked.': {
    sql: 'update runs set state = 3, completed_at_ms = 1',
    found: /^message \d+$/,
  },
  'A run that is ending is over.': {
    sql: 'insert into ending_runs (key, project_id, cancel_at_ms) select key, project_id, 0 from runs where state = 1',
    found: /^run \d+$/,
  },
  'Nothing is claimed of a run that is being revived.': {
    sql: 'update runs set state = 5 where state = 1',
    found: /^run sleeping$/,
  },
  'A run is active, or being revived, or has a time at which it ended.': {
    sql: 'update runs set completed_at_ms = 1',
    found: /^run sleeping$/,
  },
  'Every plan belongs to a schedule.': { sql: 'delete from schedules', found: /^plan \d+$/ },
  'Every endpoint belongs to a URL group, and every URL group has one.': {
    sql: 'delete from url_group_endpoints',
    found: /^URL group news$/,
  },
};

let folder: string;
let path: string;

beforeEach(async () => {
  folder = testFolder();
  path = join(folder, 'waypost.db');
  const world = await World.open(() => openInlineSqliteStore({ path, onFatal: (error) => expect.fail(error.message) }));
  await world.store.projects.ensureProject({ name: 'p', signingKeys: { current: '', next: '' }, nowMs: T0 });
  await world.accept();
  await world.acceptDead(T0);
  await world.acceptClaimed({ settings: { queueName: 'line' } });
  await world.accept({ settings: { queueName: 'line' } });
  const flowControl = { key: 'key', parallelism: 1, periodS: 1 };
  await world.acceptClaimed({ settings: { flowControl } });
  await world.accept({ settings: { flowControl } });
  await startRun(world, { id: 'sleeping', notBeforeMs: T0 + 1_000 });
  const unlimited = { groupsMax: 0, endpointsMax: 0 };
  await world.store.urlGroups.addEndpoints({
    projectId: PROJECT,
    name: 'news',
    endpoints: [{ url: 'https://example.com/news' }],
    limits: unlimited,
    nowMs: T0,
  });
  const plan: Schedule['plan'] = {
    cron: '@daily',
    destination: { kind: 'url', url: 'https://example.com/hook' },
    method: 'POST',
    header: {},
    body: new Uint8Array(0),
    settings: { dialect: 'upstash', maxRetries: 3, scheduleId: 'nightly' },
  };
  const state = { version: world.number(), isPaused: false, nextAtMs: T0 };
  const schedule = { key: world.number(), projectId: PROJECT, id: 'nightly', createdAtMs: T0, plan, state };
  await world.store.schedules.saveSchedule({ schedule, fromVersion: undefined, schedulesMax: 0 });
  await world.store.close();
});

async function findings(): Promise<Map<string, string[]>> {
  const driver = new SqliteDriver({ path, readOnly: true });
  const found = await driver.read(checkInvariants);
  await driver.close();
  return new Map(found.map(({ statement, offenders }) => [statement, offenders]));
}

describe('the invariants of a store', () => {
  it('hold in a store that only the store has written', async () => {
    expect([...(await findings()).values()].flat()).toEqual([]);
  });

  it.each(INVARIANTS.map(({ statement }) => statement))('find what breaks this: %s', async (statement) => {
    const damage = DAMAGE[statement];
    if (!damage) throw new Error('no damage is known that breaks it');
    const db = new DatabaseSync(path);
    db.exec(damage.sql);
    db.close();
    expect((await findings()).get(statement)?.[0]).toMatch(damage.found);
  });
});
