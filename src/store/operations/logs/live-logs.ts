/** Reads the latest log entries of a project for a live view: of messages and runs, without bodies and headers. */
import type { MessageId, ProjectId } from '../../../engine/model.ts';
import type { LiveEntry, LogPosition } from '../../../engine/stores.ts';
import type { HttpMethod } from '../../../protocol/options/settings.ts';
import type { Queries } from '../../driver.ts';
import { mapInBatches } from '../lists/read-page.ts';
import { anyLogStateOf, codeOfLogState } from '../messages/rows.ts';
import { longRead } from '../operation.ts';

interface LiveRow extends LogPosition {
  state: number;
  id: string;
  url: string;
  method: string;
  topic_name: string | null;
  queue_name: string | null;
  schedule_id: string | null;
  flow_control_key: string | null;
  labels: string | null;
  run_id: string | null;
  error: string | null;
  next_delivery_at_ms: number | null;
  response_status: number | null;
}

const FAILED = codeOfLogState('FAILED');

/** The first `count` entries after `after`, up to `toMs`, except the numbers `except`. Includes entries of runs. */
export const listLogsAfter = longRead(
  (
    queries: Queries,
    args: { projectId: ProjectId; after: LogPosition; toMs: number; except: number[]; count: number },
  ): Promise<LiveRow[]> =>
    queries.query<LiveRow>(
      // A FAILED entry has the error of the entry before it, as in `listLogs`. The index has all columns of the inner
      // query. The separate condition on the time lets PostgreSQL skip the tables of other days.
      `select w.at_ms as "timeMs", w.seq as n, w.state, c.id, c.url, c.method, c.topic_name, c.queue_name, c.schedule_id,
         c.flow_control_key, c.labels, r.id as run_id, d.error, d.next_delivery_at_ms,
         case when w.state <> ${FAILED} then coalesce(d.response_status, w.response_status) end as response_status
       from (select at_ms, seq, message_key, state, run_key, response_status from logs
         where project_id = ? and at_ms >= ? and (at_ms, seq) > (?, ?) and at_ms <= ? and seq not in (??)
         order by at_ms, seq limit ?) w
       lookup contents c on (c.key = w.message_key)
       left lookup runs r on (r.key = w.run_key)
       left lookup log_details d on (d.seq = case when w.state = ${FAILED} then w.seq - 1 else w.seq end and d.at_ms = w.at_ms)
       order by w.at_ms, w.seq`,
      [args.projectId, args.after.timeMs, args.after.timeMs, args.after.n, args.toMs, args.except, args.count],
    ),
  (rows, _, pause) => mapInBatches(rows, decode, pause),
);

/**
 * The positions of the last `count` entries up to `toMs`, newest first, and the number of entries after `after`, if
 * given.
 */
export const newestLogs = longRead(
  async (
    queries: Queries,
    { projectId, toMs, count, after }: { projectId: ProjectId; toMs: number; count: number; after?: LogPosition },
  ): Promise<{ positions: LogPosition[]; countAfter: number }> => {
    const positions = await queries.query<LogPosition>(
      `select at_ms as "timeMs", seq as n from logs where project_id = ? and at_ms <= ?
       order by at_ms desc, seq desc limit ?`,
      [projectId, toMs, count],
    );
    if (!after) return { positions, countAfter: 0 };
    const [counted] = await queries.query<{ count: number }>(
      'select count(*) as count from logs where project_id = ? and at_ms >= ? and (at_ms, seq) > (?, ?) and at_ms <= ?',
      [projectId, after.timeMs, after.timeMs, after.n, toMs],
    );
    return { positions, countAfter: counted?.count ?? 0 };
  },
);

function decode(row: LiveRow): LiveEntry {
  const { timeMs, n, state, id, url, method, labels, error, response_status, next_delivery_at_ms } = row;
  const entry: LiveEntry = {
    timeMs,
    n,
    state: anyLogStateOf(state),
    messageId: id as MessageId,
    url,
    method: method as HttpMethod,
  };
  if (row.topic_name !== null) entry.topicName = row.topic_name;
  if (row.queue_name !== null) entry.queueName = row.queue_name;
  if (row.schedule_id !== null) entry.scheduleId = row.schedule_id;
  if (row.flow_control_key !== null) entry.flowControlKey = row.flow_control_key;
  if (labels !== null) entry.labels = labels.slice(1, -1).split(',');
  if (row.run_id !== null) entry.runId = row.run_id;
  if (error !== null) entry.error = error;
  if (next_delivery_at_ms !== null) entry.nextDeliveryTimeMs = next_delivery_at_ms;
  if (response_status !== null) entry.responseStatus = response_status;
  return entry;
}
