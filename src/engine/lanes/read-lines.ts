/** How does a worker learn of all lines that have messages? In pieces: there may be as many as messages. */
import type { Store } from '../../store/store.ts';
import type { OriginLine } from './origin-line.ts';

/** Lines read at a time: a few milliseconds of the store's work. */
export const LINES_READ = 2_000;

/** All of them, piece by piece; no piece is larger than `LINES_READ`. Throws `StoreUnavailable`. */
export async function* readLines(messages: Pick<Store['messages'], 'waitingLines'>): AsyncGenerator<OriginLine[]> {
  let lines: OriginLine[] = [];
  do {
    lines = await messages.waitingLines({ after: lines.at(-1), limit: LINES_READ });
    yield lines;
  } while (lines.length === LINES_READ);
}
