/** Lists the log entries of the messages of a project (contract M 18.2). */
import type { LogFilter } from '../../../engine/lists/filters.ts';
import type { PageRequest } from '../../../engine/lists/page.ts';
import type { InProject } from '../../../engine/model.ts';
import type { LogEntry } from '../../../engine/stores.ts';
import type { Queries } from '../../driver.ts';
import { addCondition, contentConditions } from '../lists/filter.ts';
import { contentsOf, cutByBytes, DETAIL_SIZES, messageOf, type PageRows, type Position } from '../lists/page.ts';
import { encodeList, type ListArgs, type MessageRefs, mapInBatches } from '../lists/read-page.ts';
import { LOGS, pageOfFew, pageOfWindow } from '../lists/windows.ts';
import {
  type ContentRow,
  codeOfLogState,
  DETAIL_COLUMNS,
  type DetailRow,
  decodeDetail,
  decodeMessage,
  logStateOf,
} from '../messages/rows.ts';
import { type Pause, pagedRead } from '../operation.ts';

type ListLogsArgs = ListArgs<LogFilter>;

export interface LogRow extends Position {
  message_key: number;
  state: number;
  response_status: number | null;
}

export interface LogRows extends PageRows<LogRow> {
  contents: ContentRow[];
  details: (DetailRow & { seq: number })[];
  bytes: number;
}

const FAILED = codeOfLogState('FAILED');

async function windowOf(queries: Queries, args: ListLogsArgs): Promise<LogRows> {
  const found = args.messages ? await ofMessages(queries, args, args.messages) : await ofProject(queries, args);
  const page = await cutByBytes(queries, found, DETAIL_SIZES, args.slice.bytesMax);
  const contents = await contentsOf(queries, page.rows);
  const details = await queries.query<DetailRow & { seq: number }>(
    `select seq, ${DETAIL_COLUMNS.join(', ')} from log_details where seq in (??)`,
    [page.rows.map(({ n }) => n)],
  );
  return { ...page, contents, details: [...details, ...(await errorsOfFailed(queries, page.rows))] };
}

export const listLogs = pagedRead(windowOf, {
  encode: (args: InProject & { filter: LogFilter; page: PageRequest }) => encodeList(args, codeOfLogState),
  decode,
});

async function decode({ rows, contents, details }: LogRows, _: ListLogsArgs, pause: Pause): Promise<LogEntry[]> {
  const messages = await mapInBatches(contents, decodeMessage, pause);
  const messageByKey = new Map(messages.map((message) => [message.key, message]));
  const detailBySeq = new Map(details.map((detail) => [detail.seq, decodeDetail(detail)]));
  return rows.map((row): LogEntry => {
    const detail = detailBySeq.get(row.n);
    return {
      atMs: row.timeMs,
      state: logStateOf(row.state),
      message: messageOf(messageByKey, row.message_key),
      ...(row.response_status !== null && { responseStatus: row.response_status }),
      ...(detail && { detail }),
    };
  });
}

/** A FAILED entry has no detail and shows the error of the entry before it. Both entries are always appended together. */
async function errorsOfFailed(queries: Queries, rows: readonly LogRow[]): Promise<LogRows['details']> {
  const failed = rows.flatMap(({ state, n }) => (state === FAILED ? n - 1 : []));
  if (failed.length === 0) return [];
  const errors = await queries.query<{ seq: number; error: string | null }>(
    'select seq, error from log_details where seq in (??)',
    [failed],
  );
  const none = { next_delivery_at_ms: null, response_status: null, response_header: null, response_body: null };
  return errors.map(({ seq, error }) => ({ ...none, seq: seq + 1, error }));
}

/** Reads the log of the project, one window at a time. */
function ofProject(
  queries: Queries,
  { projectId, filter: attributes, states, slice }: ListLogsArgs,
): Promise<PageRows<LogRow>> {
  const filter = contentConditions(attributes);
  const joins = filter.texts.length > 0 ? 'lookup contents c on (c.key = w.message_key)' : '';
  if (states) addCondition(filter, 'w.state in (??)', states);
  const passesMost = filter.texts.length === 0;
  // Events of runs are listed with the runs.
  addCondition(filter, 'w.run_key is null');
  return pageOfWindow(queries, projectId, slice, {
    list: LOGS,
    reads: ['message_key', 'state', 'run_key', 'response_status'],
    selects: ['w.message_key', 'w.state', 'w.response_status'],
    joins,
    filter,
    passesMost,
  });
}

/** Reads the few entries of each message by index. */
function ofMessages(
  queries: Queries,
  { projectId, filter: attributes, states, slice }: ListLogsArgs,
  { keys, ids }: MessageRefs,
): Promise<PageRows<LogRow>> {
  const filter = contentConditions(attributes);
  addCondition(
    filter,
    'w.message_key in (??) and c.key in (??) and c.id in (??) and w.run_key is null',
    keys,
    keys,
    ids,
  );
  if (states) addCondition(filter, 'w.state in (??)', states);
  return pageOfFew(queries, projectId, slice, {
    list: LOGS,
    from: 'logs w lookup contents c on (c.key = w.message_key)',
    selects: ['w.message_key', 'w.state', 'w.response_status'],
    filter,
  });
}
