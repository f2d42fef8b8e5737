/** All that happened in one simulated run, in order: two runs of one seed must have the same. */
import { createHash } from 'node:crypto';

export class Trace {
  readonly lines: string[] = [];
  readonly #hash = createHash('sha256');

  /** How many lines there are: a position in time that no clock can set back. */
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
