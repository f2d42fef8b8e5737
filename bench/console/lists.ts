/** Measures the response time of a page of each list of the console. */
import { Pool } from 'undici';
import type { Figure } from '../figure.ts';
import { quantile } from '../statistics.ts';
import { AUTHORIZATION } from './store.ts';

/** The requests of the console. Filters that match little or nothing make the server skip most rows. */
const LISTS: readonly (readonly [name: string, path: string])[] = [
  ['overview', '/v2/waypost/overview'],
  ['minutes of an hour', '/v2/waypost/minutes'],
  ['log', '/v2/logs?count=200'],
  ['log, rare label', '/v2/logs?count=200&label=l7'],
  ['log, state without matches', '/v2/logs?count=200&state=CANCELED'],
  ['log, host without matches', '/v2/logs?count=200&host=nowhere.example'],
  ['unfinished messages', '/v2/waypost/messages'],
  ['unfinished messages, held', '/v2/waypost/messages?state=held'],
  ['unfinished messages, rare label', '/v2/waypost/messages?label=l7'],
  ['DLQ', '/v2/dlq'],
  ['DLQ, label without matches', '/v2/dlq?label=none'],
  ['runs', '/v2/workflows/logs'],
  ['runs, state without matches', '/v2/workflows/logs?state=RUN_FAILED'],
  ['failed runs', '/v2/workflows/dlq'],
  ['queues', '/v2/queues'],
  ['flow-control keys', '/v2/flowControl'],
  ['schedules', '/v2/schedules'],
];

const HOUR_MS = 3_600_000;
const WARM_UP = 2;
/** After this time, the measurement of a list ends: slow lists are measured over fewer pages. */
const LIST_LIMIT_MS = 3_000;

/** The p95 over up to `pages` pages of each list: the first page and the pages that follow by cursor. */
export async function measureLists(url: string, pages: number, note: (figures: Figure[]) => void): Promise<void> {
  const pool = new Pool(url, { connections: 1 });
  try {
    for (const [name, path] of LISTS) {
      const pageMs: number[] = [];
      let cursor: string | undefined;
      const endsAt = performance.now() + LIST_LIMIT_MS;
      for (let nth = -WARM_UP; nth < pages && (nth < 1 || performance.now() < endsAt); nth += 1) {
        const startedAt = performance.now();
        cursor = await readPage(pool, targetOf(path, cursor));
        if (nth >= 0) pageMs.push(performance.now() - startedAt);
      }
      note([{ name: `one page, ${name}, p95`, value: quantile(pageMs, 0.95), unit: 'ms' }]);
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

/** Returns the cursor of the next page; `undefined` after the last page, so that the first page follows. */
async function readPage(pool: Pool, path: string): Promise<string | undefined> {
  const response = await pool.request({ method: 'GET', path, headers: { authorization: AUTHORIZATION } });
  const text = await response.body.text();
  if (response.statusCode !== 200) throw new Error(`GET ${path}: ${response.statusCode} ${text.slice(0, 300)}`);
  return (JSON.parse(text) as { cursor?: string }).cursor;
}
