/** Saves, lists and triggers schedules. A trigger saves its messages and the next time of its schedule together. */
import type { Saved } from '../../../engine/messages/accepted.ts';
import type { ProjectId } from '../../../engine/model.ts';
import type { Schedule, ScheduleChange } from '../../../engine/schedules/schedules.ts';
import type { DueSchedule } from '../../../engine/schedules/store.ts';
import type { Queries, SqlValue, Transaction } from '../../driver.ts';
import { excludingMoving } from '../locking/placement.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { insertMessages } from '../messages/accept.ts';
import { bytesOf, codeOfLogState, weightOf } from '../messages/rows.ts';
import { longRead, read, write } from '../operation.ts';
import { insertFacts } from '../reports/operator-events.ts';
import { fieldsOf } from '../table.ts';
import {
  decodeSchedule,
  decodeScheduleViews,
  encodeSchedule,
  encodeScheduleChange,
  PLAN_COLUMNS,
  SCHEDULE_COLUMNS,
  type ScheduleRow,
  type ScheduleViewRows,
  STATE_COLUMNS,
  type StoredSchedule,
  type StoredScheduleChange,
  type TriggeredRow,
} from './schedule-rows.ts';

/** The maximum bytes of bodies in one list. */
const LIST_BODY_BYTES_MAX = 16 * 1024 * 1024;

const STATE_FIELDS = `s.key, s.project_id, s.id, s.created_at_ms, ${fieldsOf('s', STATE_COLUMNS)}`;
const PLAN_FIELDS_WITHOUT_BODY = fieldsOf('p', PLAN_COLUMNS.slice(1, -1));

interface ScheduleRef {
  projectId: ProjectId;
  id: string;
}

export interface SaveScheduleArgs<S = StoredSchedule> {
  schedule: S;
  fromVersion: number | undefined;
  schedulesMax: number;
}

/**
 * Creates the schedule, or replaces the schedule with the same id. `fromVersion` is the version that must be stored now,
 * or undefined if no schedule may be stored; otherwise nothing is written and the result is `'stale'`. The result is
 * `tooMany` if the project already has `schedulesMax` schedules (0: unlimited).
 */
export const saveSchedule = write(
  {
    weight: ({ schedule }) => ({ rows: 2, bytes: bytesOf(schedule.plan.at(-1)) }),
    touches: ({ schedule }) => ({ projects: [schedule.projectId] }),
  },
  async (
    { tx }: WriteContext,
    { schedule, fromVersion, schedulesMax }: SaveScheduleArgs,
  ): Promise<'saved' | 'stale' | 'tooMany'> => {
    const [present] = await tx.query<{ key: number; version: number }>(
      'select key, version from schedules where project_id = ? and id = ?',
      [schedule.projectId, schedule.id],
    );
    if (present?.version !== fromVersion) return 'stale';
    if (present) await remove(tx, present.key);
    else if (schedulesMax > 0 && (await countSchedules(tx, schedule.projectId)) >= schedulesMax) return 'tooMany';
    await tx.insertMany('schedules', SCHEDULE_COLUMNS, [schedule.row]);
    await tx.insertMany('schedule_plans', PLAN_COLUMNS, [schedule.plan]);
    return 'saved';
  },
  (args: SaveScheduleArgs<Schedule>) => ({ ...args, schedule: encodeSchedule(args.schedule) }),
);

export interface ChangeSchedulesArgs<Change = StoredScheduleChange> {
  changes: Change[];
  nowMs: number;
}

/**
 * Applies changes of schedules. Returns for each change how its messages were saved, or `'stale'` if the schedule is gone
 * or has another version; a stale change is not applied. Creates missing queues. Needs only a few statements for any
 * number of changes, because thousands of schedules may be due in the same minute.
 */
export const changeSchedules = write(
  {
    weight: ({ changes }) => {
      const { rows, bytes } = weightOf(changes.flatMap(({ messages }) => messages));
      return { rows: changes.length + rows, bytes };
    },
    touches: ({ changes }) => ({ schedules: changes.map(({ key }) => key) }),
  },
  async (context: WriteContext, { changes, nowMs }: ChangeSchedulesArgs): Promise<(Saved[] | 'stale')[]> => {
    const rows = await context.tx.query<{ key: number; version: number }>(
      'select key, version from schedules where key in (??) order by key for update',
      [changes.map(({ key }) => key)],
    );
    const versionByKey = new Map(rows.map(({ key, version }) => [key, version]));
    const saved = changes.filter(({ key, fromVersion }) => {
      if (versionByKey.get(key) !== fromVersion) return false;
      versionByKey.delete(key); // only the first of two changes in one command can know the version
      return true;
    });
    if (saved.length > 0) {
      const values = saved.map(({ key, state }): SqlValue[] => [key, ...state]);
      await context.tx.updateMany('schedules', 'key', STATE_COLUMNS, values);
      const facts = saved.flatMap(({ fact }) => fact ?? []);
      if (facts.length > 0) await insertFacts(context.tx, facts);
    }
    const savedMessages = await insertMessages(
      context,
      saved.flatMap(({ messages }) => messages),
      nowMs,
    );
    const isSaved = new Set(saved);
    let count = 0;
    return changes.map((change) => {
      if (!isSaved.has(change)) return 'stale';
      count += change.messages.length;
      return savedMessages.slice(count - change.messages.length, count);
    });
  },
  ({ changes, nowMs }: ChangeSchedulesArgs<ScheduleChange>) => ({ changes: changes.map(encodeScheduleChange), nowMs }),
);

/** Does nothing if the schedule does not exist. */
export const deleteSchedule = write(async ({ tx }: WriteContext, { projectId, id }: ScheduleRef): Promise<void> => {
  const [present] = await tx.query<{ key: number }>('select key from schedules where project_id = ? and id = ?', [
    projectId,
    id,
  ]);
  if (present) await remove(tx, present.key);
});

export const findSchedule = read(
  async (queries: Queries, { projectId, id }: ScheduleRef): Promise<ScheduleViewRows> => {
    const rows = await queries.query<ScheduleRow>(
      `select ${STATE_FIELDS}, ${PLAN_FIELDS_WITHOUT_BODY}, p.body from schedules s lookup schedule_plans p on (p.key = s.key)
     where s.project_id = ? and s.id = ?`,
      [projectId, id],
    );
    const lastMessages = await queries.query<TriggeredRow>(
      `${LAST_MESSAGES} where s.project_id = ? and s.id = ? order by +s.key, c.key`,
      [codeOfLogState('DELIVERED'), projectId, id],
    );
    return { rows, lastMessages };
  },
  (rows) => decodeScheduleViews(rows)[0],
);

/** All schedules by creation. Bodies beyond `LIST_BODY_BYTES_MAX` are missing. */
export const listSchedules = longRead(
  async (queries: Queries, { projectId }: { projectId: ProjectId }): Promise<ScheduleViewRows> => {
    const plain = await queries.query<Omit<ScheduleRow, 'body'> & { bytes: number }>(
      `select ${STATE_FIELDS}, s.bytes, ${PLAN_FIELDS_WITHOUT_BODY} from schedules s lookup schedule_plans p on (p.key = s.key)
     where s.project_id = ? order by s.created_at_ms, s.key`,
      [projectId],
    );
    const shown = withinBytes(plain, LIST_BODY_BYTES_MAX);
    const bodies = await bodiesOf(queries, shown);
    const lastMessages = await queries.query<TriggeredRow>(
      `${LAST_MESSAGES} where s.project_id = ? order by +s.key, c.key`,
      [codeOfLogState('DELIVERED'), projectId],
    );
    return { rows: plain.map((row) => ({ ...row, body: bodies.get(row.key) ?? null })), lastMessages };
  },
  decodeScheduleViews,
);

/**
 * The messages of the latest trigger have consecutive keys, and their contents exist as long as any row refers to them.
 * The query has no `exists`, because the planner may compute an `exists` for all keys at once, by reading the whole
 * table. An `order by` needs a plus: without the plus, the planner may read all schedules to sort.
 */
const LAST_MESSAGES = `select s.key as schedule_key, c.id as message_id,
  case when (select 1 from messages m where m.key = c.key limit 1) is not null then 1 else 0 end as unfinished,
  case when (select 1 from logs l where l.message_key = c.key and l.state = ? limit 1) is not null then 1 else 0 end as delivered
from schedules s lookup contents c on (c.key >= s.last_message_key and c.key < s.last_message_key + s.last_message_count)`;

export interface DueRows {
  due: (ScheduleRow & { busy: number })[];
  nextAtMs: number | undefined;
}

/**
 * Up to `limit` due schedules, earliest first, with at most about `bytesMax` bytes together, but at least one schedule.
 * If none is due, `nextAtMs` is the time at which the next schedule will be due.
 */
export const dueSchedules = read(
  async (
    queries: Queries,
    { nowMs, limit, bytesMax }: { nowMs: number; limit: number; bytesMax: number },
  ): Promise<DueRows> => {
    const { and, params } = await excludingMoving(queries);
    const candidates = await queries.query<{ key: number; bytes: number }>(
      `select key, bytes from schedules where paused = 0 and next_at_ms <= ?${and} order by next_at_ms, key limit ?`,
      [nowMs, ...params, limit],
    );
    if (candidates.length === 0) return { due: [], nextAtMs: await nextTime(queries) };
    const due = await queries.query<DueRows['due'][number]>(
      `select ${STATE_FIELDS}, ${PLAN_FIELDS_WITHOUT_BODY}, p.body,
       case when p.overlap = 'skip' and exists lookup (select 1 from messages m
         where m.key >= s.last_message_key and m.key < s.last_message_key + s.last_message_count) then 1 else 0 end as busy
     from schedules s lookup schedule_plans p on (p.key = s.key)
     where s.key in (??) order by s.next_at_ms, s.key`,
      [keysWithinBytes(candidates, bytesMax)],
    );
    return { due, nextAtMs: undefined };
  },
  ({ due, nextAtMs }) => ({
    due: due.map((row): DueSchedule => ({ schedule: decodeSchedule(row), isBusy: row.busy === 1 })),
    nextAtMs,
  }),
);

/**
 * About `limit` schedules whose last trigger was later than `passedAfterMs`, because the clock ran ahead. The next times
 * of these schedules are just as far ahead, so the index on next times finds them.
 */
export const strandedSchedules = read(
  async (
    queries: Queries,
    { passedAfterMs, limit, bytesMax }: { passedAfterMs: number; limit: number; bytesMax: number },
  ): Promise<ScheduleRow[]> => {
    const { and, params } = await excludingMoving(queries);
    const candidates = await queries.query<{ key: number; bytes: number }>(
      `select key, bytes from schedules where paused = 0 and next_at_ms > ? and passed_until_ms > ?${and}
     order by next_at_ms, key limit ?`,
      [passedAfterMs, passedAfterMs, ...params, limit],
    );
    if (candidates.length === 0) return [];
    return queries.query<ScheduleRow>(
      `select ${STATE_FIELDS}, ${PLAN_FIELDS_WITHOUT_BODY}, p.body
     from schedules s lookup schedule_plans p on (p.key = s.key) where s.key in (??) order by s.key`,
      [keysWithinBytes(candidates, bytesMax)],
    );
  },
  (rows): Schedule[] => rows.map(decodeSchedule),
);

/** The keys of the first rows that fit into `bytesMax` together, but at least one. */
function keysWithinBytes(candidates: readonly { key: number; bytes: number }[], bytesMax: number): number[] {
  const fitting = withinBytes(candidates, bytesMax);
  return (fitting.length > 0 ? fitting : candidates.slice(0, 1)).map(({ key }) => key);
}

/** The time at which the next schedule is due. */
async function nextTime(queries: Queries): Promise<number | undefined> {
  const { and, params } = await excludingMoving(queries);
  const [row] = await queries.query<{ next_at_ms: number }>(
    `select next_at_ms from schedules where paused = 0${and} order by next_at_ms, key limit 1`,
    params,
  );
  return row?.next_at_ms;
}

/** The first rows that have no more than `bytesMax` bytes together. */
function withinBytes<Row extends { bytes: number }>(rows: readonly Row[], bytesMax: number): Row[] {
  let bytes = 0;
  return rows.filter((row) => {
    bytes += row.bytes;
    return bytes <= bytesMax;
  });
}

async function bodiesOf(queries: Queries, rows: readonly { key: number }[]): Promise<Map<number, Uint8Array | null>> {
  const bodies = await queries.query<{ key: number; body: Uint8Array | null }>(
    'select key, body from schedule_plans where key in (??)',
    [rows.map(({ key }) => key)],
  );
  return new Map(bodies.map(({ key, body }) => [key, body]));
}

async function countSchedules(queries: Queries, projectId: ProjectId): Promise<number> {
  const [row] = await queries.query<{ schedules: number }>(
    'select count(*) as schedules from schedules where project_id = ?',
    [projectId],
  );
  return row?.schedules ?? 0;
}

async function remove(tx: Transaction, key: number): Promise<void> {
  await tx.send('delete from schedules where key = ?', [key]);
  await tx.send('delete from schedule_plans where key = ?', [key]);
}
