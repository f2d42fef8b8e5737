/** Lists what is not finished. Our own addition: the interface has no list of messages. */
import { Slices } from '../engine/slices.ts';
import type { Answer } from './answer.ts';
import { messageFilters, readFilters } from './filters.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { UnfinishedListSchema } from './schemas.ts';
import { unfinishedView } from './views.ts';

const COUNT_DEFAULT = 100;
const FILTERS = messageFilters('unfinished', { countDefault: COUNT_DEFAULT, countMax: 1000 });

export function unfinishedRoutes({ engine, clock, endOfTurn }: Services): Route[] {
  async function list({ projectId, rawQuery }: Call): Promise<Answer> {
    const { ids, attributes, count = COUNT_DEFAULT, cursor } = readFilters(FILTERS, rawQuery);
    const filter = ids ? { messageId: ids } : attributes;
    const request = cursor === undefined ? { count } : { count, cursor };
    const page = await engine.listUnfinished(projectId, filter, request);
    const slices = new Slices(clock, endOfTurn);
    const messages = await slices.map(page.items, (message) => JSON.stringify(unfinishedView(message)));
    const rest = page.cursor === undefined ? '' : `,"cursor":${JSON.stringify(page.cursor)}`;
    return { status: 200, json: `{"messages":[${messages.join(',')}]${rest}}` };
  }

  return [
    {
      ...row('read', 'GET', '/v2/waypost/messages', 'listUnfinishedMessages'),
      isLong: true,
      summary:
        'Lists messages that are not finished, newest first, each with why it waits. A page may be short, or empty, and have a cursor.',
      takes: { filters: FILTERS },
      answers: { 200: UnfinishedListSchema },
      handle: list,
    },
  ];
}
