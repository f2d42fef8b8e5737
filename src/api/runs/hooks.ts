/** Webhooks of workflow runs: a call of the URL, which needs no token, notifies the run (contract W 14.9). */
import { ApiError } from '../../protocol/errors.ts';
import { headerMapFromRaw } from '../../protocol/headers.ts';
import { isName } from '../../protocol/names.ts';
import { hookEvent } from '../../workflow/waits.ts';
import { messageLimit } from '../limits.ts';
import { type ApiResponse, NO_BODY } from '../response.ts';
import type { Call, Route, RouteMethod, Services } from '../route.ts';

const METHODS: readonly RouteMethod[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

export function hookRoutes({ engine, accounts, limits }: Services): Route[] {
  const bodyLimit = messageLimit(limits.messageBytesMax);

  async function call({ ids, method, rawHeaders, calledUrl, body }: Call): Promise<ApiResponse> {
    const [userId = '', runId = '', eventId = ''] = ids;
    const projectId = accounts.projectByName(userId);
    if (projectId === undefined || !isHook(eventId)) throw noSuchHook();
    // This route needs no token, so only a call for an active run may fill memory with a body.
    if (!(await engine.findActiveRun(projectId, runId))) throw noSuchHook();
    body.countFor(projectId);
    const header = headerMapFromRaw(rawHeaders);
    const event = hookEvent({ ...calledUrl(), method, header, body: await body.read(bodyLimit) });
    // One call ends one wait; other waits of the run need other calls.
    const notified = await engine.notifyRun(projectId, runId, eventId, event, { oldestOnly: true });
    if (!notified) throw noSuchHook();
    return NO_BODY;
  }

  return METHODS.map((method) => ({
    method,
    path: '/v2/workflows/hooks/:userId/:workflowRunId/:eventId',
    operationId: method === 'POST' ? 'callWebhook' : `callWebhookBy${method[0]}${method.slice(1).toLowerCase()}`,
    access: 'public',
    isForAnyOrigin: true,
    summary: 'Calls a webhook of a workflow run: this request ends the current wait for it, or the next one.',
    ...(method === 'GET' || method === 'HEAD' ? undefined : { takes: { body: 'bytes' } }),
    refusals: [400, 412, 413, 503],
    responses: { 200: undefined },
    handle: call,
  }));
}

/** Whether the event is a webhook. To notify a run of any other event, a token is needed. */
function isHook(eventId: string): boolean {
  return eventId.startsWith('evt_') && isName(eventId);
}

/** One error for all cases, so that a caller without a token does not learn which part of the URL is wrong. */
function noSuchHook(): ApiError {
  return new ApiError('not_found', 'there is no such webhook, or its workflow run is over');
}
