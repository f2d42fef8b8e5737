/** Reads lists that come in pages. */
import { CommandFailed, EXIT } from '../command.ts';
import type { Call } from './verb.ts';

const COUNT_DEFAULT = 20;

/** How many items `--count` asks for. */
export function countOf({ query }: Call, countDefault = COUNT_DEFAULT): number {
  const count = query.has('count') ? Number(query.get('count')) : countDefault;
  if (count === Number.POSITIVE_INFINITY || (Number.isSafeInteger(count) && count >= 1)) return count;
  throw new CommandFailed('--count: a whole number of at least 1 is needed', EXIT.usage);
}

/** At most `countMax` items of a list; `itemsOf` takes them out of a page. `pageMax`: what the server gives at a time. */
export async function* readPages<Page extends object, Item>(
  { server, query }: Call,
  operationId: string,
  { itemsOf, countMax, pageMax }: { itemsOf: (page: Page) => Item[]; countMax: number; pageMax: number },
): AsyncGenerator<Item[]> {
  const asked = new URLSearchParams(query);
  for (let left = countMax; left > 0; ) {
    asked.set('count', String(Math.min(pageMax, left)));
    const page = await server.ask<Page & { cursor?: string }>(operationId, { query: asked });
    const items = itemsOf(page);
    yield items;
    left -= items.length;
    if (!page.cursor) return;
    asked.set('cursor', page.cursor);
  }
}

/** The first items of a list, as many as `--count` asks for, and a word on standard error when there are more. */
export async function readList<Item>(
  call: Call,
  operationId: string,
  member: string,
  pageMax: number,
): Promise<Item[]> {
  const countMax = countOf(call);
  const found: Item[] = [];
  // One more tells whether there are more.
  const isPlain = !call.query.has('count');
  const amount = {
    itemsOf: (page: object) => Reflect.get(page, member) as Item[],
    countMax: countMax + (isPlain ? 1 : 0),
    pageMax,
  };
  for await (const items of readPages(call, operationId, amount)) found.push(...items);
  if (found.length > countMax)
    call.terminal.complain(`These are the first ${countMax}: there are more, see --count.\n`);
  return found.slice(0, countMax);
}
