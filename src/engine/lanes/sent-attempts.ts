/**
 * Attempts that have been sent and have no outcome yet, oldest first. A linked list: a map to which every attempt adds an entry and
 * removes it again would be rebuilt all the time.
 */
import type { Millis } from '../model.ts';
import type { OriginLine } from './origin-line.ts';

export interface Sent {
  readonly line: OriginLine;
  readonly atMs: Millis;
  /** It has given up its slot. */
  isSilent: boolean;
  /** When to ask whether it is silent, as elapsed time. */
  lookAtMs: Millis;
  previous: Sent | undefined;
  next: Sent | undefined;
}

export class SentAttempts {
  #first: Sent | undefined;
  #last: Sent | undefined;

  get first(): Sent | undefined {
    return this.#first;
  }

  add(line: OriginLine, atMs: Millis, lookAtMs: Millis): Sent {
    const sent: Sent = { line, atMs, isSilent: false, lookAtMs, previous: undefined, next: undefined };
    this.#append(sent);
    return sent;
  }

  moveToEnd(sent: Sent, lookAtMs: Millis): void {
    this.delete(sent);
    sent.lookAtMs = lookAtMs;
    this.#append(sent);
  }

  /** Without effect for one that is not in the list. */
  delete(sent: Sent): void {
    const { previous, next } = sent;
    if (previous) previous.next = next;
    else if (this.#first === sent) this.#first = next;
    if (next) next.previous = previous;
    else if (this.#last === sent) this.#last = previous;
    sent.previous = undefined;
    sent.next = undefined;
  }

  #append(sent: Sent): void {
    sent.previous = this.#last;
    if (this.#last) this.#last.next = sent;
    else this.#first = sent;
    this.#last = sent;
  }
}
