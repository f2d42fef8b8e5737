/** Lists the failed runs in the DLQ with their details (contract W 21.1). */

import type { PageRequest } from '../../../engine/lists/page.ts';
import type { InProject, Message, ProjectId } from '../../../engine/model.ts';
import type {
  DeadRun,
  DeadRunFilter,
  EntryOutline,
  FailureCallback,
} from '../../../engine/runs/dead/dead-run-store.ts';
import { dlqIdOf } from '../../../protocol/cursor.ts';
import type { Queries } from '../../driver.ts';
import { addCondition } from '../lists/filter.ts';
import {
  cutByBytes,
  DEAD_SIZES,
  inOrderOf,
  type PageRows,
  type Position,
  positionOfDlqId,
  positionsOfDlqIds,
  type Slice,
} from '../lists/page.ts';
import { DEAD, pageOfWindow } from '../lists/windows.ts';
import { defineDelete } from '../messages/dead.ts';
import {
  CONTENT_FIELDS,
  type ContentRow,
  codeOfLogState,
  DETAIL_COLUMNS,
  type DeadLetterRow,
  type DetailRow,
  decodeDeadLetter,
  decodeDetail,
  decodeMessage,
} from '../messages/rows.ts';
import { longRead, pagedRead, read } from '../operation.ts';
import { runConditions } from '../runs/active.ts';
import { decodeConfig, entryKindOf, FAILURE_STATE, failureStateOf } from '../runs/run-rows.ts';

interface ListDeadRunsArgs extends InProject {
  filter: DeadRunFilter;
  slice: Slice;
}

/** A run in the DLQ. */
export interface DeadRunRow extends Position, DeadLetterRow {
  message_key: number;
  run_key: number;
  run_project_id: number;
  run_id: string;
  run_url: string;
  run_created_at_ms: number;
  run_config: string;
  failure_key: number | null;
  failure_state: number | null;
  payload: Uint8Array | null;
}

export interface DeadRunRows {
  rows: DeadRunRow[];
  /** The messages that failed, without their bodies. */
  contents: ContentRow[];
  /** The last response to each failure callback. */
  responses: (DetailRow & { message_key: number })[];
}

type DeadPosition = Position & { message_key: number };

export const listDeadRuns = pagedRead(
  async (queries: Queries, args: ListDeadRunsArgs): Promise<PageRows<DeadRunRow> & DeadRunRows & { bytes: number }> => {
    const found = await listPositions(queries, args);
    const page = await cutByBytes(queries, found, DEAD_SIZES, args.slice.bytesMax);
    return { ...page, ...(await deadRunsAt(queries, args.projectId, page.rows)) };
  },
  {
    encode: ({ projectId, filter }: InProject & { filter: DeadRunFilter; page: PageRequest }) => ({
      projectId,
      filter,
    }),
    decode: decodeDeadRuns,
  },
);

function listPositions(
  queries: Queries,
  { projectId, filter: wanted, slice }: ListDeadRunsArgs,
): Promise<PageRows<DeadPosition>> {
  const { runId, runCreatedAtMs, responseStatus, failureCallback, ...attributes } = wanted;
  const filter = runConditions(attributes);
  if (runId !== undefined) addCondition(filter, 'r.id = ?', runId);
  if (runCreatedAtMs !== undefined) addCondition(filter, 'r.created_at_ms = ?', runCreatedAtMs);
  const states = failureCallback?.map((state) => FAILURE_STATE[state]);
  if (states) addCondition(filter, 'r.failure_state in (??)', states);
  if (responseStatus) addCondition(filter, 'w.response_status in (??)', responseStatus);
  return pageOfWindow(queries, projectId, slice, {
    list: DEAD,
    within: 'run_key is not null',
    reads: ['run_key', 'response_status'],
    selects: ['c.key as message_key'],
    joins: `lookup runs r on (r.key = w.run_key)
     lookup journal j on (j.run_key = r.key and j.position = 0)
     lookup contents c on (c.key = j.key)`,
    filter,
    passesMost: filter.texts.length === 0,
  });
}

/** The entries of runs at the `wanted` positions, in the same order. Positions without such an entry are skipped. */
async function deadRunsAt(queries: Queries, projectId: ProjectId, wanted: readonly Position[]): Promise<DeadRunRows> {
  const found = await queries.query<DeadRunRow>(
    `select d.failed_at_ms as "timeMs", d.key as n, d.key as message_key, d.failed_at_ms, d.retried, d.response_status,
       d.response_header, d.response_body, r.key as run_key, r.project_id as run_project_id, r.id as run_id,
       r.url as run_url, r.created_at_ms as run_created_at_ms, r.config as run_config, r.failure_key, r.failure_state,
       p.body as payload
     from dead d
     lookup runs r on (r.key = d.run_key)
     lookup journal j on (j.run_key = r.key and j.position = 0)
     lookup contents p on (p.key = j.key)
     where d.key in (??) and d.project_id = ?`,
    [wanted.map(({ n }) => n), projectId],
  );
  const rows = inOrderOf(wanted, found);
  return {
    rows,
    contents: await contentsWithoutBodies(
      queries,
      rows.map(({ n }) => n),
    ),
    responses: await responsesOf(
      queries,
      rows.flatMap(({ failure_key }) => failure_key ?? []),
    ),
  };
}

/** The entries with these `dlqIds`, in the same order. Ids without an entry of a run are skipped. */
export const findDeadRuns = longRead(
  (queries: Queries, { projectId, dlqIds }: InProject & { dlqIds: readonly string[] }) =>
    deadRunsAt(queries, projectId, positionsOfDlqIds(dlqIds)),
  decodeDeadRuns,
);

function decodeDeadRuns({ rows, contents, responses }: DeadRunRows): DeadRun[] {
  const messages = new Map(contents.map((content) => [content.key, decodeMessage(content)]));
  const responseByKey = new Map(responses.map((row) => [row.message_key, decodeDetail(row).response]));
  return rows.map((row) => {
    const message = messages.get(row.n);
    if (!message) throw new Error(`message ${row.n} has no content`);
    const failureCallback = failureCallbackOf(row, responseByKey);
    return decodeDeadRun(row, message, failureCallback);
  });
}

function decodeDeadRun(row: DeadRunRow, message: Message, failureCallback: FailureCallback | undefined): DeadRun {
  const dead: DeadRun = {
    dlqId: dlqIdOf(row.timeMs, row.n),
    run: {
      key: row.run_key,
      projectId: row.run_project_id,
      id: row.run_id,
      url: row.run_url,
      createdAtMs: row.run_created_at_ms,
      config: decodeConfig(row.run_config),
    },
    message,
    deadLetter: decodeDeadLetter(row),
    payload: row.payload ?? new Uint8Array(0),
  };
  if (failureCallback) dead.failureCallback = failureCallback;
  return dead;
}

function failureCallbackOf(
  { failure_key: key, failure_state: state }: DeadRunRow,
  responseByKey: ReadonlyMap<number, FailureCallback['response']>,
): FailureCallback | undefined {
  if (key === null || state === null) return undefined;
  const response = responseByKey.get(key);
  return { state: failureStateOf(state), ...(response && { response }) };
}

/**
 * Reads contents without bodies: the failed message is a step, but the DLQ shows the body with which the run was
 * started.
 */
function contentsWithoutBodies(queries: Queries, keys: readonly number[]): Promise<ContentRow[]> {
  const fields = CONTENT_FIELDS.replace('c.body', 'null as body');
  return queries.query<ContentRow>(`select ${fields} from contents c where c.key in (??)`, [keys]);
}

function responsesOf(queries: Queries, keys: readonly number[]): Promise<(DetailRow & { message_key: number })[]> {
  return queries.query(
    `select latest.message_key, ${DETAIL_COLUMNS.map((column) => `d.${column}`).join(', ')}
     from (select message_key, max(seq) as seq from logs where message_key in (??) and state in (?, ?) group by message_key) latest
     lookup log_details d on (d.seq = latest.seq)`,
    [keys, codeOfLogState('DELIVERED'), codeOfLogState('ERROR')],
  );
}

/** The failure callback of a run. Returns undefined if there was none, or if the retention of the callback is over. */
export const findFailureCallback = read(
  async (queries: Queries, { projectId, dlqId }: InProject & { dlqId: string }): Promise<ContentRow | undefined> => {
    const position = positionOfDlqId(dlqId);
    if (!position) return undefined;
    const [row] = await queries.query<ContentRow>(
      `select ${CONTENT_FIELDS} from dead d lookup runs r on (r.key = d.run_key) lookup contents c on (c.key = r.failure_key)
     where d.key = ? and d.failed_at_ms = ? and d.project_id = ?`,
      [position.n, position.timeMs, projectId],
    );
    return row;
  },
  (row): Message | undefined => row && decodeMessage(row),
);

export interface OutlineRow {
  position: number;
  kind: number;
  key: number;
  entryKey: string;
  body_bytes: number | null;
}

/** All entries of a journal in order, waits and invocations included, without their bodies. */
export const outlineJournal = longRead(
  (queries: Queries, { runKey }: InProject & { runKey: number }): Promise<OutlineRow[]> => {
    return queries.query<OutlineRow>(
      `select j.position, j.kind, j.key, j.entry_key as "entryKey", length(c.body) as body_bytes
     from journal j lookup contents c on (c.key = j.key) where j.run_key = ? order by j.position`,
      [runKey],
    );
  },
  (rows): EntryOutline[] => rows.map(decodeOutline),
);

function decodeOutline(row: OutlineRow): EntryOutline {
  const { position, kind, key, entryKey, body_bytes: bytes } = row;
  return { position, kind: entryKindOf(kind), key, entryKey, bodyBytes: bytes ?? 0 };
}

export const deleteDeadRuns = defineDelete('runs');
