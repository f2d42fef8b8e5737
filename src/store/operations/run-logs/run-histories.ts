/** Lists runs with their journals and the outcome of each message (contract W 18.1). */

import type { PageRequest } from '../../../engine/lists/page.ts';
import type { InProject, ProjectId } from '../../../engine/model.ts';
import type { RunFilter } from '../../../engine/runs/logs/log-store.ts';
import type { Queries, SqlParam } from '../../driver.ts';
import { addCondition, type Conditions } from '../lists/filter.ts';
import { cutBySizes, type PageRows, type Position } from '../lists/page.ts';
import { encodeList, type ListArgs, type MessageRefs } from '../lists/read-page.ts';
import { pageOfFew, pageOfWindow, RUNS } from '../lists/windows.ts';
import { CONTENT_FIELDS, type ContentRow, codeOfLogState, DETAIL_COLUMNS, type DetailRow } from '../messages/rows.ts';
import { pagedRead } from '../operation.ts';
import { childrenOf } from '../runs/children.ts';
import { invokersOf, readLoggedRuns, responsesOf, rowsWithinBytes, showsAll } from '../runs/logged-runs.ts';
import { ENTRY_KIND, REVIVING, RUN_STATE } from '../runs/run-rows.ts';
import { runConditions } from './run-filter.ts';
import {
  type DeliveryEventRow,
  decodeHistories,
  type HistoryRows,
  type JournalRow,
  type PendingRow,
} from './run-log-rows.ts';

interface ListHistoriesArgs extends ListArgs<RunFilter> {
  /** Bodies are cut to one byte more than this, except redacted bodies, whose hash needs the whole body. */
  bodyBytesMax?: number;
}

interface ListHistoriesInput extends InProject {
  filter: RunFilter;
  page: PageRequest;
  bodyBytesMax?: number | undefined;
}

/** The approximate size of a journal entry without its body. */
const ENTRY_BYTES = 512;

/** Bytes of responses, and of payloads of invoked runs, that are read even for a run with a very long journal. */
const EXTRA_BYTES_MIN = 1024 * 1024;

const DELIVERY_STATES = (['DELIVERED', 'ERROR', 'STEP_PARKED', 'FAILED', 'CANCELED'] as const).map(codeOfLogState);

async function windowOf(queries: Queries, args: ListHistoriesArgs): Promise<HistoryRows> {
  const found = await find(queries, args);
  const page = await cutByBytes(queries, found, args.slice.bytesMax);
  const keys = page.rows.map(({ n }) => n);
  const extraBytes = Math.max(EXTRA_BYTES_MIN, args.slice.bytesMax - page.bytes);
  const runs = await readLoggedRuns(queries, keys);
  const journal = await journalsOf(queries, keys, args.bodyBytesMax);
  const deliveryEvents = await queries.query<DeliveryEventRow>(
    'select seq, at_ms, message_key, state from logs where run_key in (??) and state in (??) order by seq',
    [keys, DELIVERY_STATES],
  );
  const records = journal.filter(({ kind }) => kind === ENTRY_KIND.invoke);
  return {
    ...page,
    runs,
    journal,
    pending: await queries.query<PendingRow>(
      'select key, due_at_ms, claimed_at_ms from messages where run_key in (??)',
      [keys],
    ),
    deliveryEvents,
    details: await detailsOf(queries, deliveryEvents, extraBytes, args.bodyBytesMax),
    failureCalls: await queries.query<ContentRow>(`select ${CONTENT_FIELDS} from contents c where c.key in (??)`, [
      runs.flatMap(({ failure_key }) => failure_key ?? []),
    ]),
    responses: await responsesOf(queries, keys, args.bodyBytesMax),
    invokers: await invokersOf(queries, keys),
    children: await childrenOf(
      queries,
      records.map(({ settings }) => settings),
      extraBytes,
    ),
  };
}

/**
 * Runs by creation, each with its whole journal. A page ends early when it would become too large. With `bodyBytesMax`, a
 * body may be cut to one byte more than this length. If the responses to failed attempts or the payloads of invoked runs
 * are too large together, some of them are returned without their bodies.
 */
export const listRunHistories = pagedRead(windowOf, {
  encode: ({ bodyBytesMax, ...args }: ListHistoriesInput) => ({
    ...encodeList(args, (state: keyof typeof RUN_STATE) => RUN_STATE[state]),
    ...(bodyBytesMax !== undefined && { bodyBytesMax }),
  }),
  decode: decodeHistories,
});

function find(queries: Queries, args: ListHistoriesArgs): Promise<PageRows<Position>> {
  const { projectId, filter, messages } = args;
  const sources: Source[] = [];
  if (filter.runs) sources.push(runsByIdAndTime(projectId, filter.runs));
  if (filter.runId) {
    const text = 'select key from runs where project_id = ? and id in (??)';
    sources.push({ text, params: [projectId, filter.runId] });
  }
  if (messages) sources.push(runsOfMessages(projectId, messages));
  return sources.length > 0 ? runsInAll(queries, args, sources) : ofProject(queries, args);
}

/** A statement that selects keys of runs. */
interface Source {
  text: string;
  params: SqlParam[];
}

/** Selects runs by id and creation time. */
function runsByIdAndTime(projectId: ProjectId, runs: readonly { id: string; createdAtMs: number }[]): Source {
  const each = runs.map(() => '(id = ? and created_at_ms = ?)');
  return {
    text: `select key from runs where project_id = ? and (${each.join(' or ') || '1 = 0'})`,
    params: [projectId, ...runs.flatMap(({ id, createdAtMs }) => [id, createdAtMs])],
  };
}

/**
 * Selects the runs of messages from journals, because logs may be dropped, and from logs, because a failure callback is
 * in no journal. The plus keeps the planner from reading the logs of all runs.
 */
function runsOfMessages(projectId: ProjectId, { keys, ids }: MessageRefs): Source {
  const text = `select o.run_key from
    (select run_key, key from journal where key in (??)
     union all select run_key, message_key as key from logs where message_key in (??) and +run_key is not null) o
    lookup contents m on (m.key = o.key) where m.key in (??) and m.project_id = ? and m.id in (??)`;
  return { text, params: [keys, keys, keys, projectId, ids] };
}

/** Reads the few runs that all `sources` select, by their keys. */
function runsInAll(queries: Queries, args: ListHistoriesArgs, sources: Source[]): Promise<PageRows<Position>> {
  const filter = conditionsOf(args);
  for (const { text, params } of sources) addCondition(filter, `r.key in list (${text})`, ...params);
  const from = 'runs r left lookup contents c on (c.key = r.key)';
  return pageOfFew(queries, args.projectId, args.slice, { list: RUNS, from, alias: 'r', filter });
}

/** Reads the runs of the project, one window at a time. */
function ofProject(queries: Queries, args: ListHistoriesArgs): Promise<PageRows<Position>> {
  const filter = conditionsOf(args);
  const isFiltered = filter.texts.length > 0;
  return pageOfWindow(queries, args.projectId, args.slice, {
    list: RUNS,
    reads: [],
    selects: [],
    joins: isFiltered ? 'lookup runs r on (r.key = w.key) left lookup contents c on (c.key = w.key)' : '',
    filter,
    passesMost: !isFiltered,
  });
}

function conditionsOf({ filter, states }: ListHistoriesArgs): Conditions {
  const { runs: _runs, runId: _runId, ...attributes } = filter;
  const conditions = runConditions(attributes);
  if (states) addCondition(conditions, 'r.state in (??)', states);
  return conditions;
}

/**
 * Ends the page before it exceeds `bytesMax`, but keeps at least one run, because a run is always shown whole. The size
 * of a run is computed from its row. A run that is being revived is skipped, because its journal is incomplete.
 */
async function cutByBytes(
  queries: Queries,
  page: PageRows<Position>,
  bytesMax: number,
): Promise<PageRows<Position> & { bytes: number }> {
  const sizes = await queries.query<{ key: number; journal_bytes: number; entries: number; response: number | null }>(
    `select r.key, r.journal_bytes, r.entries, length(r.response) as response from runs r
     where r.key in (??) and r.state <> ${REVIVING}`,
    [page.rows.map(({ n }) => n)],
  );
  const sizeByKey = new Map(
    sizes.map(({ key, journal_bytes, entries, response }) => [
      key,
      journal_bytes + entries * ENTRY_BYTES + (response ?? 0),
    ]),
  );
  const rows = page.rows.filter(({ n }) => sizeByKey.has(n));
  return cutBySizes({ ...page, rows }, ({ n }) => sizeByKey.get(n) ?? 0, bytesMax);
}

/**
 * Cuts payloads and bodies of calls, but not the bodies of steps, from which their results are read, and not redacted
 * bodies, which are shown as a hash of the whole body.
 */
const CUT_BODY = `case when j.kind in (${ENTRY_KIND.initial}, ${ENTRY_KIND.toCallback}) and ${showsAll('r.config')} and ${showsAll('c.settings')}
  then substr(c.body, 1, ?) else c.body end as body`;

function journalsOf(
  queries: Queries,
  keys: readonly number[],
  bodyBytesMax: number | undefined,
): Promise<JournalRow[]> {
  const isCut = bodyBytesMax !== undefined;
  const fields = isCut ? CONTENT_FIELDS.replace('c.body', CUT_BODY) : CONTENT_FIELDS;
  return queries.query<JournalRow>(
    `select j.run_key, j.position, j.kind, j.entry_key as "entryKey", ${fields}
     from journal j lookup contents c on (c.key = j.key) lookup runs r on (r.key = j.run_key)
     where j.run_key in (??) order by j.run_key, j.position`,
    [...(isCut ? [bodyBytesMax + 1] : []), keys],
  );
}

async function detailsOf(
  queries: Queries,
  deliveryEvents: readonly DeliveryEventRow[],
  bytesMax: number,
  bodyBytesMax: number | undefined,
): Promise<(DetailRow & { seq: number })[]> {
  const sizes = await queries.query<{ seq: number; bytes: number | null }>(
    'select seq, length(response_body) as bytes from log_details where seq in (??) order by seq',
    [deliveryEvents.map(({ seq }) => seq)],
  );
  const cut = bodyBytesMax === undefined ? [] : await eventsWithoutRedaction(queries, deliveryEvents);
  const isCut = new Set(cut);
  const taken = sizes.map(({ seq, bytes }) => {
    return { seq, bytes: isCut.has(seq) ? Math.min(bytes ?? 0, (bodyBytesMax ?? 0) + 1) : bytes };
  });
  const shown = rowsWithinBytes(taken, bytesMax).map(({ seq }) => seq);
  const columns = DETAIL_COLUMNS.filter((column) => column !== 'response_body').join(', ');
  return queries.query<DetailRow & { seq: number }>(
    `select seq, ${columns}, case when seq not in (??) then null when seq in (??) then substr(response_body, 1, ?) else response_body end as response_body
     from log_details where seq in (??)`,
    [shown, cut, (bodyBytesMax ?? 0) + 1, sizes.map(({ seq }) => seq)],
  );
}

/** The numbers of the events whose messages redact nothing. */
async function eventsWithoutRedaction(
  queries: Queries,
  deliveryEvents: readonly DeliveryEventRow[],
): Promise<number[]> {
  const found = await queries.query<{ key: number }>(
    `select c.key from contents c where c.key in (??) and ${showsAll('c.settings')}`,
    [[...new Set(deliveryEvents.map(({ message_key }) => message_key))]],
  );
  const keys = new Set(found.map(({ key }) => key));
  return deliveryEvents.filter(({ message_key }) => keys.has(message_key)).map(({ seq }) => seq);
}
