/**
 * Attempts that have been sent and have no outcome yet, oldest first. One that is over leaves the queue when it is first: a map to
 * which every attempt adds an entry and from which it deletes the entry again is rehashed all the time.
 */
import type { Millis } from '../model.ts';
import type { OriginLine } from './origin-line.ts';

export interface Sent {
  readonly line: OriginLine;
  readonly atMs: Millis;
  /** When to check whether it is silent, as elapsed time. */
  checkAtMs: Millis;
  /** It has given up its slot. */
  isSilent: boolean;
  isOver: boolean;
}

/** Entries that have left the queue are cut off in pieces of so many. */
const CUT = 1_024;

export class SentAttempts {
  #queue: Sent[] = [];
  #first = 0;

  get first(): Sent | undefined {
    while (this.#queue[this.#first]?.isOver) this.shift();
    return this.#queue[this.#first];
  }

  push(sent: Sent): void {
    this.#queue.push(sent);
  }

  /** Removes the first. */
  shift(): void {
    this.#first += 1;
    if (this.#first < CUT) return;
    this.#queue = this.#queue.slice(this.#first);
    this.#first = 0;
  }
}
