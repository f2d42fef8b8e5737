/** How the judge of a run reads what servers say in the end. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, Reply } from './client.ts';

// A worker on a machine that is short of time can take a cell that answers late for one that is away, and says 503 for seconds.
const ASK_FOR_MS = 60_000;
const PAUSE_MS = 250;

/** What a GET of `path` is answered with; asks again for a minute while it is left open. Throws if it is refused. */
export async function answerOf(client: Client, path: string): Promise<unknown> {
  const limit = performance.now() + ASK_FOR_MS;
  let reply: Reply;
  do {
    reply = await client.call('GET', path);
    if (reply.kind === 'ok') return reply.json;
    await sleep(PAUSE_MS);
  } while (reply.kind === 'unknown' && performance.now() < limit);
  throw new Error(`GET ${path}: ${JSON.stringify(reply)}`);
}

/** Goes through the `member` of each page. The path has a query. */
export async function* pages<T>(client: Client, path: string, member: string): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const more: string = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = (await answerOf(client, `${path}${more}`)) as Record<string, T[]> & { cursor?: string };
    yield* page[member] ?? [];
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/** What all pages have. */
export async function all<T>(client: Client, path: string, member: string): Promise<T[]> {
  const items: T[] = [];
  for await (const item of pages<T>(client, path, member)) items.push(item);
  return items;
}
