/** How long does a page of each list take that the console shows? */
import { Pool } from 'undici';
import type { Figure } from '../figure.ts';
import { quantile } from '../statistics.ts';
import { AUTHORIZATION } from './store.ts';

/** As the console asks for them. Where a filter matches little or nothing, most is passed over. */
const LISTS: readonly (readonly [name: string, path: string])[] = [
  ['overview', '/v2/waypost/overview'],
  ['minutes of an hour', '/v2/waypost/minutes'],
  ['log', '/v2/logs?count=200'],
  ['log of a rare label', '/v2/logs?count=200&label=l7'],
  ['log of a state that nothing has', '/v2/logs?count=200&state=CANCELED'],
  ['log of a host that nothing has', '/v2/logs?count=200&host=nowhere.example'],
  ['unfinished messages', '/v2/waypost/messages'],
  ['unfinished messages held back', '/v2/waypost/messages?state=held'],
  ['unfinished messages of a rare label', '/v2/waypost/messages?label=l7'],
  ['DLQ', '/v2/dlq'],
  ['DLQ of a label that nothing has', '/v2/dlq?label=none'],
  ['runs', '/v2/workflows/logs'],
  ['runs of a state that nothing has', '/v2/workflows/logs?state=RUN_FAILED'],
  ['runs that failed', '/v2/workflows/dlq'],
  ['queues', '/v2/queues'],
  ['flow-control keys', '/v2/flowControl'],
  ['schedules', '/v2/schedules'],
];

const HOUR_MS = 3_600_000;
const WARM_UP = 2;
/** What is as slow as that is known well enough after fewer pages. */
const LIST_LIMIT_MS = 3_000;

/** The p95 of up to `pages` pages of each list, the first and those that its cursors lead to. */
export async function measureLists(url: string, pages: number, note: (figures: Figure[]) => void): Promise<void> {
  const pool = new Pool(url, { connections: 1 });
  try {
    for (const [name, path] of LISTS) {
      const takenMs: number[] = [];
      let cursor: string | undefined;
      const endsAt = performance.now() + LIST_LIMIT_MS;
      for (let nth = -WARM_UP; nth < pages && (nth < 1 || performance.now() < endsAt); nth += 1) {
        const startedAt = performance.now();
        cursor = await readPage(pool, targetOf(path, cursor));
        if (nth >= 0) takenMs.push(performance.now() - startedAt);
      }
      note([{ name: `a page of: ${name}, p95`, value: quantile(takenMs, 0.95), unit: 'ms' }]);
    }
  } finally {
    await pool.destroy();
  }
}

function targetOf(path: string, cursor: string | undefined): string {
  const [route = '', query] = path.split('?');
  const search = new URLSearchParams(query);
  if (route.endsWith('/minutes')) search.set('fromDate', String(Date.now() - HOUR_MS));
  if (cursor !== undefined) search.set('cursor', cursor);
  return `${route}?${search}`;
}

/** Returns the cursor of the next one; after the last comes the first again. */
async function readPage(pool: Pool, path: string): Promise<string | undefined> {
  const answer = await pool.request({ method: 'GET', path, headers: { authorization: AUTHORIZATION } });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`GET ${path}: ${answer.statusCode} ${text.slice(0, 300)}`);
  return (JSON.parse(text) as { cursor?: string }).cursor;
}
