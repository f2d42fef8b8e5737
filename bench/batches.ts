/** Stores many messages quickly, with a few concurrent batch requests. */
import { Agent, request } from 'undici';
import { DEVELOPMENT_TOKEN } from './waypost-process.ts';

const CONCURRENT_BATCHES = 4;
const BATCH_MESSAGES = 500;
// Longer than any run of a benchmark, shorter than any limit on delays.
const DELAY = '6d';

/** An item of a batch request (contract M 22.3). */
export interface BatchItem {
  destination: string;
  headers: Record<string, string>;
  body: string;
  queue?: string;
}

/** A delayed message of 200 bytes, which is not delivered during the benchmark. */
export function delayedItem(destination: string): BatchItem {
  return {
    destination,
    headers: { 'Upstash-Delay': DELAY, 'Content-Type': 'text/plain' },
    body: 'x'.repeat(200),
  };
}

/** Publishes `count` items; returns the duration in milliseconds. Throws when a batch is rejected. */
export async function storeInBatches(
  { url, token = DEVELOPMENT_TOKEN }: { url: string; token?: string },
  count: number,
  itemOf: (index: number) => BatchItem,
  batchMessages = BATCH_MESSAGES,
): Promise<number> {
  const startedAt = performance.now();
  const agent = new Agent({ connections: CONCURRENT_BATCHES });
  let next = 0;
  const storeSome = async () => {
    while (next < count) {
      const first = next;
      next = Math.min(count, first + batchMessages);
      const response = await request(`${url}/v2/batch`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(Array.from({ length: next - first }, (_, index) => itemOf(first + index))),
        dispatcher: agent,
      });
      const text = await response.body.text();
      if (response.statusCode !== 200) throw new Error(`batch rejected: ${response.statusCode} ${text.slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_BATCHES }, storeSome));
  await agent.close();
  return performance.now() - startedAt;
}
