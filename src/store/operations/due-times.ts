/** Collects the notifications of workers that follow from a batch: due times, waiting backlogs and cancelled claims. */
import type { BacklogKey } from '../../engine/lanes/backlog-key.ts';
import type { ClaimToken } from '../../engine/model.ts';

/** The times and backlogs of unclaimed messages and the cancelled claims of one batch. */
export class DueTimes {
  #earliestMs: number | null = null;
  #earliestForOthersMs: number | null = null;
  readonly #waitingBacklogs = new Set<BacklogKey>();
  readonly #cancelledClaims = new Set<ClaimToken>();

  /** Notes a due time that all workers must be notified of, because it is in no result of a command. */
  note(dueAtMs: number): void {
    this.#earliestMs = earlier(this.#earliestMs, dueAtMs);
    this.noteForOthers(dueAtMs);
  }

  /** Notes a due time that only the worker of the command knows, from the command's result. */
  noteForOthers(dueAtMs: number): void {
    this.#earliestForOthersMs = earlier(this.#earliestForOthersMs, dueAtMs);
  }

  /** Notes that messages wait in `backlog`, which the worker of the command knows from the result. */
  noteWaitingBacklog(backlog: BacklogKey): void {
    this.#waitingBacklogs.add(backlog);
  }

  /** Notes that the message of this claim was cancelled, so that the worker that has the claim ends its attempt. */
  noteCancelled(claimToken: ClaimToken): void {
    this.#cancelledClaims.add(claimToken);
  }

  /** The earliest due time that is in no result of a command; null if there is none. */
  get earliestMs(): number | null {
    return this.#earliestMs;
  }

  /** The earliest due time of all unclaimed messages; null if there is none. */
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
