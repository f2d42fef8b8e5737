/** Reads, explains, retries and cancels messages (contract M 22.4 to 22.6), and lists unfinished messages. */
import { ApiError } from '../../protocol/errors.ts';
import { SMALL_JSON_LIMIT } from '../limits.ts';
import { readJson } from '../requests/json-body.ts';
import { type ApiResponse, jsonArrayOf, jsonObjectResponse, jsonResponse, NO_BODY } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { CancelledSchema, ExplanationSchema, MessageSchema, UnfinishedListSchema } from '../schemas.ts';
import { messageFilters, readFilters, readSelection } from './filters.ts';
import { explanationView, messageView, unfinishedView } from './views.ts';

const CANCEL_FILTERS = messageFilters('cancel');
const COUNT_DEFAULT = 100;
const UNFINISHED_FILTERS = messageFilters('unfinished', { countDefault: COUNT_DEFAULT, countMax: 1000 });

export function messageRoutes({ engine }: Services): Route[] {
  async function get({ projectId, id }: Call): Promise<ApiResponse> {
    const message = await engine.findMessage(projectId, id);
    if (!message) throw notFound(id);
    return jsonResponse(200, messageView(message));
  }

  async function explain({ projectId, id }: Call): Promise<ApiResponse> {
    const explanation = await engine.explainMessage(projectId, id);
    if (!explanation) throw notFound(id);
    return jsonResponse(200, { ...explanationView(explanation), cell: engine.cellOf?.(projectId) });
  }

  async function retry({ projectId, id }: Call): Promise<ApiResponse> {
    const outcome = await engine.storeOf(projectId).messages.makeDue({ id });
    if (outcome === 'missing') throw notFound(id);
    if (outcome === 'attempting') throw new ApiError('not_found', `message ${id} is being attempted: it does not wait`);
    return NO_BODY;
  }

  async function cancelOne({ projectId, id }: Call): Promise<ApiResponse> {
    const cancelled = await engine.storeOf(projectId).messages.cancelById({ ids: [id] });
    if (cancelled === 0) throw notFound(id);
    return jsonResponse(200, { cancelled });
  }

  async function cancelMany({ projectId, rawQuery, body }: Call): Promise<ApiResponse> {
    const { ids, count, ...filter } = readFilters(CANCEL_FILTERS, rawQuery, await readJson(body, SMALL_JSON_LIMIT));
    const cancelled = await (ids
      ? engine.storeOf(projectId).messages.cancelById({ ids })
      : engine.cancelMatching(projectId, filter, count));
    return jsonResponse(200, { cancelled });
  }

  return [
    {
      ...row('read', 'GET', '/v2/messages/:messageId', 'getMessage'),
      isLong: true,
      summary: 'Reads a message that is unfinished or was delivered recently.',
      responses: { 200: MessageSchema },
      handle: get,
    },
    {
      ...row('read', 'GET', '/v2/messages/:messageId/explain', 'explainMessage'),
      summary: 'Explains why a message waits, or how it ended.',
      responses: { 200: ExplanationSchema },
      handle: explain,
    },
    {
      ...row('full', 'POST', '/v2/messages/:messageId/retry', 'retryMessage'),
      summary:
        'Makes a message due that waits for its delay or its next attempt, also a step of a workflow run. Queues and flow control still apply.',
      handle: retry,
    },
    {
      ...row('full', 'DELETE', '/v2/messages/:messageId', 'cancelMessage'),
      summary: 'Cancels a message.',
      responses: { 200: CancelledSchema },
      handle: cancelOne,
    },
    {
      ...row('full', 'DELETE', '/v2/messages', 'cancelMessages'),
      summary: 'Cancels the messages that match filters, all without a filter.',
      takes: { filters: CANCEL_FILTERS },
      responses: { 200: CancelledSchema },
      handle: cancelMany,
    },
  ];
}

/** Our own addition: QStash has no list of messages. */
export function unfinishedRoutes({ engine, clock, endOfTurn }: Services): Route[] {
  async function list({ projectId, rawQuery }: Call): Promise<ApiResponse> {
    const { ids, filter, page: request } = readSelection(UNFINISHED_FILTERS, COUNT_DEFAULT, rawQuery);
    const page = await engine.listUnfinished(projectId, ids ? { messageId: ids } : filter, request);
    const messages = await jsonArrayOf(page.items, unfinishedView, { clock, endOfTurn });
    return jsonObjectResponse({ messages, cursor: JSON.stringify(page.cursor) });
  }

  return [
    {
      ...row('read', 'GET', '/v2/waypost/messages', 'listUnfinishedMessages'),
      isLong: true,
      summary:
        'Lists unfinished messages, newest first, each with the reason why it waits. A page with a cursor may be short or empty.',
      takes: { filters: UNFINISHED_FILTERS },
      responses: { 200: UnfinishedListSchema },
      handle: list,
    },
  ];
}

function notFound(id: string): ApiError {
  return new ApiError('not_found', `message ${id} not found`);
}
