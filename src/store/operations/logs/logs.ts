/** What happened, in order: the log entries of a project (contract M 18.2). */
import type { AttributeFilter, LogFilter } from '../../../engine/filters.ts';
import type { InProject, Message, MessageId, MessageKey, ProjectId } from '../../../engine/model.ts';
import type { PageRequest } from '../../../engine/page.ts';
import type { LogEntry } from '../../../engine/stores.ts';
import type { Queries } from '../../driver.ts';
import { also, contentConditions } from '../filter.ts';
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
import {
  contentsOf,
  cutByBytes,
  cutPage,
  DETAIL_SIZES,
  messageOf,
  type PageRows,
  type Position,
  type Slice,
  sliceSql,
} from '../page.ts';
import { messagesNamed, TOGETHER } from '../read-page.ts';
import { LOGS, pageOfWindow } from '../windows.ts';

export interface ListLogsArgs {
  projectId: ProjectId;
  filter: AttributeFilter;
  /** Both or none. */
  messages?: { keys: MessageKey[]; ids: MessageId[] };
  /** State codes. */
  states?: number[];
  slice: Slice;
}

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
  encode: ({
    projectId,
    filter: { messageId, state, ...filter },
  }: InProject & { filter: LogFilter; page: PageRequest }) => ({
    ...{ projectId, filter },
    ...(messageId && { messages: messagesNamed(messageId) }),
    ...(state && { states: state.map(codeOfLogState) }),
  }),
  decode,
});

async function decode({ rows, contents, details }: LogRows, _: ListLogsArgs, pause: Pause): Promise<LogEntry[]> {
  const messageByKey = new Map<MessageKey, Message>();
  for (const content of contents) {
    messageByKey.set(content.key, decodeMessage(content));
    if (messageByKey.size % TOGETHER === 0) await pause();
  }
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

/** FAILED has no detail of its own. It has the error of the entry before it: both are appended together, always. */
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

/** Reads along the list, one window at a time. */
function ofProject(
  queries: Queries,
  { projectId, filter: attributes, states, slice }: ListLogsArgs,
): Promise<PageRows<LogRow>> {
  const filter = contentConditions(attributes);
  const joins = filter.texts.length > 0 ? 'lookup contents c on (c.key = w.message_key)' : '';
  if (states) also(filter, 'w.state in (??)', states);
  const passesMost = filter.texts.length === 0;
  // Events of runs are listed with the runs.
  also(filter, 'w.run_key is null');
  return pageOfWindow(queries, projectId, slice, {
    list: LOGS,
    reads: ['message_key', 'state', 'run_key', 'response_status'],
    selects: ['w.message_key', 'w.state', 'w.response_status'],
    joins,
    filter,
    passesMost,
  });
}

/** Reads the index of each message, which has few entries. */
async function ofMessages(
  queries: Queries,
  args: ListLogsArgs,
  { keys, ids }: { keys: MessageKey[]; ids: MessageId[] },
): Promise<PageRows<LogRow>> {
  const { slice } = args;
  const range = sliceSql(slice, 'l.at_ms', 'l.seq');
  const content = contentConditions(args.filter);
  const conditions = [...range.texts, ...content.texts];
  const params = [...range.params, ...content.params];
  if (args.states) {
    conditions.push('l.state in (??)');
    params.push(args.states);
  }
  const rows = await queries.query<LogRow>(
    // The plus keeps the planner from walking the project's whole list in order instead.
    `select l.at_ms as "timeMs", l.seq as n, l.message_key, l.state, l.response_status
     from logs l lookup contents c on (c.key = l.message_key)
     where l.message_key in (??) and c.key in (??) and c.id in (??) and +l.project_id = ? and l.run_key is null
     ${conditions.map((condition) => `and ${condition}`).join(' ')}
     order by l.at_ms ${range.direction}, l.seq ${range.direction} limit ?`,
    [keys, keys, ids, args.projectId, ...params, slice.count + 1],
  );
  return cutPage(rows, slice.count, undefined);
}
