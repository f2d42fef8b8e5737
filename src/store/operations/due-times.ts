/** What must workers learn of a batch that they did not ask for: messages that wait, and claims that were cancelled? */
import type { BacklogKey } from '../../engine/lanes/backlog-key.ts';
import type { ClaimToken } from '../../engine/model.ts';

export class DueTimes {
  #earliestMs: number | null = null;
  #earliestForOthersMs: number | null = null;
  readonly #waitingBacklogs = new Set<BacklogKey>();
  readonly #cancelledClaims = new Set<ClaimToken>();

  /** A lane releases something that no command of the batch asked for: no worker knows of it yet. */
  note(dueAtMs: number): void {
    this.#earliestMs = earlier(this.#earliestMs, dueAtMs);
    this.noteForOthers(dueAtMs);
  }

  /** Something waits in the due index. Only the worker that gave the command knows, from the answer. */
  noteForOthers(dueAtMs: number): void {
    this.#earliestForOthersMs = earlier(this.#earliestForOthersMs, dueAtMs);
  }

  /** Something waits in `backlog`. Here too, only the other workers do not know of it. */
  noteWaitingBacklog(backlog: BacklogKey): void {
    this.#waitingBacklogs.add(backlog);
  }

  /** The message of this claim was cancelled: whichever worker has the claim ends its attempt. */
  noteCancelled(claimToken: ClaimToken): void {
    this.#cancelledClaims.add(claimToken);
  }

  /** The earliest time of what no worker knows of; null when there is none. */
  get earliestMs(): number | null {
    return this.#earliestMs;
  }

  /** The earliest time of all that is left unclaimed; null when there is none. */
  get earliestForOthersMs(): number | null {
    return this.#earliestForOthersMs;
  }

  get waitingBacklogs(): BacklogKey[] {
    return [...this.#waitingBacklogs];
  }

  get cancelledClaims(): ClaimToken[] {
    return [...this.#cancelledClaims];
  }
}

/** The earlier of two times; null means no time. */
export function earlier(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}
