/** Reads and cancels messages (contract M 22.4 to 22.6). */
import { ApiError } from '../protocol/errors.ts';
import { type Answer, answer, NO_BODY } from './answer.ts';
import { type Filters, messageFilters, readFilters } from './filters.ts';
import { readJson } from './json-body.ts';
import { SMALL_JSON_LIMIT } from './limits.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { CancelledSchema, ExplanationSchema, MessageSchema } from './schemas.ts';
import { explanationView, messageView } from './views.ts';

const CANCELLED = messageFilters('cancel');

export function messageRoutes({ engine }: Services): Route[] {
  async function get({ projectId, id }: Call): Promise<Answer> {
    const message = await engine.findMessage(projectId, id);
    if (!message) throw notFound(id);
    return answer(200, messageView(message));
  }

  async function explain({ projectId, id }: Call): Promise<Answer> {
    const explanation = await engine.explainMessage(projectId, id);
    if (!explanation) throw notFound(id);
    return answer(200, { ...explanationView(explanation), cell: engine.cellOf?.(projectId) });
  }

  async function retry({ projectId, id }: Call): Promise<Answer> {
    const outcome = await engine.storeOf(projectId).messages.makeDue({ id });
    if (outcome === 'missing') throw notFound(id);
    if (outcome === 'attempting') throw new ApiError('not_found', `message ${id} is being attempted: it does not wait`);
    return NO_BODY;
  }

  async function cancelOne({ projectId, id }: Call): Promise<Answer> {
    const cancelled = await engine.storeOf(projectId).messages.cancelById({ ids: [id] });
    if (cancelled === 0) throw notFound(id);
    return answer(200, { cancelled });
  }

  async function cancelMany({ projectId, rawQuery, body }: Call): Promise<Answer> {
    const given = await readJson(body, SMALL_JSON_LIMIT);
    const filters = readFilters(CANCELLED, rawQuery, given);
    return answer(200, { cancelled: await cancel(projectId, filters) });
  }

  function cancel(projectId: number, { ids, attributes, count }: Filters): Promise<number> {
    if (ids) return engine.storeOf(projectId).messages.cancelById({ ids });
    return engine.cancelMatching(projectId, attributes, count);
  }

  return [
    {
      ...row('read', 'GET', '/v2/messages/:messageId', 'getMessage'),
      isLong: true,
      summary: 'Reads a message that is not finished, or was delivered a moment ago.',
      answers: { 200: MessageSchema },
      handle: get,
    },
    {
      ...row('read', 'GET', '/v2/messages/:messageId/explain', 'explainMessage'),
      summary: 'Says why a message waits, or what became of it.',
      answers: { 200: ExplanationSchema },
      handle: explain,
    },
    {
      ...row('full', 'POST', '/v2/messages/:messageId/retry', 'retryMessage'),
      summary:
        'Makes a message due that waits for its delay or its next attempt, also a step of a workflow run. Queues and flow control still count.',
      handle: retry,
    },
    {
      ...row('full', 'DELETE', '/v2/messages/:messageId', 'cancelMessage'),
      summary: 'Cancels a message.',
      answers: { 200: CancelledSchema },
      handle: cancelOne,
    },
    {
      ...row('full', 'DELETE', '/v2/messages', 'cancelMessages'),
      summary: 'Cancels the messages that match filters, all without a filter.',
      takes: { filters: CANCELLED },
      answers: { 200: CancelledSchema },
      handle: cancelMany,
    },
  ];
}

function notFound(id: string): ApiError {
  return new ApiError('not_found', `message ${id} not found`);
}
