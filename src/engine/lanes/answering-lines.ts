/**
 * Which lines have answered lately? A line is proven by an answer that was read to its end. This ends when an attempt
 * ends without an answer, or when its attempts wait for longer than a moment and none is answered. A first byte proves
 * nothing: it costs a hostile endpoint no more than silence does.
 *
 * A line keeps its place while messages come and go. A map in which each of them adds a key and removes one makes itself anew all
 * the time, in the old generation of the heap.
 */
import type { Millis } from '../model.ts';
import type { OriginLine } from './origin-line.ts';

/** A line that is silent for longer gets no more of the slots that are for proven lines. */
const SILENCE_MAX_MS = 2_000;
/** Proven lines that are remembered: those that answered last. */
const PROVEN_MAX = 2_048;

interface Line {
  /** How many of its attempts wait for their answer. */
  waiting: number;
  isProven: boolean;
  /** Of a proven line with attempts that wait. */
  silentSinceMs: Millis;
}

export class AnsweringLines {
  /**
   * Those that are proven or have attempts that wait. The proven ones in the order in which they became so; in that of their latest
   * answers since there are as many as may be.
   */
  readonly #lines = new Map<OriginLine, Line>();
  #provenCount = 0;
  /** No line is silent for too long before. */
  #silentAtMs: Millis = Infinity;
  readonly #onChange: (line: OriginLine, isProven: boolean) => void;

  constructor(onChange: (line: OriginLine, isProven: boolean) => void) {
    this.#onChange = onChange;
  }

  has(line: OriginLine): boolean {
    return this.#lines.get(line)?.isProven ?? false;
  }

  get all(): OriginLine[] {
    return [...this.#lines].filter(([, { isProven }]) => isProven).map(([line]) => line);
  }

  /** Times are elapsed ones. */
  noteSent(line: OriginLine, atMs: Millis): void {
    const known = this.#find(line);
    known.waiting += 1;
    if (known.waiting === 1) this.#beginSilence(known, atMs);
  }

  noteAnswer(line: OriginLine, atMs: Millis): void {
    const known = this.#find(line);
    known.waiting = Math.max(0, known.waiting - 1);
    this.#beginSilence(known, atMs);
    if (!known.isProven || this.#provenCount >= PROVEN_MAX) this.#moveToEnd(line, known);
    if (known.isProven) return;
    if (this.#provenCount >= PROVEN_MAX) this.#forgetFirst();
    known.isProven = true;
    this.#provenCount += 1;
    this.#onChange(line, true);
  }

  /** An endpoint whose attempt goes on shows that it is at work: its line, if proven, is silent from now on only. */
  noteHeard(line: OriginLine, atMs: Millis): void {
    const known = this.#lines.get(line);
    if (known) this.#beginSilence(known, atMs);
  }

  noteNoAnswer(line: OriginLine): void {
    const known = this.#endWaiting(line);
    if (known) this.#doubt(line, known);
  }

  /** We ended the attempt, or let its endpoint wait, which says nothing about the endpoint. */
  noteInterrupted(line: OriginLine): void {
    this.#endWaiting(line);
  }

  /** Finds the lines that have been silent for too long. Looks at them only when one may have been. */
  findSilent(nowMs: Millis): void {
    if (nowMs < this.#silentAtMs) return;
    this.#silentAtMs = Infinity;
    for (const [line, known] of this.#lines) {
      if (!known.isProven || known.waiting === 0) continue;
      if (nowMs - known.silentSinceMs >= SILENCE_MAX_MS) this.#doubt(line, known);
      else this.#noteSilence(known);
    }
  }

  #find(line: OriginLine): Line {
    let known = this.#lines.get(line);
    if (!known) {
      known = { waiting: 0, isProven: false, silentSinceMs: 0 };
      this.#lines.set(line, known);
    }
    return known;
  }

  #endWaiting(line: OriginLine): Line | undefined {
    const known = this.#lines.get(line);
    if (!known) return undefined;
    known.waiting = Math.max(0, known.waiting - 1);
    this.#dropUnused(line, known);
    return known;
  }

  #beginSilence(known: Line, atMs: Millis): void {
    known.silentSinceMs = atMs;
    this.#noteSilence(known);
  }

  #noteSilence({ silentSinceMs }: Line): void {
    this.#silentAtMs = Math.min(this.#silentAtMs, silentSinceMs + SILENCE_MAX_MS);
  }

  #moveToEnd(line: OriginLine, known: Line): void {
    this.#lines.delete(line);
    this.#lines.set(line, known);
  }

  #forgetFirst(): void {
    for (const [line, known] of this.#lines) if (known.isProven) return this.#doubt(line, known);
  }

  #doubt(line: OriginLine, known: Line): void {
    if (!known.isProven) return;
    known.isProven = false;
    this.#provenCount -= 1;
    this.#dropUnused(line, known);
    this.#onChange(line, false);
  }

  #dropUnused(line: OriginLine, { isProven, waiting }: Line): void {
    if (!isProven && waiting === 0) this.#lines.delete(line);
  }
}
