/**
 * Which lines have answered lately? A line is proven by an answer that was read to its end. This ends when an attempt
 * ends without an answer, or when its attempts wait for longer than a moment and none is answered. A first byte proves
 * nothing: it costs a hostile endpoint no more than silence does.
 */
import type { Millis } from '../model.ts';
import type { OriginLine } from './origin-line.ts';

/** A line that is silent for longer gets no more of the slots that are for proven lines. */
const SILENCE_MAX_MS = 2_000;
/** Proven lines that are remembered: those that answered last. */
const PROVEN_MAX = 2_048;

export class AnsweringLines {
  /** In order of their latest answers. */
  readonly #proven = new Set<OriginLine>();
  /** How many attempts of a line wait for their answer. */
  readonly #waiting = new Map<OriginLine, number>();
  /** Since when a proven line with waiting attempts is silent; in order of these times. */
  readonly #silentSince = new Map<OriginLine, Millis>();
  readonly #onChange: (line: OriginLine, isProven: boolean) => void;

  constructor(onChange: (line: OriginLine, isProven: boolean) => void) {
    this.#onChange = onChange;
  }

  has(line: OriginLine): boolean {
    return this.#proven.has(line);
  }

  get all(): OriginLine[] {
    return [...this.#proven];
  }

  /** Times are elapsed ones. */
  noteSent(line: OriginLine, atMs: Millis): void {
    this.#waiting.set(line, (this.#waiting.get(line) ?? 0) + 1);
    if (this.#proven.has(line) && !this.#silentSince.has(line)) this.#silentSince.set(line, atMs);
  }

  noteAnswer(line: OriginLine, atMs: Millis): void {
    const waiting = this.#endWaiting(line);
    this.#silentSince.delete(line);
    if (waiting > 0) this.#silentSince.set(line, atMs);
    const wasProven = this.#proven.delete(line);
    this.#proven.add(line);
    if (!wasProven) this.#onChange(line, true);
    if (this.#proven.size <= PROVEN_MAX) return;
    const [oldest] = this.#proven;
    if (oldest !== undefined) this.#doubt(oldest);
  }

  /** An endpoint whose attempt goes on shows that it is at work: its line, if proven, is silent from now on only. */
  noteHeard(line: OriginLine, atMs: Millis): void {
    if (this.#silentSince.delete(line)) this.#silentSince.set(line, atMs);
  }

  noteNoAnswer(line: OriginLine): void {
    this.#endWaiting(line);
    this.#doubt(line);
  }

  /** We ended the attempt, or let its endpoint wait, which says nothing about the endpoint. */
  noteInterrupted(line: OriginLine): void {
    if (this.#endWaiting(line) === 0) this.#silentSince.delete(line);
  }

  /** Finds the lines that have been silent for too long. Costs as many steps as there are such lines. */
  findSilent(nowMs: Millis): void {
    for (const [line, sinceMs] of this.#silentSince) {
      if (nowMs - sinceMs < SILENCE_MAX_MS) return;
      this.#doubt(line);
    }
  }

  #doubt(line: OriginLine): void {
    this.#silentSince.delete(line);
    if (this.#proven.delete(line)) this.#onChange(line, false);
  }

  #endWaiting(line: OriginLine): number {
    const waiting = (this.#waiting.get(line) ?? 1) - 1;
    if (waiting === 0) this.#waiting.delete(line);
    else this.#waiting.set(line, waiting);
    return waiting;
  }
}
