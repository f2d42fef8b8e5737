/**
 * Which lines have answered lately? A line is proven by an answer that was read to its end. This ends when an attempt times out, or
 * becomes silent without any sign of life from the endpoint since it was sent. A first byte proves nothing: it costs a hostile
 * endpoint no more than silence does. A refused connection disproves nothing: it frees its slot at once, as an answer does.
 */
import type { Millis } from '../model.ts';
import type { OriginLine } from './origin-line.ts';

/** Proven lines that are remembered: those that answered last. */
const PROVEN_MAX = 2_048;

export class AnsweringLines {
  /**
   * When each proven line last showed that it is at work. In the order in which they became proven; once there are as many as may be,
   * in that of their latest answers. Until then each keeps its place: a map in which every answer adds an entry and removes one would
   * be rebuilt all the time.
   */
  readonly #heardAtMs = new Map<OriginLine, Millis>();
  readonly #onChange: (line: OriginLine, isProven: boolean) => void;

  constructor(onChange: (line: OriginLine, isProven: boolean) => void) {
    this.#onChange = onChange;
  }

  has(line: OriginLine): boolean {
    return this.#heardAtMs.has(line);
  }

  get all(): OriginLine[] {
    return [...this.#heardAtMs.keys()];
  }

  /** Times are elapsed ones. */
  noteAnswer(line: OriginLine, atMs: Millis): void {
    const wasProven = this.has(line);
    if (this.#heardAtMs.size >= PROVEN_MAX) {
      if (wasProven) this.#heardAtMs.delete(line);
      else this.#doubtFirst();
    }
    this.#heardAtMs.set(line, atMs);
    if (!wasProven) this.#onChange(line, true);
  }

  /** An endpoint shows during an attempt that it is at work. */
  noteHeard(line: OriginLine, atMs: Millis): void {
    if (this.has(line)) this.#heardAtMs.set(line, atMs);
  }

  noteTimeout(line: OriginLine): void {
    if (this.#heardAtMs.delete(line)) this.#onChange(line, false);
  }

  /** An attempt of the line that was sent at `sentAtMs` has become silent. */
  noteSilent(line: OriginLine, sentAtMs: Millis): void {
    if ((this.#heardAtMs.get(line) ?? Infinity) < sentAtMs) this.noteTimeout(line);
  }

  #doubtFirst(): void {
    const [first] = this.#heardAtMs.keys();
    if (first !== undefined) this.noteTimeout(first);
  }
}
