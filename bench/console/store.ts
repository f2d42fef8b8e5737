/** Fills a server with data for the lists of the console. */
import { request } from 'undici';
import { delayedItem, storeInBatches } from '../batches.ts';
import type { ListeningProcess } from '../child-process.ts';
import { DEVELOPMENT_TOKEN } from '../waypost-process.ts';
import { triggerInBatches } from '../workflows/waypost-runs.ts';

export interface StoreSize {
  messages: number;
  runs: number;
}

export const AUTHORIZATION = `Bearer ${DEVELOPMENT_TOKEN}`;

/** No server listens on this port. */
const NOWHERE = 'http://127.0.0.1:1/';
/** The maximum number of queues of a project. */
const LANES = 100;
/** Few messages share a label, so that a list of one label is expensive. */
const MESSAGES_PER_LABEL = 10;
/** One message in this many has failed, after a single attempt. */
const FAILED_EVERY = 100;
const FAILED_MAX = 2_000;

/** Most messages are delayed for days, some are in paused queues or have flow-control keys, and some have failed. All runs are delayed. */
export async function fillStore(server: ListeningProcess, { messages, runs }: StoreSize): Promise<void> {
  const failed = Math.min(FAILED_MAX, Math.ceil(messages / FAILED_EVERY));
  for (let nth = 0; nth < LANES; nth += 1) {
    await send(server, 'POST', '/v2/queues', JSON.stringify({ queueName: `q${nth}`, parallelism: 1, paused: true }));
    await send(server, 'POST', `/v2/schedules/${NOWHERE}`, 'x', { 'upstash-cron': '0 0 1 1 *' });
  }
  await storeInBatches(server, failed, () => ({
    ...delayedItem(NOWHERE),
    headers: { 'Upstash-Retries': '0', 'Content-Type': 'text/plain' },
  }));
  const labels = Math.ceil(messages / MESSAGES_PER_LABEL);
  await storeInBatches(server, messages - failed, (index) => {
    const item = delayedItem(NOWHERE);
    const label = { 'Upstash-Label': `l${index % labels}` };
    if (index % 10 === 0) return { ...item, headers: label, queue: `q${index % LANES}` };
    const headers = { ...item.headers, ...label };
    if (index % 10 > 1) return { ...item, headers };
    const key = { 'Upstash-Flow-Control-Key': `k${index % LANES}`, 'Upstash-Flow-Control-Value': 'parallelism=1' };
    return { ...item, headers: { ...headers, ...key } };
  });
  await triggerInBatches(server, NOWHERE, { first: 0, count: runs, headers: { 'upstash-delay': '6d' } });
}

async function send(
  server: ListeningProcess,
  method: string,
  path: string,
  body: string,
  headers: Record<string, string> = { 'content-type': 'application/json' },
): Promise<void> {
  const response = await request(`${server.url}${path}`, {
    ...{ method, body, headers: { authorization: AUTHORIZATION, ...headers } },
  });
  const text = await response.body.text();
  if (response.statusCode > 299) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`);
}
