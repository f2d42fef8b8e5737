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

interface Paging<Page> {
  /** How many items a page has, or tells of. */
  amountOf: (page: Page) => number;
  /** What the server gives, or does, at a time. */
  pageMax: number;
}

/** Asks for pages of a list, or of what is done to one, until there were `countMax` items. */
async function eachPage<Page extends object>(
  { server, query }: Call,
  operationId: string,
  { amountOf, pageMax, countMax }: Paging<Page> & { countMax: number },
  onPage: (page: Page) => void,
): Promise<void> {
  const asked = new URLSearchParams(query);
  for (let left = countMax; left > 0; ) {
    asked.set('count', String(Math.min(pageMax, left)));
    const page = await server.ask<Page & { cursor?: string }>(operationId, { query: asked });
    onPage(page);
    left -= amountOf(page);
    if (!page.cursor) return;
    asked.set('cursor', page.cursor);
  }
}

/** At most `countMax` items: what the pages have as `member`. */
export async function readItems<Item>(
  call: Call,
  operationId: string,
  { member, ...amount }: { member: string; pageMax: number; countMax: number },
): Promise<Item[]> {
  const found: Item[] = [];
  const itemsOf = (page: object) => Reflect.get(page, member) as Item[];
  const amountOf = (page: object) => itemsOf(page).length;
  await eachPage(call, operationId, { ...amount, amountOf }, (page) => found.push(...itemsOf(page)));
  return found;
}

/** The first items of a list, as many as `--count` asks for, and a word on standard error when there are more. */
export async function readList<Item>(
  call: Call,
  operationId: string,
  member: string,
  pageMax: number,
): Promise<Item[]> {
  const countMax = countOf(call);
  // One more tells whether there are more.
  const isPlain = !call.query.has('count');
  const found = await readItems<Item>(call, operationId, { member, pageMax, countMax: countMax + (isPlain ? 1 : 0) });
  if (found.length > countMax)
    call.terminal.complain(`These are the first ${countMax}: there are more, see --count.\n`);
  return found.slice(0, countMax);
}

/** Counts, or acts on, all that a call names; resolves to how many there were. */
export type Count = (call: Call, onProgress: (done: number) => void) => Promise<number>;

/** Goes through a whole list, or does something to all of it, as far as `--count` asks. */
export function sumPages<Page extends object>(operationId: string, paging: Paging<Page>): Count {
  return async (call, onProgress) => {
    let sum = 0;
    const countMax = countOf(call, Number.POSITIVE_INFINITY);
    await eachPage<Page>(call, operationId, { ...paging, countMax }, (page) => {
      sum += paging.amountOf(page);
      onProgress(sum);
    });
    return sum;
  };
}

/** For what has no pages, since it is not found again once it is done: asks until less is done than could be. Words are ids. */
export function sumPieces<Answer extends object>(operationId: string, { amountOf, pageMax }: Paging<Answer>): Count {
  return async ({ server, query, words }, onProgress) => {
    // Ids are answered all at once.
    if (words.length > 0) return amountOf(await server.ask<Answer>(operationId, { query }));
    const countMax = query.has('count') ? Number(query.get('count')) : Number.POSITIVE_INFINITY;
    const asked = new URLSearchParams(query);
    let sum = 0;
    for (let count = 0, done = 0; done === count && sum < countMax; ) {
      count = Math.min(pageMax, countMax - sum);
      asked.set('count', String(count));
      done = amountOf(await server.ask<Answer>(operationId, { query: asked }));
      sum += done;
      onProgress(sum);
    }
    return sum;
  };
}
