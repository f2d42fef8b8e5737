/** Lists what happened to messages (contract M 18.2, 22.39). */
import { Slices } from '../engine/slices.ts';
import type { Answer } from './answer.ts';
import { messageFilters, readFilters } from './filters.ts';
import { PAGE_BODY_BYTES_MAX } from './limits.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { EventsSchema, LogsSchema } from './schemas.ts';
import { logEntryView } from './views.ts';

const COUNT_MAX = 1000;

export function logRoutes({ engine, logsPageDefault, clock, endOfTurn }: Services): Route[] {
  const countDefault = Math.min(logsPageDefault, COUNT_MAX);
  const filters = messageFilters('logs', { countDefault, countMax: COUNT_MAX });

  async function list(
    { projectId, rawQuery }: Call,
    bytesMax = PAGE_BODY_BYTES_MAX,
  ): Promise<{ entries: string; cursor: string }> {
    const { ids, attributes, count = countDefault, cursor, order } = readFilters(filters, rawQuery);
    const filter = ids ? { messageId: ids } : attributes;
    const request = { count, order, bytesMax, ...(cursor !== undefined && { cursor }) };
    const page = await engine.storeOf(projectId).logs.listLogs({ filter, page: request });
    // A page may have a thousand entries with many headers each, so it is written in slices.
    const slices = new Slices(clock, endOfTurn);
    const entries = await slices.map(page.items, (entry) => JSON.stringify(logEntryView(entry)));
    return {
      entries: `[${entries.join(',')}]`,
      cursor: page.cursor === undefined ? '' : `"cursor":${JSON.stringify(page.cursor)},`,
    };
  }

  async function events(call: Call): Promise<Answer> {
    const { entries, cursor } = await list(call);
    return { status: 200, json: `{${cursor}"events":${entries}}` };
  }

  /**
   * The same entries under both names, since clients of this path read one or the other. They are written as JSON only
   * once, but are twice in the answer, so a page has half as many bytes.
   */
  async function logs(call: Call): Promise<Answer> {
    const { entries, cursor } = await list(call, PAGE_BODY_BYTES_MAX / 2);
    return { status: 200, json: `{${cursor}"logs":${entries},"events":${entries}}` };
  }

  const takes = { filters };
  return [
    {
      ...row('read', 'GET', '/v2/logs', 'listLogs'),
      isLong: true,
      summary: 'Lists log entries, newest first.',
      takes,
      answers: { 200: LogsSchema },
      handle: logs,
    },
    {
      ...row('read', 'GET', '/v2/events', 'listEvents'),
      isLong: true,
      summary: 'Lists log entries, newest first, in the shape that the client libraries read.',
      takes,
      answers: { 200: EventsSchema },
      handle: events,
    },
  ];
}
