/** Lists the log events of runs and of their messages (contract W 18.2). */

import type { PageRequest } from '../../../engine/lists/page.ts';
import type { InProject } from '../../../engine/model.ts';
import type { RunEventFilter } from '../../../engine/runs/logs/log-store.ts';
import { recordEntryKeyOf } from '../../../workflow/step-info.ts';
import type { Queries } from '../../driver.ts';
import { addCondition, type Conditions } from '../lists/filter.ts';
import { CONTENT_SIZES, contentsOf, cutBySizes, DETAIL_SIZES, type PageRows, sizesOf } from '../lists/page.ts';
import { encodeList, type ListArgs, type MessageRefs } from '../lists/read-page.ts';
import { LOGS, pageOfFew, pageOfWindow } from '../lists/windows.ts';
import { type ContentRow, codeOfLogState, DETAIL_COLUMNS, type DetailRow } from '../messages/rows.ts';
import { pagedRead } from '../operation.ts';
import { childrenOf, type RecordRow, recordsIn } from '../runs/children.ts';
import { invokersOf, readLoggedRuns, responsesOf } from '../runs/logged-runs.ts';
import { runConditions, selectRuns } from './run-filter.ts';
import { decodeRunEvents, RUN_STATES_FROM, type RunLogRow, type RunLogRows } from './run-log-rows.ts';

type ListRunEventsArgs = ListArgs<RunEventFilter>;

const RUN_LOG_FIELDS = ['w.run_key', 'w.message_key', 'w.state'];

const RUN_SUCCESS = codeOfLogState('RUN_SUCCESS');

/** Bytes of payloads of invoked runs that are read even for a full page. */
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
    runs: await readLoggedRuns(queries, runKeys),
    responses: await responsesOf(queries, succeeded),
    invokers: await invokersOf(queries, runKeys),
  };
}

export const listRunEvents = pagedRead(windowOf, {
  encode: (args: InProject & { filter: RunEventFilter; page: PageRequest }) => encodeList(args, codeOfLogState),
  decode: decodeRunEvents,
});

/** The entry keys of the records that belong to the results of waits and invocations. */
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

/** Reads the log of the project, one window at a time: most entries are of messages outside runs. */
function ofProject(
  queries: Queries,
  { projectId, filter: attributes, states, slice }: ListRunEventsArgs,
): Promise<PageRows<RunLogRow>> {
  const filter = runConditions(attributes);
  const joins = 'lookup runs r on (r.key = w.run_key) left lookup contents c on (c.key = r.key)';
  const isJoined = filter.texts.length > 0;
  addCondition(filter, 'w.run_key is not null');
  if (states) addCondition(filter, 'w.state in (??)', states);
  return pageOfWindow(queries, projectId, slice, {
    list: LOGS,
    reads: ['run_key', 'message_key', 'state'],
    selects: RUN_LOG_FIELDS,
    joins: isJoined ? joins : '',
    filter,
    passesMost: false,
  });
}

/** Reads the logs of the runs that the filter selects by id or by creation time. Uses the index on the run. */
function ofRuns(queries: Queries, args: ListRunEventsArgs): Promise<PageRows<RunLogRow>> {
  const filter: Conditions = { texts: [], params: [] };
  addRunCondition(filter, args);
  return select(queries, args, 'logs w', filter);
}

/** Reads the few events of each message by index. Excludes events of the run itself, which name its first message. */
function ofMessages(
  queries: Queries,
  args: ListRunEventsArgs,
  { keys, ids }: MessageRefs,
): Promise<PageRows<RunLogRow>> {
  const filter: Conditions = { texts: [], params: [] };
  addCondition(filter, 'w.message_key in (??) and m.key in (??) and m.id in (??)', keys, keys, ids);
  addCondition(filter, 'w.run_key is not null and w.state < ?', RUN_STATES_FROM);
  if (runConditions(args.filter).texts.length > 0) addRunCondition(filter, args);
  return select(queries, args, 'logs w lookup contents m on (m.key = w.message_key)', filter);
}

function addRunCondition(filter: Conditions, { projectId, filter: attributes }: ListRunEventsArgs): void {
  const conditions = runConditions(attributes);
  addCondition(filter, `w.run_key in list (${selectRuns(conditions)})`, projectId, ...conditions.params);
}

function select(
  queries: Queries,
  { projectId, states, slice }: ListRunEventsArgs,
  from: string,
  filter: Conditions,
): Promise<PageRows<RunLogRow>> {
  if (states) addCondition(filter, 'w.state in (??)', states);
  return pageOfFew(queries, projectId, slice, { list: LOGS, from, selects: RUN_LOG_FIELDS, filter });
}

/** Ends the page before its contents, responses and results of runs exceed `bytesMax`. */
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
  const responseSizes = await sizesOf(
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
    return state < RUN_STATES_FROM ? (bodies.get(message_key) ?? 0) + (responseSizes.get(n) ?? 0) : 0;
  };
  return cutBySizes(page, sizeOf, bytesMax);
}
