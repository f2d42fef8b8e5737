/** What happened to runs and to their messages, event by event (contract W 18.2). */
import type { InProject, MessageId, MessageKey, ProjectId } from '../../../engine/model.ts';
import type { PageRequest } from '../../../engine/page.ts';
import type { RunAttributes, RunEventFilter } from '../../../engine/runs/log-store.ts';
import { recordEntryKeyOf } from '../../../workflow/step-info.ts';
import type { Queries, SqlParam } from '../../driver.ts';
import { also } from '../filter.ts';
import { type ContentRow, codeOfLogState, DETAIL_COLUMNS, type DetailRow } from '../messages/rows.ts';
import { pagedRead } from '../operation.ts';
import {
  CONTENT_SIZES,
  contentsOf,
  cutBySizes,
  cutPage,
  DETAIL_SIZES,
  type PageRows,
  type Slice,
  sizesOf,
  sliceSql,
} from '../page.ts';
import { messagesNamed } from '../read-page.ts';
import { LOGS, pageOfWindow } from '../windows.ts';
import { childrenOf, type RecordRow, recordsIn } from './children.ts';
import { invokersOf, knownRuns, responsesOf } from './known-runs.ts';
import { runConditions, selectRuns } from './run-filter.ts';
import { decodeRunEvents, RUN_STATES_FROM, type RunLogRow, type RunLogRows } from './run-log-rows.ts';

export interface ListRunEventsArgs {
  projectId: ProjectId;
  filter: RunAttributes;
  /** Both or none. */
  messages?: { keys: MessageKey[]; ids: MessageId[] };
  /** State codes. */
  states?: number[];
  slice: Slice;
}

const RUN_SUCCESS = codeOfLogState('RUN_SUCCESS');

/** Bytes of payloads of invoked runs that are read even for a page that is full. */
const CHILD_BYTES_MIN = 1024 * 1024;

async function windowOf(queries: Queries, args: ListRunEventsArgs): Promise<RunLogRows> {
  const found = await find(queries, args);
  const page = await cutByBytes(queries, found, args.slice.bytesMax);
  const runKeys = [...new Set(page.rows.map(({ run_key }) => run_key))];
  const contents = await contentsOf(queries, page.rows);
  const entryKeyByKey = entryKeysOf(contents);
  const records = await recordsOf(queries, page.rows, entryKeyByKey);
  const succeeded = page.rows.filter(({ state }) => state === RUN_SUCCESS).map(({ run_key }) => run_key);
  return {
    ...page,
    contents,
    entryKeyByKey,
    records,
    children: await childrenOf(
      queries,
      records.map(({ settings }) => settings),
      Math.max(CHILD_BYTES_MIN, args.slice.bytesMax - page.bytes),
    ),
    details: await queries.query<DetailRow & { seq: number }>(
      `select seq, ${DETAIL_COLUMNS.join(', ')} from log_details where seq in (??)`,
      [page.rows.map(({ n }) => n)],
    ),
    runs: await knownRuns(queries, runKeys),
    responses: await responsesOf(queries, succeeded),
    invokers: await invokersOf(queries, runKeys),
  };
}

export const listRunEvents = pagedRead(windowOf, {
  encode: ({
    projectId,
    filter: { messageId, state, ...filter },
  }: InProject & { filter: RunEventFilter; page: PageRequest }) => ({
    ...{ projectId, filter },
    ...(messageId && { messages: messagesNamed(messageId) }),
    ...(state && { states: state.map(codeOfLogState) }),
  }),
  decode: decodeRunEvents,
});

/** Only the results of waits and invocations have a record in another entry key. */
function entryKeysOf(contents: readonly ContentRow[]): Map<number, string> {
  const entryKeyByKey = new Map<number, string>();
  for (const { key, body } of contents) {
    const entryKey = body && recordEntryKeyOf(body);
    if (entryKey) entryKeyByKey.set(key, entryKey);
  }
  return entryKeyByKey;
}

async function recordsOf(
  queries: Queries,
  rows: readonly RunLogRow[],
  entryKeyByKey: ReadonlyMap<number, string>,
): Promise<RecordRow[]> {
  const results = rows.filter(({ message_key, state }) => state < RUN_STATES_FROM && entryKeyByKey.has(message_key));
  if (results.length === 0) return [];
  return recordsIn(queries, {
    runKeys: [...new Set(results.map(({ run_key }) => run_key))],
    entryKeys: [...new Set(entryKeyByKey.values())],
  });
}

function find(queries: Queries, args: ListRunEventsArgs): Promise<PageRows<RunLogRow>> {
  if (args.messages) return ofMessages(queries, args, args.messages);
  const { runId, runCreatedAtMs } = args.filter;
  return runId || runCreatedAtMs !== undefined ? ofRuns(queries, args) : ofProject(queries, args);
}

/** Reads along the list, one window at a time: most of its entries are of messages outside runs. */
function ofProject(
  queries: Queries,
  { projectId, filter: attributes, states, slice }: ListRunEventsArgs,
): Promise<PageRows<RunLogRow>> {
  const filter = runConditions(attributes);
  const joins = 'lookup runs r on (r.key = w.run_key) left lookup contents c on (c.key = r.key)';
  const isJoined = filter.texts.length > 0;
  also(filter, 'w.run_key is not null');
  if (states) also(filter, 'w.state in (??)', states);
  return pageOfWindow(queries, projectId, slice, {
    list: LOGS,
    reads: ['run_key', 'message_key', 'state'],
    selects: ['w.run_key', 'w.message_key', 'w.state'],
    joins: isJoined ? joins : '',
    filter,
    passesMost: false,
  });
}

/** Reads the runs' own index, for runs with an id or a creation time. */
function ofRuns(queries: Queries, args: ListRunEventsArgs): Promise<PageRows<RunLogRow>> {
  const conditions = runConditions(args.filter);
  return select(queries, args, {
    from: 'logs l',
    texts: [`l.run_key in list (${selectRuns(conditions)})`],
    params: [args.projectId, ...conditions.params],
  });
}

/** Reads the index of each message, which has few events. Events of the run name its first message: left out. */
function ofMessages(
  queries: Queries,
  args: ListRunEventsArgs,
  { keys, ids }: { keys: MessageKey[]; ids: MessageId[] },
): Promise<PageRows<RunLogRow>> {
  const texts = ['l.message_key in (??)', 'm.key in (??)', 'm.id in (??)', 'l.run_key is not null', 'l.state < ?'];
  const params: SqlParam[] = [keys, keys, ids, RUN_STATES_FROM];
  const conditions = runConditions(args.filter);
  if (conditions.texts.length > 0) {
    texts.push(`l.run_key in list (${selectRuns(conditions)})`);
    params.push(args.projectId, ...conditions.params);
  }
  return select(queries, args, { from: 'logs l lookup contents m on (m.key = l.message_key)', texts, params });
}

async function select(
  queries: Queries,
  { projectId, states, slice }: ListRunEventsArgs,
  { from, texts, params }: { from: string; texts: string[]; params: SqlParam[] },
): Promise<PageRows<RunLogRow>> {
  const range = sliceSql(slice, 'l.at_ms', 'l.seq');
  // The plus keeps the planner from walking the project's whole list in order instead.
  const conditions = [...texts, '+l.project_id = ?', ...range.texts];
  const values: SqlParam[] = [...params, projectId, ...range.params];
  if (states) {
    conditions.push('l.state in (??)');
    values.push(states);
  }
  const rows = await queries.query<RunLogRow>(
    `select l.at_ms as "timeMs", l.seq as n, l.run_key, l.message_key, l.state from ${from}
     where ${conditions.join(' and ')}
     order by l.at_ms ${range.direction}, l.seq ${range.direction} limit ?`,
    [...values, slice.count + 1],
  );
  return cutPage(rows, slice.count, undefined);
}

/** Ends the page before it becomes too large: what was published, endpoints' answers, results of runs. */
async function cutByBytes(
  queries: Queries,
  page: PageRows<RunLogRow>,
  bytesMax: number,
): Promise<PageRows<RunLogRow> & { bytes: number }> {
  const bodies = await sizesOf(
    queries,
    CONTENT_SIZES,
    page.rows.map(({ message_key }) => message_key),
  );
  const answers = await sizesOf(
    queries,
    DETAIL_SIZES,
    page.rows.map(({ n }) => n),
  );
  const responses = await sizesOf(
    queries,
    'select key, length(response) as bytes from runs where key in (??)',
    page.rows.filter(({ state }) => state === RUN_SUCCESS).map(({ run_key }) => run_key),
  );
  const sizeOf = ({ n, state, message_key, run_key }: RunLogRow): number => {
    if (state === RUN_SUCCESS) return responses.get(run_key) ?? 0;
    return state < RUN_STATES_FROM ? (bodies.get(message_key) ?? 0) + (answers.get(n) ?? 0) : 0;
  };
  return cutBySizes(page, sizeOf, bytesMax);
}
