/**
 * How does a client see what is added to a log? As server-sent events: `open`, then `entry` for each log entry, `lost`
 * with a count when some are left out, and `end` with a reason. A client that reads too slowly loses entries, so that it
 * costs only a fixed amount of memory.
 */
import type { LogWatcher } from '../engine/live/feed.ts';
import type { LiveEntry, LogPosition } from '../engine/stores.ts';
import { encodeCursor } from '../protocol/cursor.ts';
import type { Sink } from './answer.ts';
import { liveEntryView } from './views.ts';

/** Entries are left out while the client has so many bytes to take. A piece may go beyond it. */
export const WAITING_BYTES_MAX = 256 * 1024;

/** Events of about so many characters are written together. */
const PIECE_LENGTH = 16 * 1024;

/** Events that are written together. */
interface Piece {
  count: number;
  bytes: Uint8Array;
}

/** Why the server ends a stream. */
type EndReason = 'draining' | 'unauthenticated' | 'unavailable';

export class LiveStream implements LogWatcher {
  readonly #to: Sink;
  #lost = 0;
  #isOver = false;

  constructor(to: Sink) {
    this.#to = to;
    to.on('drain', () => this.#tellLost());
    this.beat(); // the head of the answer goes with it
  }

  begin(last: LogPosition | undefined): void {
    if (this.#hasRoom) this.#to.write(event('open', {}, last));
  }

  tell(entries: readonly LiveEntry[]): void {
    for (const { bytes, count } of piecesOf(entries)) {
      this.#tellLost();
      if (this.#hasRoom) this.#to.write(bytes);
      else this.#lost += count;
    }
  }

  lose(count: number): void {
    this.#lost += count;
    this.#tellLost();
  }

  leave(): void {
    this.end('unavailable');
  }

  /** A comment, so that neither side takes the other for gone. */
  beat(): void {
    if (this.#hasRoom) this.#to.write(':\n\n');
  }

  /** All that is told later is ignored. */
  end(reason: EndReason): void {
    if (this.#isOver) return;
    this.#tellLost();
    this.#isOver = true;
    this.#to.write(event('end', { reason }));
    this.#to.end();
  }

  get #hasRoom(): boolean {
    return !this.#isOver && this.#to.writableLength < WAITING_BYTES_MAX;
  }

  #tellLost(): void {
    if (this.#lost === 0 || !this.#hasRoom) return;
    this.#to.write(event('lost', { count: this.#lost }));
    this.#lost = 0;
  }
}

/** All streams of a project are told the same entries, which are written as text only once. */
const piecesOfEntries = new WeakMap<readonly LiveEntry[], Piece[]>();

function piecesOf(entries: readonly LiveEntry[]): readonly Piece[] {
  const known = piecesOfEntries.get(entries);
  if (known) return known;
  const pieces: Piece[] = [];
  let text = '';
  let count = 0;
  for (const [index, entry] of entries.entries()) {
    text += event('entry', liveEntryView(entry), entry);
    count += 1;
    if (text.length < PIECE_LENGTH && index < entries.length - 1) continue;
    pieces.push({ count, bytes: new TextEncoder().encode(text) });
    text = '';
    count = 0;
  }
  piecesOfEntries.set(entries, pieces);
  return pieces;
}

/** JSON has no line breaks of its own, so that the data is one line. */
function event(name: string, data: object, at?: LogPosition): string {
  const id = at ? `id: ${encodeCursor(at.timeMs, at.n)}\n` : '';
  return `event: ${name}\n${id}data: ${JSON.stringify(data)}\n\n`;
}
