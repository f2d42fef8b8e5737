/** Lists what the runs of a project wait for. Our own addition: the interface asks for one event by its id. */
import { Type } from '@sinclair/typebox';
import type { ListedWaiter, WaiterPosition } from '../engine/runs/stores.ts';
import { isName } from '../protocol/names.ts';
import { shownUrl } from '../protocol/shown-url.ts';
import { type Answer, answer } from './answer.ts';
import { CURSOR, pageCount, text } from './parameter-kinds.ts';
import { invalidParameter, readQuery } from './parameters.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { exactly, Ms, Text } from './schemas.ts';

/** Each has a URL, which may be long. */
const PAGE_MAX = 200;

const QUERY = [
  text('eventIdPrefix', 'How the ids of the events begin; a whole id is possible too.'),
  pageCount(PAGE_MAX),
  CURSOR,
];

const AllWaitersSchema = exactly({
  waiters: Type.Array(
    exactly(
      {
        eventId: Text,
        messageId: Type.String({ minLength: 1, description: 'id of the wait' }),
        workflowRunId: Text,
        workflowUrl: Text,
        workflowCreatedAt: Ms,
        since: Ms,
        deadline: Ms,
      },
      'ListedWaiter',
    ),
  ),
  cursor: Type.Optional(Text),
});

export function allWaiterRoutes({ engine: { storeOf } }: Services): Route[] {
  async function list({ projectId, rawQuery }: Call): Promise<Answer> {
    const { eventIdPrefix: prefix = '', count = PAGE_MAX, cursor } = readQuery(rawQuery, QUERY);
    const after = cursor === undefined ? undefined : positionOf(cursor);
    // One more than is shown is read, to know whether there are more.
    const found = await storeOf(projectId).waiters.listAllWaiters({
      prefix,
      ...(after && { after }),
      count: count + 1,
    });
    const shown = found.slice(0, count);
    const last = shown.at(-1);
    return answer(200, {
      waiters: shown.map(view),
      cursor: last && found.length > count ? `${last.key}-${last.eventId}` : undefined,
    });
  }

  return [
    {
      ...row('read', 'GET', '/v2/waypost/waiters', 'listAllWaiters'),
      summary: 'Lists which workflow runs wait for which events, by event and then in order of registration.',
      takes: { query: QUERY },
      answers: { 200: AllWaitersSchema },
      handle: list,
    },
  ];
}

function view({ eventId, messageId, runId, runUrl, runCreatedAtMs, sinceMs, deadlineMs }: ListedWaiter) {
  return {
    eventId,
    messageId,
    workflowRunId: runId,
    workflowUrl: shownUrl(runUrl),
    workflowCreatedAt: runCreatedAtMs,
    since: sinceMs,
    deadline: deadlineMs,
  };
}

function positionOf(cursor: string): WaiterPosition {
  const [, key, eventId = ''] = /^(\d{1,15})-(.*)$/.exec(cursor) ?? [];
  if (!isName(eventId)) throw invalidParameter('cursor', 'take it from the answer before');
  return { key: Number(key), eventId };
}
