/** Which messages are there to be read: one by its id, or those that a bulk cancel means? */
import type { MessageId, MessageKey, ProjectId } from '../../engine/model.ts';
import type { AttributeFilter } from '../../engine/stores.ts';
import type { Queries, SqlParam } from '../driver.ts';
import { contentConditions } from './filter.ts';
import { CONTENT_FIELDS, type ContentRow, codeOfLogState } from './rows.ts';

export interface FindArgs {
  projectId: ProjectId;
  key: MessageKey;
  id: MessageId;
  deliveredSinceMs: number;
}

/** An unfinished message, or one that was delivered since. */
export async function find(queries: Queries, args: FindArgs): Promise<ContentRow | null> {
  const [row] = await queries.query<ContentRow>(
    `select ${CONTENT_FIELDS} from contents c
     where c.key = ? and c.project_id = ? and c.id = ?
       and (exists (select 1 from messages m where m.key = c.key)
         or exists (select 1 from logs l where l.message_key = c.key and l.state = ? and l.at_ms >= ?))`,
    [args.key, args.projectId, args.id, codeOfLogState('DELIVERED'), args.deliveredSinceMs],
  );
  return row ?? null;
}

export interface LiveRow extends ContentRow {
  retried: number;
  due_at_ms: number;
  parked: number;
  claimed_at_ms: number | null;
  cancel_requested_at_ms: number | null;
}

/** An unfinished message with what it waits for. */
export async function findLive(
  queries: Queries,
  args: { projectId: ProjectId; key: MessageKey; id: MessageId },
): Promise<LiveRow | null> {
  const [row] = await queries.query<LiveRow>(
    `select ${CONTENT_FIELDS}, m.retried, m.due_at_ms, m.parked, m.claimed_at_ms, m.cancel_requested_at_ms
     from messages m join contents c on c.key = m.key
     where m.key = ? and m.project_id = ? and c.id = ?`,
    [args.key, args.projectId, args.id],
  );
  return row ?? null;
}

/** Messages looked at in one snapshot. */
const WINDOW = 20_000;

export interface CandidatesArgs {
  projectId: ProjectId;
  filter: AttributeFilter;
  afterKey: MessageKey;
  limit: number;
}

export interface Candidates {
  keys: MessageKey[];
  /** Where to look on; absent when all were seen. */
  nextAfterKey?: MessageKey;
}

/** Keys of messages that a bulk cancel may take, oldest first, from a bounded stretch of the table. */
export async function findCandidates(queries: Queries, args: CandidatesArgs): Promise<Candidates> {
  const { projectId, filter, afterKey, limit } = args;
  const { texts, params } = contentConditions(filter);
  const conditions = ['c.project_id = ?', ...texts];
  const values: SqlParam[] = [projectId, ...params];
  if (filter.fromMs !== undefined) {
    conditions.push('c.created_at_ms >= ?');
    values.push(filter.fromMs);
  }
  if (filter.toMs !== undefined) {
    conditions.push('c.created_at_ms <= ?');
    values.push(filter.toMs);
  }
  const found = await queries.query<{ key: number }>(
    `select w.key from
       (select key, cancel_requested_at_ms from messages where key > ? order by key limit ?) w
       join contents c on c.key = w.key
     where w.cancel_requested_at_ms is null and ${conditions.join(' and ')}
     order by w.key limit ?`,
    [afterKey, WINDOW, ...values, limit],
  );
  const keys = found.map(({ key }) => key);
  const lastKey = keys.at(-1);
  if (keys.length === limit && lastKey !== undefined) return { keys, nextAfterKey: lastKey };
  const [end] = await queries.query<{ key: number }>(
    'select key from messages where key > ? order by key limit 1 offset ?',
    [afterKey, WINDOW - 1],
  );
  return end ? { keys, nextAfterKey: end.key } : { keys };
}
