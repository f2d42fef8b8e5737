/** Makes runs wait for events, notifies waiting runs, and lists waiters (contract W 14.6, 14.7). */
import { Type } from '@sinclair/typebox';
import type { ListedWaiter, NotificationResult, Waiter, WaiterPosition } from '../../engine/runs/stores.ts';
import { ApiError } from '../../protocol/errors.ts';
import { checkName, checkNewName, isName } from '../../protocol/names.ts';
import type { Redaction, WaitSettings } from '../../protocol/options/settings.ts';
import { redactConfigHeaders, redactedText } from '../../protocol/redaction.ts';
import { maskPassword } from '../../protocol/urls/masked-url.ts';
import { splitQuery } from '../../protocol/urls/request-target.ts';
import { toRunError } from '../../protocol/workflow/run-errors.ts';
import { messageLimit, SMALL_JSON_LIMIT } from '../limits.ts';
import { cutToPage } from '../messages/filters.ts';
import { WAIT_HEADERS } from '../publishing/config-headers.ts';
import { readJson } from '../requests/json-body.ts';
import { CURSOR, invalidParameter, pageCount, readQuery, text } from '../requests/parameters.ts';
import { type ApiResponse, jsonResponse } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import {
  exactly,
  HeaderMapSchema,
  MessageIdSchema,
  Ms,
  shapeOf,
  Text,
  type View,
  WaitingSchema,
  WaitSchema,
} from '../schemas.ts';
import { readWait } from './wait-request.ts';

/** A waiter, redacted like its run. */
const WAITER = shapeOf<[wait: WaitSettings, waiter: Waiter]>()(
  {
    url: [Text, ({ notified }) => maskPassword(notified.url)],
    headers: [HeaderMapSchema, ({ headers }, waiter) => redactConfigHeaders(headers, redactionOf(waiter))],
    deadline: [
      Type.Integer({ minimum: 0, description: 'Unix time in seconds' }),
      (_, { deadlineMs }) => Math.floor(deadlineMs / 1000),
    ],
    timeoutUrl: [Text, ({ timedOut }) => maskPassword(timedOut.url)],
    timeoutBody: [
      Type.Optional(Type.String({ minLength: 1, description: 'base64' })),
      ({ timeoutBody }, waiter) =>
        timeoutBody !== undefined && redactionOf(waiter)?.body
          ? redactedText(Buffer.from(timeoutBody, 'base64'))
          : timeoutBody,
    ],
    timeoutHeaders: [
      HeaderMapSchema,
      ({ timeoutHeaders }, waiter) => redactConfigHeaders(timeoutHeaders, redactionOf(waiter)),
    ],
  },
  'Waiter',
);

function waiterView(waiter: Waiter): View {
  const { key, settings } = waiter.record;
  if (!settings.wait) throw new Error(`the record ${key} is not of a wait`);
  return WAITER.view(settings.wait, waiter);
}

function redactionOf({ record }: Waiter): Redaction | undefined {
  return record.settings.redact;
}

/** Without a waiter, the notification was saved as a pending event for the next wait of the run (contract W 14.7). */
const NOTIFIED = shapeOf<[NotificationResult]>()(
  {
    waiter: [Type.Optional(WAITER.schema), ({ waiter }) => waiter && waiterView(waiter)],
    messageId: [Type.Optional(MessageIdSchema), ({ messageId }) => messageId],
    workflowRunId: [Type.String({ minLength: 1, description: 'id of a workflow run' }), ({ runId }) => runId],
    workflowCreatedAt: [Ms, ({ runCreatedAtMs }) => runCreatedAtMs],
  },
  'Notified',
);

export function waiterRoutes({ engine, clock, quotas, proxyHeaders, limits }: Services): Route[] {
  const bodyLimit = messageLimit(limits.messageBytesMax);

  async function wait(call: Call): Promise<ApiResponse> {
    const { projectId, callerIp, rawHeaders, isTokenInHeader } = call;
    const command = await withRunErrors(async () => {
      checkNewName('event id', call.id);
      const queryConfig = splitQuery(call.rawQuery).config;
      const input = { rawHeaders, queryConfig, tokenInQuery: !isTokenInHeader, proxyHeaders };
      return readWait(call.id, input, await readJson(call.body, SMALL_JSON_LIMIT), { quotas, nowMs: clock.nowMs() });
    });
    if (callerIp !== undefined) command.callerIp = callerIp;
    const { messageId, deduplicated } = await engine.wait(projectId, command);
    return jsonResponse(200, deduplicated ? { messageId, deduplicated } : { messageId });
  }

  async function notify(call: Call): Promise<ApiResponse> {
    checkName('event id', call.id);
    const list = new NotifiedJson();
    await engine.notify(call.projectId, call.id, await call.body.read(bodyLimit), (batch) => list.add(batch));
    return { status: 201, json: list.json };
  }

  async function notifyRun(call: Call): Promise<ApiResponse> {
    const [runId = '', eventId = ''] = call.ids;
    checkName('event id', eventId);
    const event = await call.body.read(bodyLimit);
    const notified = await engine.notifyRun(call.projectId, runId, eventId, event, { oldestOnly: false });
    if (!notified) throw new ApiError('not_found', 'no workflow run with this id is active');
    return jsonResponse(201, NOTIFIED.view(notified));
  }

  async function list({ projectId, id }: Call): Promise<ApiResponse> {
    checkName('event id', id);
    return jsonResponse(200, (await engine.listWaiters(projectId, id)).map(waiterView));
  }

  return [
    {
      ...row('publish', 'POST', '/v2/wait/:eventId', 'waitForEvent'),
      summary: 'Makes a step of a workflow run wait for an event. Used by client libraries.',
      takes: { body: WaitSchema, configHeaders: WAIT_HEADERS, isConfiguredByQuery: true },
      refusals: [412, 422],
      responses: { 200: WaitingSchema },
      handle: wait,
    },
    {
      ...row('full', 'POST', '/v2/notify/:eventId', 'notifyEvent'),
      summary: 'Wakes all workflow runs that wait for the event, with the body as its data.',
      takes: { body: 'bytes' },
      responses: { 201: Type.Array(NOTIFIED.schema) },
      handle: notify,
    },
    {
      ...row('full', 'POST', '/v2/notify/:workflowRunId/:eventId', 'notifyWorkflowRun'),
      summary:
        'Wakes one workflow run that waits for the event. If it does not wait yet, its next wait for the event ends at once.',
      takes: { body: 'bytes' },
      refusals: [412],
      responses: { 201: NOTIFIED.schema },
      handle: notifyRun,
    },
    {
      ...row('read', 'GET', '/v2/waiters/:eventId', 'listWaiters'),
      isLong: true,
      summary: 'Lists the waiters for the event: up to 1,000, in order of registration.',
      refusals: [400],
      responses: { 200: Type.Array(WAITER.schema) },
      handle: list,
    },
  ];
}

/**
 * Changes the status of an error that a client library would otherwise take for the end of its run (contract W 4.7).
 */
async function withRunErrors<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw toRunError(error);
  }
}

/**
 * A response contains complete waiters in its first `complete` bytes, and waiters without headers up to `end` bytes.
 * Later waiters are omitted.
 */
const RESPONSE_BYTES = { complete: 16 * 1024 * 1024, end: 64 * 1024 * 1024 };

/**
 * The response to a notification, as a JSON array of limited size (P10). The notification itself wakes any number of
 * runs.
 */
class NotifiedJson {
  readonly #elements: string[] = [];
  #bytes = 0;

  add(batch: readonly NotificationResult[]): void {
    for (const notified of batch) {
      if (this.#bytes > RESPONSE_BYTES.end) return;
      const view = NOTIFIED.view(notified);
      const { waiter } = view as { waiter: View };
      const isComplete = this.#bytes <= RESPONSE_BYTES.complete;
      const element = JSON.stringify(
        isComplete ? view : { ...view, waiter: { ...waiter, headers: {}, timeoutHeaders: {} } },
      );
      this.#elements.push(element);
      this.#bytes += element.length;
    }
  }

  get json(): string {
    return `[${this.#elements.join(',')}]`;
  }
}

/** Small, because each waiter has a URL, which may be long. */
const PAGE_MAX = 200;

const ALL_WAITERS_QUERY = [
  text('eventIdPrefix', 'Prefix of the event ids, or a whole id.'),
  pageCount(PAGE_MAX),
  CURSOR,
];

const LISTED_WAITER = shapeOf<[ListedWaiter]>()(
  {
    eventId: [Text, ({ eventId }) => eventId],
    messageId: [Type.String({ minLength: 1, description: 'id of the wait' }), ({ messageId }) => messageId],
    workflowRunId: [Text, ({ runId }) => runId],
    workflowUrl: [Text, ({ runUrl }) => maskPassword(runUrl)],
    workflowCreatedAt: [Ms, ({ runCreatedAtMs }) => runCreatedAtMs],
    since: [Ms, ({ sinceMs }) => sinceMs],
    deadline: [Ms, ({ deadlineMs }) => deadlineMs],
  },
  'ListedWaiter',
);
const AllWaitersSchema = exactly({ waiters: Type.Array(LISTED_WAITER.schema), cursor: Type.Optional(Text) });

/** Lists the waiters of all events. Our own addition: QStash lists only the waiters of a given event. */
export function allWaiterRoutes({ engine: { storeOf } }: Services): Route[] {
  async function list({ projectId, rawQuery }: Call): Promise<ApiResponse> {
    const { eventIdPrefix: prefix = '', count = PAGE_MAX, cursor } = readQuery(rawQuery, ALL_WAITERS_QUERY);
    const after = cursor === undefined ? undefined : positionOf(cursor);
    const page = { prefix, ...(after && { after }), count: count + 1 };
    const waiters = await storeOf(projectId).waiters.listAllWaiters(page);
    const { items, cursor: next } = cutToPage(waiters, count, ({ key, eventId }) => `${key}-${eventId}`);
    return jsonResponse(200, { waiters: items.map(LISTED_WAITER.view), cursor: next });
  }

  return [
    {
      ...row('read', 'GET', '/v2/waypost/waiters', 'listAllWaiters'),
      summary: 'Lists the waiting workflow runs by event, then in order of registration.',
      takes: { query: ALL_WAITERS_QUERY },
      responses: { 200: AllWaitersSchema },
      handle: list,
    },
  ];
}

function positionOf(cursor: string): WaiterPosition {
  const [, key, eventId = ''] = /^(\d{1,15})-(.*)$/.exec(cursor) ?? [];
  if (!isName(eventId)) throw invalidParameter('cursor', 'take it from the previous response');
  return { key: Number(key), eventId };
}
