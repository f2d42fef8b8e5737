/** Reads the journals of active workflow runs, ends runs, and resumes parked runs (contract W 17.2, K 7). */
import { ApiError } from '../../protocol/errors.ts';
import { encodeEntry, joinEntries } from '../../workflow/journal.ts';
import { authorizeFully, unauthenticated } from '../edge/authentication.ts';
import { ResponseQueue } from '../edge/response-queue.ts';
import { messageLimit, SMALL_JSON_LIMIT } from '../limits.ts';
import { RUN_END_HEADERS } from '../publishing/config-headers.ts';
import { readJson } from '../requests/json-body.ts';
import { flag, readQuery } from '../requests/parameters.ts';
import { type ApiResponse, jsonResponse, NO_BODY } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { CancelledSchema, Count, exactly } from '../schemas.ts';
import { CANCEL_PARAMETERS, readCancelRequest } from './run-filters.ts';
import { JournalSchema } from './run-schemas.ts';

/**
 * Bytes of journals in all current responses; each byte is in memory up to three times. A single journal may be larger.
 */
const JOURNALS_BYTES_MAX = 64 * 1024 * 1024;

const CANCEL = flag('cancel', 'false: the run has returned, and the body of the request is its result.', true);

export function runRoutes({ engine, limits, clock }: Services): Route[] {
  const responses = new ResponseQueue(JOURNALS_BYTES_MAX, clock);

  /**
   * Returns the whole journal to an endpoint whose delivery would have been too large (contract W 8.3). All calls of a
   * parallel group may request the journal at the same time.
   */
  async function getJournal({ projectId, id, scope, runKey, hangUp }: Call): Promise<ApiResponse> {
    // The run's endpoint needs the unredacted bodies, and has a full token, with which it also ends the run. A read
    // token does not get the bodies (contract W 16.3). The token of a delivery is valid only for its run.
    if (scope !== 'full' && runKey === undefined && (await engine.findActiveRun(projectId, id))?.hidesBodies)
      authorizeFully(scope);
    const bytes = (await engine.storeOf(projectId).runs.journalBytes({ id })) ?? 0;
    const { cutOff, release: onSent } = await responses.reserve(projectId, bytes, hangUp());
    try {
      const entries = await engine.readJournal(projectId, id, runKey);
      if (!entries) throw notActive(id);
      // Base64 and ids are plain ASCII.
      return { status: 200, json: joinEntries(entries.map(encodeEntry)).toString('latin1'), onSent, cutOff };
    } catch (error) {
      onSent();
      throw error;
    }
  }

  async function end({ projectId, id, rawQuery, rawHeaders, body, runKey }: Call): Promise<ApiResponse> {
    const createdAtMs = createdAtOf(rawHeaders);
    const { cancel = true } = readQuery(rawQuery, [CANCEL]);
    if (cancel) {
      if (!(await engine.cancelRun(projectId, id, { createdAtMs, runKey }))) throw notActive(id);
    } else {
      // The endpoint of a call ends the run with the response of the call, never with a request that has the token of its
      // delivery.
      if (runKey !== undefined) throw unauthenticated();
      const response = await body.read(messageLimit(limits.messageBytesMax));
      await engine.completeRun(projectId, id, response, createdAtMs);
    }
    return NO_BODY;
  }

  async function cancelMany({ projectId, rawQuery, body }: Call): Promise<ApiResponse> {
    const request = readCancelRequest(rawQuery, await readJson(body, SMALL_JSON_LIMIT));
    const cancelled =
      'ids' in request
        ? await engine.cancelRuns(projectId, request.ids)
        : await engine.cancelRunsMatching(projectId, request.filter, request.count);
    return jsonResponse(200, { cancelled });
  }

  return [
    {
      ...row('read', 'GET', '/v2/workflows/runs/:workflowRunId', 'getWorkflowRunJournal'),
      isForItsRun: true,
      summary: 'Reads the recorded results of the steps of an active workflow run.',
      responses: { 200: JournalSchema },
      handle: getJournal,
    },
    {
      ...row('full', 'DELETE', '/v2/workflows/runs/:workflowRunId', 'endWorkflowRun'),
      isForItsRun: true,
      summary: 'Ends a workflow run: cancels it, or records its return value.',
      takes: { query: [CANCEL], configHeaders: RUN_END_HEADERS, body: 'bytes' },
      handle: end,
    },
    {
      ...row('full', 'DELETE', '/v2/workflows/runs', 'cancelWorkflowRuns'),
      summary: 'Cancels the active workflow runs that match filters, all without a filter.',
      takes: { query: CANCEL_PARAMETERS },
      responses: { 200: CancelledSchema },
      handle: cancelMany,
    },
  ];
}

/**
 * The creation time of the run, which distinguishes runs with the same id. Libraries that do not know the time send 0 or
 * a text that is not a number; both are ignored.
 */
function createdAtOf(rawHeaders: readonly string[]): number | undefined {
  let found: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase();
    if (name === 'upstash-workflow-createdat') found = rawHeaders[i + 1];
    else if (name === 'waypost-workflow-createdat') found ??= rawHeaders[i + 1];
  }
  const createdAtMs = Number(found);
  return Number.isSafeInteger(createdAtMs) && createdAtMs > 0 ? createdAtMs : undefined;
}

function notActive(id: string): ApiError {
  return new ApiError('not_found', `workflow run ${id} is not active`);
}

const ResumedSchema = exactly({ resumed: Count });

export function parkedRunRoutes({ engine }: Services): Route[] {
  async function resumeOne({ projectId, id }: Call): Promise<ApiResponse> {
    const wasParked = await engine.resumeParkedRun(projectId, id);
    if (wasParked === undefined) throw new ApiError('not_found', `workflow run ${id} is not active`);
    return jsonResponse(200, { resumed: wasParked ? 1 : 0 });
  }

  async function resumeAll({ projectId }: Call): Promise<ApiResponse> {
    return jsonResponse(200, { resumed: await engine.resumeParkedRuns(projectId) });
  }

  return [
    {
      ...row('full', 'POST', '/v2/waypost/runs/:workflowRunId/resume', 'resumeParkedWorkflowRun'),
      summary: 'Attempts a workflow run at once if it is parked because its code has changed.',
      responses: { 200: ResumedSchema },
      handle: resumeOne,
    },
    {
      ...row('full', 'POST', '/v2/waypost/runs/resume', 'resumeParkedWorkflowRuns'),
      summary: 'Attempts all workflow runs at once that are parked because their code has changed, and counts them.',
      responses: { 200: ResumedSchema },
      handle: resumeAll,
    },
  ];
}
