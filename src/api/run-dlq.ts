/** The dead letter queue of workflow runs: list, read, delete, resume and restart them (contract W 21). */
import type { Engine } from '../engine/commands.ts';
import type { ProjectId } from '../engine/model.ts';
import type { Page } from '../engine/page.ts';
import type { DeadRun, NotRetried, RunOverride, StartedRun } from '../engine/runs/dead-run-store.ts';
import { decodeCursor } from '../protocol/cursor.ts';
import { ApiError } from '../protocol/errors.ts';
import { type Answer, answer, NO_BODY } from './answer.ts';
import { RUN_OVERRIDE_HEADERS, SINGLE_RUN_OVERRIDE_HEADERS } from './config-headers.ts';
import type { Amount } from './filters.ts';
import { readJson } from './json-body.ts';
import { PAGE_BODY_BYTES_MAX, SMALL_JSON_LIMIT } from './limits.ts';
import { invalidParameter } from './parameters.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { type DeadRequest, deadParameters, readDeadRequest } from './run-filters.ts';
import { readRunOverride } from './run-override.ts';
import { DeadRunListSchema, DeadRunSchema, StartedRunSchema, StartedRunsSchema } from './run-schemas.ts';
import { DeletedSchema } from './schemas.ts';
import { deadRunView } from './views.ts';

const AMOUNT: Amount = { countDefault: 100, countMax: 100 };
/** Each started run may take over a long journal from the failed one. */
const STARTED_AMOUNT: Amount = { countDefault: 50, countMax: 50 };

type Start = 'resumeRun' | 'restartRun';

export function runDlqRoutes(services: Services): Route[] {
  const { engine } = services;
  const { storeOf } = engine;

  async function get({ projectId, id }: Call): Promise<Answer> {
    const [dead] = await storeOf(projectId).deadRuns.findDeadRuns({ dlqIds: [checkedId(id)] });
    if (!dead) throw notFound(id);
    return answer(200, deadRunView(dead));
  }

  async function deleteOne({ projectId, id }: Call): Promise<Answer> {
    if ((await storeOf(projectId).deadRuns.deleteDeadRuns({ dlqIds: [checkedId(id)] })) === 0) throw notFound(id);
    return NO_BODY;
  }

  async function deleteMany(call: Call): Promise<Answer> {
    const { projectId } = call;
    const request = await readBulk(call, AMOUNT);
    if (request.ids)
      return answer(200, { deleted: await storeOf(projectId).deadRuns.deleteDeadRuns({ dlqIds: request.ids }) });
    const page = await select(engine, projectId, request);
    const deleted =
      page.items.length === 0 ? 0 : await storeOf(projectId).deadRuns.deleteDeadRuns({ dlqIds: idsOf(page) });
    return answer(200, { deleted, cursor: page.cursor });
  }

  async function startOne(start: Start, call: Call): Promise<Answer> {
    const { projectId, id } = call;
    const started = await engine[start](projectId, checkedId(id), await readRunOverride(call, services));
    if (typeof started === 'string') throw refusedStart(started, id);
    return answer(200, startedView(started));
  }

  async function startMany(start: Start, call: Call): Promise<Answer> {
    const { projectId } = call;
    const override = await readRunOverride(call, services);
    if (override.runId !== undefined) {
      throw new ApiError('invalid_header', 'Upstash-Workflow-RunId is not supported for several runs at once');
    }
    const request = await readBulk(call, STARTED_AMOUNT);
    if (request.ids) return answer(200, { workflowRuns: await startNamed(start, projectId, request.ids, override) });
    const page = await select(engine, projectId, request);
    const { started } = await startAll(start, projectId, idsOf(page), override);
    return answer(200, { workflowRuns: started.map(startedView), cursor: page.cursor });
  }

  /** Starts the runs that exist; refuses the request only when none could be started. */
  async function startNamed(start: Start, projectId: ProjectId, ids: string[], override: RunOverride) {
    const { started, refused } = await startAll(start, projectId, ids, override);
    if (started.length === 0 && refused) throw refusedStart(refused.reason, refused.dlqId);
    return started.map(startedView);
  }

  async function startAll(start: Start, projectId: ProjectId, ids: readonly string[], override: RunOverride) {
    const started: StartedRun[] = [];
    let refused: { reason: NotRetried; dlqId: string } | undefined;
    for (const dlqId of ids) {
      const outcome = await engine[start](projectId, dlqId, override);
      if (typeof outcome !== 'string') started.push(outcome);
      else if (!refused || outcome !== 'missing') refused = { reason: outcome, dlqId };
    }
    return { started, refused };
  }

  async function repeatCallback({ projectId, id }: Call): Promise<Answer> {
    const told = await engine.repeatFailureCallback(projectId, checkedId(id));
    if (told === 'missing') throw notFound(id);
    if (told === 'notFailed') throw new ApiError('invalid_request', `the failure callback of ${id} has not failed`);
    if (told === 'unknown') throw new ApiError('invalid_request', `the failure callback of ${id} is not kept any more`);
    return answer(200, startedView(told));
  }

  async function cancelCallback({ projectId, id }: Call): Promise<Answer> {
    const outcome = await engine.storeOf(projectId).deadRuns.cancelFailureCallback({ dlqId: checkedId(id) });
    if (outcome === 'missing') throw notFound(id);
    if (outcome === 'notInProgress') {
      throw new ApiError('invalid_request', `the failure callback of ${id} is not in progress`);
    }
    return NO_BODY;
  }

  const starts = (start: Start, word: 'resume' | 'restart', what: string): Route[] => [
    {
      ...row('full', 'POST', `/v2/workflows/dlq/${word}`, `${word}WorkflowRuns`),
      summary: `${what} the failed workflow runs that match filters.`,
      takes: { query: deadParameters(STARTED_AMOUNT), configHeaders: RUN_OVERRIDE_HEADERS },
      refusals: [404],
      answers: { 200: StartedRunsSchema },
      handle: (call) => startMany(start, call),
    },
    {
      ...row('full', 'POST', `/v2/workflows/dlq/${word}/:dlqId`, `${word}WorkflowRun`),
      summary: `${what} a failed workflow run.`,
      takes: { configHeaders: SINGLE_RUN_OVERRIDE_HEADERS },
      answers: { 200: StartedRunSchema },
      handle: (call) => startOne(start, call),
    },
  ];

  return [
    {
      ...row('read', 'GET', '/v2/workflows/dlq', 'listFailedWorkflowRuns'),
      isLong: true,
      summary: 'Lists failed workflow runs, newest first.',
      takes: { query: deadParameters(AMOUNT) },
      answers: { 200: DeadRunListSchema },
      handle: (call) => listDeadRuns(engine, call),
    },
    {
      ...row('full', 'DELETE', '/v2/workflows/dlq', 'deleteFailedWorkflowRuns'),
      summary: 'Deletes the failed workflow runs that match filters from the DLQ, all without a filter.',
      takes: { query: deadParameters(AMOUNT) },
      answers: { 200: DeletedSchema },
      handle: deleteMany,
    },
    ...starts('resumeRun', 'resume', 'Goes on with'),
    ...starts('restartRun', 'restart', 'Begins anew'),
    {
      ...row('full', 'POST', '/v2/workflows/dlq/callback/:dlqId', 'repeatFailureCallback'),
      summary: 'Tells of the failure of a workflow run once more, where that has failed.',
      refusals: [400],
      answers: { 200: StartedRunSchema },
      handle: repeatCallback,
    },
    {
      ...row('full', 'DELETE', '/v2/workflows/dlq/callback/:dlqId', 'cancelFailureCallback'),
      summary: 'Gives up telling of the failure of a workflow run.',
      refusals: [400],
      handle: cancelCallback,
    },
    {
      ...row('read', 'GET', '/v2/workflows/dlq/:dlqId', 'getFailedWorkflowRun'),
      isLong: true,
      summary: 'Reads a failed workflow run.',
      refusals: [400],
      answers: { 200: DeadRunSchema },
      handle: get,
    },
    ...[
      row('full', 'DELETE', '/v2/workflows/dlq/:dlqId', 'deleteFailedWorkflowRun'),
      row('full', 'DELETE', '/v2/workflows/dlq/delete/:dlqId', 'deleteFailedWorkflowRunOfOldClients'),
    ].map((begun) => ({
      ...begun,
      summary: 'Deletes a failed workflow run from the DLQ.',
      refusals: [400],
      handle: deleteOne,
    })),
  ];
}

/** Also answers `GET /v2/dlq?source=workflow`. */
export async function listDeadRuns(engine: Engine, { projectId, rawQuery }: Call): Promise<Answer> {
  const request = readDeadRequest(rawQuery, undefined, AMOUNT, 'list');
  if (!request.ids) {
    const page = await select(engine, projectId, request);
    return answer(200, { messages: page.items.map(deadRunView), cursor: page.cursor });
  }
  const found = await findAll(engine, projectId, request.ids);
  return answer(200, { messages: found.map(deadRunView) });
}

function select({ storeOf }: Engine, projectId: ProjectId, { filter, count, cursor }: DeadRequest) {
  const page = { count, order: 'latestFirst' as const };
  return storeOf(projectId).deadRuns.listDeadRuns({ filter, page: cursor === undefined ? page : { ...page, cursor } });
}

/** Newest first, like the whole list. */
async function findAll({ storeOf }: Engine, projectId: ProjectId, ids: readonly string[]): Promise<DeadRun[]> {
  const found: DeadRun[] = [];
  let bytes = 0;
  for (const id of ids) {
    const [dead] = await storeOf(projectId).deadRuns.findDeadRuns({ dlqIds: [id] });
    if (!dead) continue;
    found.push(dead);
    bytes +=
      dead.payload.length + dead.deadLetter.responseBody.length + (dead.failureCallback?.answer?.body.length ?? 0);
    if (bytes > PAGE_BODY_BYTES_MAX) throw invalidParameter('dlqIds', 'too much for one answer, ask for fewer');
  }
  return found.sort((a, b) => b.deadLetter.failedAtMs - a.deadLetter.failedAtMs || b.message.key - a.message.key);
}

async function readBulk({ body, rawQuery }: Call, amount: Amount): Promise<DeadRequest> {
  return readDeadRequest(rawQuery, await readJson(body, SMALL_JSON_LIMIT), amount, 'bulk');
}

function idsOf(page: Page<DeadRun>): string[] {
  return page.items.map(({ dlqId }) => dlqId);
}

function startedView({ runId, createdAtMs }: StartedRun) {
  return { workflowRunId: runId, workflowCreatedAt: createdAtMs };
}

/** Throws `ApiError` 400 when the text does not have the form of a DLQ id. */
function checkedId(id: string): string {
  if (decodeCursor(id)?.n === undefined)
    throw new ApiError('invalid_request', 'invalid DLQ id: two numbers are needed');
  return id;
}

function notFound(dlqId: string): ApiError {
  return new ApiError('not_found', `workflow run ${dlqId} not found in the DLQ`);
}

function refusedStart(reason: NotRetried, dlqId: string): ApiError {
  switch (reason) {
    case 'missing':
      return notFound(dlqId);
    case 'unknown':
      return new ApiError('invalid_request', `too little of the workflow run ${dlqId} is kept to start it again`);
    case 'idTaken':
      return new ApiError('invalid_header', 'invalid Upstash-Workflow-RunId: a run with this id is active');
  }
}
