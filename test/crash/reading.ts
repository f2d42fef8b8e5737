/** Reads the final state of servers for the checks of a run. */
import { eventually } from '../support/eventually.ts';
import type { Client } from './client.ts';

/**
 * Resolves to the response to a GET of `path`. Throws if the request is rejected. Retries for a minute if the outcome is
 * unknown: a worker on a busy machine can mistake a slow cell for an unavailable one, and respond with 503 for seconds.
 */
export async function answerOf(client: Client, path: string): Promise<unknown> {
  let said = '';
  const { json } = await eventually(
    () => `an answer to GET ${path}: ${said}`,
    async () => {
      const reply = await client.call('GET', path);
      said = JSON.stringify(reply);
      if (reply.kind === 'refused') throw new Error(`GET ${path}: ${said}`);
      return reply.kind === 'ok' && reply;
    },
  );
  return json;
}

/** Yields the items in `member` of each page. `path` must have a query. */
export async function* pages<T>(client: Client, path: string, member: string): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const more: string = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = (await answerOf(client, `${path}${more}`)) as Record<string, T[]> & { cursor?: string };
    yield* page[member] ?? [];
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/** Resolves to the items of all pages. */
export async function all<T>(client: Client, path: string, member: string): Promise<T[]> {
  const items: T[] = [];
  for await (const item of pages<T>(client, path, member)) items.push(item);
  return items;
}
