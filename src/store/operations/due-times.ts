/** What has a batch left waiting, from when on may it be claimed, and who does not know of it yet? */
import type { OriginLine } from '../../engine/lanes/origin-line.ts';

export class DueTimes {
  #earliestMs: number | null = null;
  #earliestForOthersMs: number | null = null;
  readonly #waitingLines = new Set<OriginLine>();

  /** A lane lets something go that no command of the batch asked for: nobody knows of it yet. */
  note(dueAtMs: number): void {
    this.#earliestMs = earlier(this.#earliestMs, dueAtMs);
    this.noteForOthers(dueAtMs);
  }

  /** Something waits in the due index. Whoever gave the command sees that in its answer, the other workers do not. */
  noteForOthers(dueAtMs: number): void {
    this.#earliestForOthersMs = earlier(this.#earliestForOthersMs, dueAtMs);
  }

  /** Something waits in `line`. Again only the others do not know. */
  noteWaitingLine(line: OriginLine): void {
    this.#waitingLines.add(line);
  }

  /** The earliest of what nobody knows of; null when there is none. */
  get earliestMs(): number | null {
    return this.#earliestMs;
  }

  /** The earliest of all that is left unclaimed; null when there is none. */
  get earliestForOthersMs(): number | null {
    return this.#earliestForOthersMs;
  }

  get waitingLines(): OriginLine[] {
    return [...this.#waitingLines];
  }
}

/** The earlier of two times, of which null is none. */
export function earlier(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}
