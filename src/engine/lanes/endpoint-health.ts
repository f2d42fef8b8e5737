/**
 * Which backlogs have answered lately? An answer that was read to its end proves a backlog. The backlog is proven until an attempt times out,
 * or becomes silent without any sign of life from the endpoint since the attempt was sent. A first byte proves nothing: it costs a
 * hostile endpoint no more than silence does. A refused connection disproves nothing: it frees its slot at once, as an answer does.
 */
import type { Millis } from '../model.ts';
import type { BacklogKey } from './backlog-key.ts';

/** Proven backlogs that are remembered: those that answered last. */
const PROVEN_MAX = 2_048;

export class EndpointHealth {
  /**
   * When each proven backlog last showed activity, in the order in which the backlogs became proven; in the order of their latest answers
   * once there are `PROVEN_MAX`. Not before: a map in which every answer deletes and adds an entry is rehashed all the time.
   */
  readonly #heardAtMs = new Map<BacklogKey, Millis>();
  readonly #onChange: (backlog: BacklogKey, isProven: boolean) => void;

  constructor(onChange: (backlog: BacklogKey, isProven: boolean) => void) {
    this.#onChange = onChange;
  }

  has(backlog: BacklogKey): boolean {
    return this.#heardAtMs.has(backlog);
  }

  get all(): BacklogKey[] {
    return [...this.#heardAtMs.keys()];
  }

  /** Times are elapsed ones. */
  noteAnswer(backlog: BacklogKey, atMs: Millis): void {
    const wasProven = this.has(backlog);
    if (this.#heardAtMs.size >= PROVEN_MAX) {
      if (wasProven) this.#heardAtMs.delete(backlog);
      else this.#doubtFirst();
    }
    this.#heardAtMs.set(backlog, atMs);
    if (!wasProven) this.#onChange(backlog, true);
  }

  /** An endpoint shows activity during an attempt. */
  noteHeard(backlog: BacklogKey, atMs: Millis): void {
    if (this.has(backlog)) this.#heardAtMs.set(backlog, atMs);
  }

  noteTimeout(backlog: BacklogKey): void {
    if (this.#heardAtMs.delete(backlog)) this.#onChange(backlog, false);
  }

  /** An attempt of the backlog that was sent at `sentAtMs` has become silent. */
  noteSilent(backlog: BacklogKey, sentAtMs: Millis): void {
    if ((this.#heardAtMs.get(backlog) ?? Infinity) < sentAtMs) this.noteTimeout(backlog);
  }

  #doubtFirst(): void {
    const [first] = this.#heardAtMs.keys();
    if (first !== undefined) this.noteTimeout(first);
  }
}
