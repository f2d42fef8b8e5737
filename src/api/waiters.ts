/** Waits of runs, and their notification (contract W 14.6, 14.7). */
import { ApiError } from '../protocol/errors.ts';
import { checkName, checkNewName } from '../protocol/names.ts';
import { splitQuery } from '../protocol/request-target.ts';
import { refusedInRun } from '../protocol/workflow/refusals.ts';
import { type Answer, answer } from './answer.ts';
import { WAIT_HEADERS } from './config-headers.ts';
import { readJson } from './json-body.ts';
import { messageLimit, SMALL_JSON_LIMIT } from './limits.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { NotifiedListSchema, NotifiedSchema, WaiterListSchema, WaitingSchema, WaitSchema } from './schemas.ts';
import { readWait } from './wait-request.ts';
import { NotifiedList, notifiedView, waiterView } from './waiter-views.ts';

export function waiterRoutes({ engine, clock, quotas, proxyHeaders, limits }: Services): Route[] {
  const bodyLimit = messageLimit(limits.messageBytesMax);

  async function wait(call: Call): Promise<Answer> {
    const { projectId, callerIp, rawHeaders, isTokenInHeader } = call;
    const command = await inRun(async () => {
      checkNewName('event id', call.id);
      const queryConfig = splitQuery(call.rawQuery).config;
      const input = { rawHeaders, queryConfig, tokenInQuery: !isTokenInHeader, proxyHeaders };
      return readWait(call.id, input, await readJson(call.body, SMALL_JSON_LIMIT), { quotas, nowMs: clock.nowMs() });
    });
    if (callerIp !== undefined) command.callerIp = callerIp;
    const { messageId, deduplicated } = await engine.wait(projectId, command);
    return answer(200, deduplicated ? { messageId, deduplicated } : { messageId });
  }

  async function notify(call: Call): Promise<Answer> {
    checkName('event id', call.id);
    const list = new NotifiedList();
    await engine.notify(call.projectId, call.id, await call.body.read(bodyLimit), (piece) => list.add(piece));
    return { status: 201, json: list.json };
  }

  async function notifyRun(call: Call): Promise<Answer> {
    const [runId = '', eventId = ''] = call.ids;
    checkName('event id', eventId);
    const event = await call.body.read(bodyLimit);
    const notified = await engine.notifyRun(call.projectId, runId, eventId, event, { oldestOnly: false });
    if (!notified) throw new ApiError('not_found', 'no workflow run with this id is active');
    return answer(201, notifiedView(notified));
  }

  async function list({ projectId, id }: Call): Promise<Answer> {
    checkName('event id', id);
    return answer(200, (await engine.listWaiters(projectId, id)).map(waiterView));
  }

  return [
    {
      ...row('publish', 'POST', '/v2/wait/:eventId', 'waitForEvent'),
      summary: 'Lets a step of a workflow run wait for an event. Asked by client libraries.',
      takes: { body: WaitSchema, configHeaders: WAIT_HEADERS, isConfiguredByQuery: true },
      refusals: [412, 422],
      answers: { 200: WaitingSchema },
      handle: wait,
    },
    {
      ...row('full', 'POST', '/v2/notify/:eventId', 'notifyEvent'),
      summary: 'Wakes all workflow runs that wait for the event, with the body as its data.',
      takes: { body: 'bytes' },
      answers: { 201: NotifiedListSchema },
      handle: notify,
    },
    {
      ...row('full', 'POST', '/v2/notify/:workflowRunId/:eventId', 'notifyWorkflowRun'),
      summary:
        'Wakes one workflow run that waits for the event; when it does not yet, its next wait for it ends at once.',
      takes: { body: 'bytes' },
      refusals: [412],
      answers: { 201: NotifiedSchema },
      handle: notifyRun,
    },
    {
      ...row('read', 'GET', '/v2/waiters/:eventId', 'listWaiters'),
      isLong: true,
      summary: 'Lists who waits for the event: up to 1,000, in order of registration.',
      refusals: [400],
      answers: { 200: WaiterListSchema },
      handle: list,
    },
  ];
}

/**
 * Changes the status of a refusal that a client library would otherwise take for the end of its run (contract W 4.7).
 */
async function inRun<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw refusedInRun(error);
  }
}
