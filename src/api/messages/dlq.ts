/** Lists, reads, retries and deletes the entries of the dead letter queues of messages (contract M 17, 22.24 to 22.29) and of workflow runs (contract W 21). */

import { Type } from '@sinclair/typebox';
import type { Engine } from '../../engine/commands.ts';
import type { Page } from '../../engine/lists/page.ts';
import { retryWhileStale, STALE } from '../../engine/loops/retry-while-stale.ts';
import type { DeadRetryOverride } from '../../engine/messages/dead-retry.ts';
import type { ProjectId } from '../../engine/model.ts';
import type { DeadRun, RetryRefusal, RunOverride, StartedRun } from '../../engine/runs/dead/dead-run-store.ts';
import type { DeadMessage } from '../../engine/stores.ts';
import { decodeCursor } from '../../protocol/cursor.ts';
import { ApiError } from '../../protocol/errors.ts';
import { PAGE_BODY_BYTES_MAX, SMALL_JSON_LIMIT } from '../limits.ts';
import { RETRY_HEADERS, RUN_OVERRIDE_HEADERS, SINGLE_RUN_OVERRIDE_HEADERS } from '../publishing/config-headers.ts';
import { readJson } from '../requests/json-body.ts';
import { invalidParameter, type Parameter, parameter, readQuery, singleValue } from '../requests/parameters.ts';
import { type ApiResponse, jsonResponse, NO_BODY } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { deadRunFilters } from '../runs/run-filters.ts';
import { DeadRunListSchema, DeadRunSchema, StartedRunSchema, StartedRunsSchema } from '../runs/run-schemas.ts';
import {
  DeadListSchema,
  DeadMessageSchema,
  DeletedSchema,
  RetriedManySchema,
  RetriedSchema,
  type View,
} from '../schemas.ts';
import { type CountLimits, type Filters, messageFilters, readSelection } from './filters.ts';
import { readRetryOverride, readRunOverride } from './retry-override.ts';
import { deadMessageView, deadRunView } from './views.ts';

const COUNT_LIMITS: CountLimits = { countDefault: 100, countMax: 100 };
/** Lower than for messages, because a resumed run copies the journal of the failed run, which may be long. */
const START_COUNT_LIMITS: CountLimits = { countDefault: 50, countMax: 50 };

const MESSAGE_FILTERS = messageFilters('dlqList', COUNT_LIMITS);
const MESSAGE_BULK_FILTERS = messageFilters('dlqBulk', COUNT_LIMITS);
const RUN_FILTERS = deadRunFilters(COUNT_LIMITS, false);
const RUN_BULK_FILTERS = deadRunFilters(COUNT_LIMITS, true);
const RUN_START_FILTERS = deadRunFilters(START_COUNT_LIMITS, true);

const SOURCE = parameter(
  'source',
  'workflow lists failed workflow runs, with the filters of /v2/workflows/dlq.',
  Type.Literal('workflow'),
  (given) => singleValue('source', given),
);

/** Filters that the list of runs has and the list of messages does not. */
const RUN_ONLY_FILTERS = RUN_FILTERS.rows.filter(
  ({ name }) => !MESSAGE_FILTERS.rows.some((filter) => filter.name === name),
);

type DeadEntry = DeadMessage | DeadRun;

/** Access to the dead letter queue of messages or of runs. */
interface DeadLetterQueue<Entry extends DeadEntry, Row extends Parameter> {
  listFilters: Filters<Row>;
  bulkFilters: Filters<Row>;
  /** Throws `ApiError` if the text cannot be an id. */
  checkId(dlqId: string): void;
  find(projectId: ProjectId, dlqId: string): Promise<Entry | undefined>;
  list(projectId: ProjectId, args: ListArguments<Row>): Promise<Page<Entry>>;
  /** Returns the number of deleted entries. */
  delete(projectId: ProjectId, dlqIds: string[]): Promise<number>;
  view(entry: Entry): View;
  bytesOf(entry: Entry): number;
  notFound(dlqId: string): ApiError;
}

type ListArguments<Row extends Parameter> = Omit<ReturnType<typeof readSelection<Row>>, 'ids'>;

function deadMessages({ storeOf }: Engine): DeadLetterQueue<DeadMessage, (typeof MESSAGE_FILTERS)['rows'][number]> {
  return {
    listFilters: MESSAGE_FILTERS,
    bulkFilters: MESSAGE_BULK_FILTERS,
    checkId: () => {},
    find: (projectId, dlqId) => storeOf(projectId).dead.findDead({ dlqId }),
    list: (projectId, args) => storeOf(projectId).dead.listDead(args),
    delete: (projectId, dlqIds) => storeOf(projectId).dead.deleteDead({ dlqIds }),
    view: deadMessageView,
    bytesOf: ({ message, deadLetter }) => message.body.length + deadLetter.responseBody.length,
    notFound: (dlqId) => new ApiError('not_found', `dlq message ${dlqId} not found`),
  };
}

function deadRuns({ storeOf }: Engine): DeadLetterQueue<DeadRun, (typeof RUN_FILTERS)['rows'][number]> {
  return {
    listFilters: RUN_FILTERS,
    bulkFilters: RUN_BULK_FILTERS,
    checkId: (dlqId) => {
      if (decodeCursor(dlqId)?.n === undefined)
        throw new ApiError('invalid_request', 'invalid DLQ id: two numbers are needed');
    },
    find: async (projectId, dlqId) => (await storeOf(projectId).deadRuns.findDeadRuns({ dlqIds: [dlqId] }))[0],
    list: (projectId, args) => storeOf(projectId).deadRuns.listDeadRuns(args),
    delete: (projectId, dlqIds) => storeOf(projectId).deadRuns.deleteDeadRuns({ dlqIds }),
    view: deadRunView,
    bytesOf: ({ payload, deadLetter, failureCallback }) =>
      payload.length + deadLetter.responseBody.length + (failureCallback?.response?.body.length ?? 0),
    notFound: (dlqId) => new ApiError('not_found', `workflow run ${dlqId} not found in the DLQ`),
  };
}

/** The handlers of the requests that both queues have. */
function handlersOf<Entry extends DeadEntry, Row extends Parameter>(dlq: DeadLetterQueue<Entry, Row>) {
  async function list({ projectId, rawQuery }: Call): Promise<ApiResponse> {
    const { ids, ...args } = readSelection(dlq.listFilters, COUNT_LIMITS.countDefault, rawQuery);
    const { items, cursor } = ids
      ? { items: await findAll(projectId, ids), cursor: undefined }
      : await dlq.list(projectId, args);
    return jsonResponse(200, { messages: items.map(dlq.view), cursor });
  }

  /** The entries with these ids, newest first. */
  async function findAll(projectId: ProjectId, ids: string[]): Promise<Entry[]> {
    const found: Entry[] = [];
    let bytes = 0;
    for (const id of ids) {
      const entry = await dlq.find(projectId, id);
      if (!entry) continue;
      found.push(entry);
      bytes += dlq.bytesOf(entry);
      if (bytes > PAGE_BODY_BYTES_MAX) throw invalidParameter('dlqIds', 'too much for one response, request fewer');
    }
    return found.sort((a, b) => b.deadLetter.failedAtMs - a.deadLetter.failedAtMs || b.message.key - a.message.key);
  }

  async function get({ projectId, id }: Call): Promise<ApiResponse> {
    dlq.checkId(id);
    const entry = await dlq.find(projectId, id);
    if (!entry) throw dlq.notFound(id);
    return jsonResponse(200, dlq.view(entry));
  }

  async function deleteOne({ projectId, id }: Call): Promise<ApiResponse> {
    dlq.checkId(id);
    if ((await dlq.delete(projectId, [id])) === 0) throw dlq.notFound(id);
    return NO_BODY;
  }

  async function deleteMany(call: Call): Promise<ApiResponse> {
    const { ids, ...args } = await readBulk(dlq.bulkFilters, COUNT_LIMITS, call);
    if (ids) return jsonResponse(200, { deleted: await dlq.delete(call.projectId, ids) });
    const { items, cursor } = await dlq.list(call.projectId, args);
    const deleted = items.length === 0 ? 0 : await dlq.delete(call.projectId, idsOf(items));
    return jsonResponse(200, { deleted, cursor });
  }

  return { list, get, deleteOne, deleteMany };
}

async function readBulk<Row extends Parameter>(filters: Filters<Row>, limits: CountLimits, { body, rawQuery }: Call) {
  return readSelection(filters, limits.countDefault, rawQuery, await readJson(body, SMALL_JSON_LIMIT));
}

function idsOf(entries: readonly DeadEntry[]): string[] {
  return entries.map(({ dlqId }) => dlqId);
}

export function dlqRoutes(services: Services): Route[] {
  const { engine } = services;
  const messages = deadMessages(engine);
  const runs = deadRuns(engine);
  const { deleteOne, deleteMany, ...messageHandlers } = handlersOf(messages);
  const runHandlers = handlersOf(runs);

  function list(call: Call): Promise<ApiResponse> {
    const { source } = readQuery(call.rawQuery, [SOURCE]);
    return source === 'workflow' ? runHandlers.list(call) : messageHandlers.list(call);
  }

  /** The id may belong to a message or to a run. */
  async function get({ projectId, id }: Call): Promise<ApiResponse> {
    const message = await messages.find(projectId, id);
    if (message) return jsonResponse(200, deadMessageView(message));
    const run = await runs.find(projectId, id);
    if (!run) throw messages.notFound(id);
    return jsonResponse(200, deadRunView(run));
  }

  async function retryOne(call: Call): Promise<ApiResponse> {
    const { projectId, id } = call;
    const messageIds = await engine.retryDead(projectId, [id], await readRetryOverride(call, services));
    const [messageId] = messageIds ?? [];
    if (messageId === undefined) throw messages.notFound(id);
    return jsonResponse(201, { messageId });
  }

  async function retryMany(call: Call): Promise<ApiResponse> {
    const override = await readRetryOverride(call, services);
    const { ids, ...args } = await readBulk(MESSAGE_BULK_FILTERS, COUNT_LIMITS, call);
    const { messageIds, cursor } = ids
      ? { messageIds: await retryIds(call.projectId, ids, override), cursor: undefined }
      : await retryWhileStale('the choice of entries', async () => {
          const page = await messages.list(call.projectId, args);
          const retried = await engine.retryDead(call.projectId, idsOf(page.items), override);
          return retried ? { messageIds: retried, cursor: page.cursor } : STALE;
        });
    return jsonResponse(201, { cursor: cursor ?? '', responses: messageIds.map((messageId) => ({ messageId })) });
  }

  /** Retries all entries, or none if any entry is gone. */
  async function retryIds(projectId: ProjectId, ids: string[], override: DeadRetryOverride): Promise<string[]> {
    const messageIds = await engine.retryDead(projectId, ids, override);
    if (!messageIds)
      throw new ApiError('not_found', `dlq message not found: at least one of ${ids.length} ids is gone`);
    return messageIds;
  }

  return [
    {
      ...row('read', 'GET', '/v2/dlq', 'listDlqMessages'),
      isLong: true,
      summary: 'Lists dead messages, newest first.',
      takes: { filters: MESSAGE_FILTERS, query: [SOURCE, ...RUN_ONLY_FILTERS] },
      responses: { 200: Type.Union([DeadListSchema, DeadRunListSchema]) },
      handle: list,
    },
    {
      ...row('full', 'DELETE', '/v2/dlq', 'deleteDlqMessages'),
      summary: 'Deletes the dead messages that match filters, all without a filter.',
      takes: { filters: MESSAGE_BULK_FILTERS },
      responses: { 200: DeletedSchema },
      handle: deleteMany,
    },
    {
      ...row('full', 'POST', '/v2/dlq/retry', 'retryDlqMessages'),
      summary: 'Publishes the dead messages that match filters again.',
      takes: { filters: MESSAGE_BULK_FILTERS, configHeaders: RETRY_HEADERS },
      refusals: [404],
      responses: { 201: RetriedManySchema },
      handle: retryMany,
    },
    {
      ...row('full', 'POST', '/v2/dlq/retry/:dlqId', 'retryDlqMessage'),
      summary: 'Publishes a dead message again and removes it from the DLQ.',
      takes: { configHeaders: RETRY_HEADERS },
      responses: { 201: RetriedSchema },
      handle: retryOne,
    },
    {
      ...row('read', 'GET', '/v2/dlq/:dlqId', 'getDlqMessage'),
      isLong: true,
      summary: 'Reads a dead message.',
      responses: { 200: Type.Union([DeadMessageSchema, DeadRunSchema]) },
      handle: get,
    },
    {
      ...row('full', 'DELETE', '/v2/dlq/:dlqId', 'deleteDlqMessage'),
      summary: 'Deletes a dead message.',
      handle: deleteOne,
    },
  ];
}

type StartMethod = 'resumeRun' | 'restartRun';

export function runDlqRoutes(services: Services): Route[] {
  const { engine } = services;
  const runs = deadRuns(engine);
  const { list, get, deleteOne, deleteMany } = handlersOf(runs);

  async function startOne(start: StartMethod, call: Call): Promise<ApiResponse> {
    const { projectId, id } = call;
    runs.checkId(id);
    const started = await engine[start](projectId, id, await readRunOverride(call, services));
    if (typeof started === 'string') throw startError(started, id);
    return jsonResponse(200, startedView(started));
  }

  async function startMany(start: StartMethod, call: Call): Promise<ApiResponse> {
    const { projectId } = call;
    const override = await readRunOverride(call, services);
    if (override.runId !== undefined) {
      throw new ApiError('invalid_header', 'Upstash-Workflow-RunId is not supported for several runs at once');
    }
    const { ids, ...args } = await readBulk(RUN_START_FILTERS, START_COUNT_LIMITS, call);
    const { items, cursor } = ids ? { items: [], cursor: undefined } : await runs.list(projectId, args);
    const { started, refused } = await startAll(start, projectId, ids ?? idsOf(items), override);
    // The caller has named the runs, so the response gives the reason if no run was started.
    if (ids && started.length === 0 && refused) throw startError(refused.reason, refused.dlqId);
    return jsonResponse(200, { workflowRuns: started.map(startedView), cursor });
  }

  async function startAll(start: StartMethod, projectId: ProjectId, ids: readonly string[], override: RunOverride) {
    const started: StartedRun[] = [];
    let refused: { reason: RetryRefusal; dlqId: string } | undefined;
    for (const dlqId of ids) {
      const outcome = await engine[start](projectId, dlqId, override);
      if (typeof outcome !== 'string') started.push(outcome);
      else if (!refused || outcome !== 'missing') refused = { reason: outcome, dlqId };
    }
    return { started, refused };
  }

  function startError(reason: RetryRefusal, dlqId: string): ApiError {
    switch (reason) {
      case 'missing':
        return runs.notFound(dlqId);
      case 'unknown':
        return new ApiError('invalid_request', `too little of the workflow run ${dlqId} is kept to start it again`);
      case 'idTaken':
        return new ApiError('invalid_header', 'invalid Upstash-Workflow-RunId: a run with this id is active');
    }
  }

  async function repeatCallback({ projectId, id }: Call): Promise<ApiResponse> {
    runs.checkId(id);
    const outcome = await engine.repeatFailureCallback(projectId, id);
    if (outcome === 'missing') throw runs.notFound(id);
    if (outcome === 'notFailed') throw new ApiError('invalid_request', `the failure callback of ${id} has not failed`);
    if (outcome === 'unknown')
      throw new ApiError('invalid_request', `the failure callback of ${id} is not kept any more`);
    return jsonResponse(200, startedView(outcome));
  }

  async function cancelCallback({ projectId, id }: Call): Promise<ApiResponse> {
    runs.checkId(id);
    const outcome = await engine.storeOf(projectId).deadRuns.cancelFailureCallback({ dlqId: id });
    if (outcome === 'missing') throw runs.notFound(id);
    if (outcome === 'notInProgress') {
      throw new ApiError('invalid_request', `the failure callback of ${id} is not in progress`);
    }
    return NO_BODY;
  }

  const startRoutes = (start: StartMethod, word: 'resume' | 'restart', verb: string): Route[] => [
    {
      ...row('full', 'POST', `/v2/workflows/dlq/${word}`, `${word}WorkflowRuns`),
      summary: `${verb} the failed workflow runs that match filters.`,
      takes: { query: RUN_START_FILTERS.rows, configHeaders: RUN_OVERRIDE_HEADERS },
      refusals: [404],
      responses: { 200: StartedRunsSchema },
      handle: (call) => startMany(start, call),
    },
    {
      ...row('full', 'POST', `/v2/workflows/dlq/${word}/:dlqId`, `${word}WorkflowRun`),
      summary: `${verb} a failed workflow run.`,
      takes: { configHeaders: SINGLE_RUN_OVERRIDE_HEADERS },
      responses: { 200: StartedRunSchema },
      handle: (call) => startOne(start, call),
    },
  ];

  return [
    {
      ...row('read', 'GET', '/v2/workflows/dlq', 'listFailedWorkflowRuns'),
      isLong: true,
      summary: 'Lists failed workflow runs, newest first.',
      takes: { query: RUN_FILTERS.rows },
      responses: { 200: DeadRunListSchema },
      handle: list,
    },
    {
      ...row('full', 'DELETE', '/v2/workflows/dlq', 'deleteFailedWorkflowRuns'),
      summary: 'Deletes the failed workflow runs that match filters from the DLQ, all without a filter.',
      takes: { query: RUN_FILTERS.rows },
      responses: { 200: DeletedSchema },
      handle: deleteMany,
    },
    ...startRoutes('resumeRun', 'resume', 'Resumes'),
    ...startRoutes('restartRun', 'restart', 'Restarts'),
    {
      ...row('full', 'POST', '/v2/workflows/dlq/callback/:dlqId', 'repeatFailureCallback'),
      summary: 'Repeats the failure callback of a workflow run, if that callback has failed.',
      refusals: [400],
      responses: { 200: StartedRunSchema },
      handle: repeatCallback,
    },
    {
      ...row('full', 'DELETE', '/v2/workflows/dlq/callback/:dlqId', 'cancelFailureCallback'),
      summary: 'Cancels the failure callback of a workflow run.',
      refusals: [400],
      handle: cancelCallback,
    },
    {
      ...row('read', 'GET', '/v2/workflows/dlq/:dlqId', 'getFailedWorkflowRun'),
      isLong: true,
      summary: 'Reads a failed workflow run.',
      refusals: [400],
      responses: { 200: DeadRunSchema },
      handle: get,
    },
    ...[
      row('full', 'DELETE', '/v2/workflows/dlq/:dlqId', 'deleteFailedWorkflowRun'),
      row('full', 'DELETE', '/v2/workflows/dlq/delete/:dlqId', 'deleteFailedWorkflowRunOfOldClients'),
    ].map((route) => ({
      ...route,
      summary: 'Deletes a failed workflow run from the DLQ.',
      refusals: [400],
      handle: deleteOne,
    })),
  ];
}

function startedView({ runId, createdAtMs }: StartedRun) {
  return { workflowRunId: runId, workflowCreatedAt: createdAtMs };
}
