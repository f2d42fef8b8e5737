/** Reads paginated lists, and repeats bulk operations that the server limits. */
import { CommandFailed, EXIT } from '../command.ts';
import type { Call } from './verb.ts';

const COUNT_DEFAULT = 20;

/** The value of `--count`. */
export function countOf({ query }: Call, countDefault = COUNT_DEFAULT): number {
  const count = query.has('count') ? Number(query.get('count')) : countDefault;
  if (count === Number.POSITIVE_INFINITY || (Number.isSafeInteger(count) && count >= 1)) return count;
  throw new CommandFailed('--count: must be a whole number of at least 1', EXIT.usage);
}

interface Paging<Page> {
  /** Counts the items of a page, or reads the number that the page reports. */
  amountOf: (page: Page) => number;
  /** The server's limit for one request. */
  pageMax: number;
}

/** Requests pages of a list or of a bulk operation, until the pages contain `countMax` items together. */
async function eachPage<Page extends object>(
  { server, query }: Call,
  operationId: string,
  { amountOf, pageMax, countMax }: Paging<Page> & { countMax: number },
  onPage: (page: Page) => void,
): Promise<void> {
  const parameters = new URLSearchParams(query);
  for (let left = countMax; left > 0; ) {
    parameters.set('count', String(Math.min(pageMax, left)));
    const page = await server.ask<Page & { cursor?: string }>(operationId, { query: parameters });
    onPage(page);
    left -= amountOf(page);
    if (!page.cursor) return;
    parameters.set('cursor', page.cursor);
  }
}

/** Reads at most `countMax` items from the `member` of the pages. */
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

/** Reads the first items of a list, up to `--count`, and prints a note on standard error if there are more. */
export async function readList<Item>(
  call: Call,
  operationId: string,
  member: string,
  pageMax: number,
): Promise<Item[]> {
  const countMax = countOf(call);
  // One item more than the default is read, to find out whether the list has more items.
  const isDefault = !call.query.has('count');
  const found = await readItems<Item>(call, operationId, { member, pageMax, countMax: countMax + (isDefault ? 1 : 0) });
  if (found.length > countMax) call.terminal.printError(`Showing the first ${countMax}; use --count for more.\n`);
  return found.slice(0, countMax);
}

/** Counts or processes the items that a call selects. Resolves to the number of items. */
export type Count = (call: Call, onProgress: (done: number) => void) => Promise<number>;

/** Reads or processes all pages, up to `--count` items. */
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

/**
 * Repeats an operation until the server processes less than a full batch. Needs no cursor, since processed items no
 * longer match.
 */
export function sumBatches<Result extends object>(operationId: string, { amountOf, pageMax }: Paging<Result>): Count {
  return async ({ server, query, words }, onProgress) => {
    // All ids are processed in one request.
    if (words.length > 0) return amountOf(await server.ask<Result>(operationId, { query }));
    const countMax = query.has('count') ? Number(query.get('count')) : Number.POSITIVE_INFINITY;
    const parameters = new URLSearchParams(query);
    let sum = 0;
    for (let count = 0, done = 0; done === count && sum < countMax; ) {
      count = Math.min(pageMax, countMax - sum);
      parameters.set('count', String(count));
      done = amountOf(await server.ask<Result>(operationId, { query: parameters }));
      sum += done;
      onProgress(sum);
    }
    return sum;
  };
}
