/** Checks, in the middle of a simulation, that the database is consistent and every waiting message has a reason. */
import { explain } from '../../src/engine/messages/explain.ts';
import type { Queries } from '../../src/store/driver.ts';
import { decodeFlowKey, listKeys } from '../../src/store/operations/lanes/flow-commands.ts';
import { decodeQueue, listQueues } from '../../src/store/operations/lanes/queue-commands.ts';
import { decodeLive, findLive } from '../../src/store/operations/messages/find.ts';
import { checkInvariants } from '../../src/store/operations/reports/invariants.ts';
import { decodeScheduleViews } from '../../src/store/operations/schedules/schedule-rows.ts';
import { listSchedules } from '../../src/store/operations/schedules/schedules.ts';
import { isQuietSince, PROMPT_MS } from './disturbances.ts';
import { HEALTHY_ORIGIN } from './endpoints.ts';
import { triggersByMessage } from './schedule-stories.ts';
import { BODY_BYTES_MAX, PROJECT, type World } from './world.ts';

export async function inspect(world: World): Promise<void> {
  // While a project is being moved, no cell has all of its rows.
  if ((await world.count('select count(*) as count from project_moves')) > 0) return;
  await world.readAll(async (queries) => {
    for (const { statement, offenders } of await checkInvariants(queries)) {
      if (offenders.length > 0) world.violate('P3', `${statement} But: ${offenders.join(', ')}`);
    }
    await compareCounts(world, queries);
    await checkReasons(world, queries);
    await checkOverdue(world, queries);
    await compareTriggers(world, queries);
  });
}

/** The counts in the lists of lanes match the rows. */
async function compareCounts(world: World, queries: Queries): Promise<void> {
  for (const row of await listQueues(queries, { projectId: PROJECT, after: '', count: 1_000, nowMs: 0 })) {
    const { name, lag } = decodeQueue(row);
    const [counted] = await queries.query<{ count: number }>(
      `select count(*) as count from messages m join contents c on c.key = m.key join queues q on q.id = m.queue_id
       where q.deleted = 0 and c.queue_name = ? and q.name = c.queue_name`,
      [name],
    );
    if (lag !== counted?.count) world.violate('P4', `queue ${name} says ${lag} of ${counted?.count} messages`);
  }
  const nowMs = world.nowMs;
  const keys = await listKeys(queries, { projectId: PROJECT, search: '', after: '', count: 100, nowMs });
  for (const key of keys.map((row) => decodeFlowKey(row, nowMs))) {
    const rows = await queries.query<{ claim_token: number | null; wait_state: number; due_at_ms: number }>(
      'select claim_token, wait_state, due_at_ms from messages m join contents c on c.key = m.key where c.flow_control_key = ?',
      [key.key],
    );
    const inFlight = rows.filter((row) => row.claim_token !== null).length;
    const waiting = rows.filter(
      (row) => row.claim_token === null && row.wait_state === 2 && row.due_at_ms <= nowMs,
    ).length;
    if (key.inFlight !== inFlight) world.violate('P4', `key ${key.key} says ${key.inFlight} of ${inFlight} in flight`);
    if (key.waitListSize !== waiting) {
      world.violate('P4', `key ${key.key} says ${key.waitListSize} of ${waiting} waiting`);
    }
  }
}

/** P16: the state of a schedule shows its latest trigger with messages, and all messages of that trigger. */
async function compareTriggers(world: World, queries: Queries): Promise<void> {
  const triggers = triggersByMessage(world.ledger);
  // A trigger has the time of the wall clock; its messages have the time of the steady clock.
  const isAhead = world.jumps.length > 0;
  for (const { schedule } of decodeScheduleViews(await listSchedules(queries, { projectId: PROJECT }))) {
    const { id, key, state } = schedule;
    // If one process assigned both keys, a message with a smaller key than the schedule belongs to a deleted schedule
    // with the same id.
    const rows = await queries.query<{ key: number; id: string; created_at_ms: number }>(
      'select key, id, created_at_ms from contents where schedule_id = ? and key > ? order by key',
      [id, world.isShared ? -1 : key],
    );
    const made = rows.filter((row) => triggers.has(row.id));
    const { atMs, firstKey, messages } = state.lastTrigger ?? { atMs: 0, firstKey: 0, messages: 0 };
    // With several workers, later messages may have smaller keys.
    const latest = made.filter((row) => row.key >= firstKey && (!world.isShared || row.key < firstKey + messages));
    const isComplete = latest.every(
      (row, index) => row.key === firstKey + index && (row.created_at_ms === atMs || isAhead),
    );
    const count = state.lastTrigger || world.isShared ? latest.length : made.length;
    if (messages !== count || !isComplete) {
      world.violate(
        'P16',
        `schedule ${id} tells of ${messages} messages, and has made ${latest.length}`,
        latest[0]?.id,
      );
    }
    const isWithoutMessages = state.lastTrigger !== undefined && messages === 0;
    if (isWithoutMessages !== (state.error !== undefined)) {
      world.violate('P16', `schedule ${id} tells of ${messages} messages and of the error ${state.error}`);
    }
  }
}

/** P14: each unfinished message has a reason that can be true. */
async function checkReasons(world: World, queries: Queries): Promise<void> {
  const nowMs = world.nowMs;
  const rows = await queries.query<{ id: string; projectId: number }>(
    'select c.id, m.project_id as "projectId" from messages m join contents c on c.key = m.key',
  );
  for (const { id, projectId } of rows) {
    const live = await findLive(queries, { projectId, id, nowMs });
    if (!live) {
      world.violate('P14', 'nothing is known of an unfinished message', id);
      continue;
    }
    const { reason, sentence, ahead = 0 } = explain(decodeLive(live, nowMs), nowMs);
    const parallelism = live.queue?.parallelism ?? 1;
    if (reason === 'queued' && ahead < parallelism) {
      world.violate('P14', `waits without a reason: "${sentence}"`, id);
    }
  }
}

/**
 * Without recent faults, and with free capacity, no due message waits for long. Messages of queues are not checked,
 * because the time from which such a message may start is unknown.
 */
async function checkOverdue(world: World, queries: Queries): Promise<void> {
  if (world.settings.inFlightBytesMax < 16 * BODY_BYTES_MAX || !world.engine) return;
  if (!isQuietSince(world, world.clock.elapsedMs - PROMPT_MS)) return;
  const overdueAtMs = world.nowMs - PROMPT_MS;
  const overdue = await queries.query<{ id: string; wait_state: number }>(
    `select c.id, m.wait_state from messages m join contents c on c.key = m.key
       left join flow_keys f on f.project_id = m.project_id and f.key = m.flow_key
     where m.claim_token is null and m.origin = ? and m.due_at_ms <= ?
       and m.queue_id is null and (m.wait_state = 0 or (m.wait_state = 2 and f.wake_at_ms <= ?))`,
    [HEALTHY_ORIGIN, overdueAtMs, overdueAtMs],
  );
  for (const { id, wait_state } of overdue)
    world.violate('P9', `it is due in wait state ${wait_state}, and nothing starts it`, id);
}
