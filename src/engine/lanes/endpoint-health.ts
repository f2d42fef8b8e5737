/**
 * Which backlogs have answered lately? An answer that was read to its end proves a backlog. The backlog is healthy until an attempt times out,
 * or becomes silent without any sign of life from the endpoint since the attempt was sent. A first byte proves nothing: it costs a
 * hostile endpoint no more than silence does. A refused connection disproves nothing: it frees its slot at once, as an answer does.
 */
import type { Millis } from '../model.ts';
import type { BacklogKey } from './backlog-key.ts';

/** Proven backlogs that are remembered: those that answered last. */
const HEALTHY_MAX = 2_048;

export class EndpointHealth {
  /**
   * When each healthy backlog last showed activity, in the order in which the backlogs became healthy; in the order of their latest answers
   * once there are `PROVEN_MAX`. Not before: a map in which every answer deletes and adds an entry is rehashed all the time.
   */
  readonly #activeAtMs = new Map<BacklogKey, Millis>();
  readonly #onChange: (backlog: BacklogKey, isHealthy: boolean) => void;

  constructor(onChange: (backlog: BacklogKey, isHealthy: boolean) => void) {
    this.#onChange = onChange;
  }

  isHealthy(backlog: BacklogKey): boolean {
    return this.#activeAtMs.has(backlog);
  }

  get all(): BacklogKey[] {
    return [...this.#activeAtMs.keys()];
  }

  /** Times are elapsed ones. */
  noteResponse(backlog: BacklogKey, atMs: Millis): void {
    const wasHealthy = this.isHealthy(backlog);
    if (this.#activeAtMs.size >= HEALTHY_MAX) {
      if (wasHealthy) this.#activeAtMs.delete(backlog);
      else this.#forgetFirst();
    }
    this.#activeAtMs.set(backlog, atMs);
    if (!wasHealthy) this.#onChange(backlog, true);
  }

  /** An endpoint shows activity during an attempt. */
  noteActivity(backlog: BacklogKey, atMs: Millis): void {
    if (this.isHealthy(backlog)) this.#activeAtMs.set(backlog, atMs);
  }

  noteTimeout(backlog: BacklogKey): void {
    if (this.#activeAtMs.delete(backlog)) this.#onChange(backlog, false);
  }

  /** An attempt of the backlog that was sent at `sentAtMs` has become silent. */
  noteSilent(backlog: BacklogKey, sentAtMs: Millis): void {
    if ((this.#activeAtMs.get(backlog) ?? Infinity) < sentAtMs) this.noteTimeout(backlog);
  }

  #forgetFirst(): void {
    const [first] = this.#activeAtMs.keys();
    if (first !== undefined) this.noteTimeout(first);
  }
}
