/**
 * The backlogs whose endpoints are healthy. A response that was read to its end makes a backlog healthy, until an attempt
 * times out, or becomes silent without any activity of the endpoint since the attempt was sent. A first byte is not
 * enough, because it costs a hostile endpoint no more than silence. A refused connection leaves the backlog healthy,
 * because it frees the slot at once, as a response does.
 */
import type { Millis } from '../model.ts';
import type { BacklogKey } from './backlog-key.ts';

/** The maximum of healthy backlogs that are remembered: the backlogs with the latest responses. */
const HEALTHY_MAX = 2_048;

export class EndpointHealth {
  /**
   * The time of the latest activity of each healthy backlog, in the order in which the backlogs became healthy. Once
   * there are `HEALTHY_MAX` backlogs, they are ordered by their latest responses. A smaller map is not reordered, since a
   * map that deletes and adds an entry for every response is rehashed all the time.
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

  /** All times are elapsed times (`Clock.elapsedMs`). */
  noteResponse(backlog: BacklogKey, atMs: Millis): void {
    const wasHealthy = this.isHealthy(backlog);
    if (this.#activeAtMs.size >= HEALTHY_MAX) {
      if (wasHealthy) this.#activeAtMs.delete(backlog);
      else this.#forgetFirst();
    }
    this.#activeAtMs.set(backlog, atMs);
    if (!wasHealthy) this.#onChange(backlog, true);
  }

  /** The endpoint has shown activity during an attempt. */
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
