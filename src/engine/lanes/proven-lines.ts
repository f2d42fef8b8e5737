/**
 * Which lines have answered lately? An answer that was read to its end proves a line. The line is proven until an attempt times out,
 * or becomes silent without any sign of life from the endpoint since the attempt was sent. A first byte proves nothing: it costs a
 * hostile endpoint no more than silence does. A refused connection disproves nothing: it frees its slot at once, as an answer does.
 */
import type { Millis } from '../model.ts';
import type { OriginLine } from './origin-line.ts';

/** Proven lines that are remembered: those that answered last. */
const PROVEN_MAX = 2_048;

export class ProvenLines {
  /**
   * When each proven line last showed activity, in the order in which the lines became proven; in the order of their latest answers
   * once there are `PROVEN_MAX`. Not before: a map in which every answer deletes and adds an entry is rehashed all the time.
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

  /** An endpoint shows activity during an attempt. */
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
