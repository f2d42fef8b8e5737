/** Records all events of one simulation in order. Two simulations with one seed must have equal traces. */
import { createHash } from 'node:crypto';

export class Trace {
  readonly lines: string[] = [];
  readonly #hash = createHash('sha256');

  /** The number of lines: a position in time that does not depend on clocks. */
  get length(): number {
    return this.lines.length;
  }

  add(line: string): void {
    this.lines.push(line);
    this.#hash.update(line).update('\n');
  }

  /** The last `count` lines that mention `text`. */
  about(text: string, count: number): string[] {
    return this.lines.filter((line) => line.includes(text)).slice(-count);
  }

  /** Ends the trace. */
  digest(): string {
    return this.#hash.digest('hex');
  }
}
