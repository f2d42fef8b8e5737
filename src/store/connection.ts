/** The interface between a store and its database, in the same thread or in another one, and the events of a store. */
import type { BacklogKey } from '../engine/lanes/backlog-key.ts';
import type { ClaimToken, Millis } from '../engine/model.ts';
import type { BatchOutcome } from './batches/batch.ts';
import type { ReadMethod, Reads, WriteMethod, Writes } from './operations/all.ts';

/** The events of a store. Assign a function to an event to receive it. */
export class StoreEvents {
  /**
   * The earliest due time of messages that no result of a command has reported: a lane will release these messages, or
   * another worker has left them unclaimed.
   */
  onDue: (dueAtMs: Millis) => void = () => {};
  /** Other workers have added messages to this endpoint backlog. */
  onWaitingBacklog: (backlog: BacklogKey) => void = () => {};
  /** Other workers have changed projects, tokens or keys. Heartbeats show this too. */
  onAccountsChanged: () => void = () => {};
  /** The messages of these claims, maybe of other workers, were cancelled. Not every cancellation is reported. */
  onCancelled: (claimTokens: ClaimToken[]) => void = () => {};
  /** A command failed, but may have been committed. */
  onCommitUnknown: () => void = () => {};

  /** Reports the outcome of a batch of this worker. */
  report({ results, dueAtMs, cancelledClaims }: BatchOutcome): void {
    if (dueAtMs !== null) this.onDue(dueAtMs);
    if (cancelledClaims.length > 0) this.onCancelled(cancelledClaims);
    if (results.some((result) => result.kind === 'unavailable' && result.isCommitUnknown)) this.onCommitUnknown();
  }
}

/** The members of a store that are not operations. */
export interface StoreBase {
  events: StoreEvents;
  /**
   * Declares that this store is one of several cells: from now on, commands of projects that are not here are refused
   * with `ProjectAway`, and background work leaves the rows of these projects unchanged. Throws if the store cannot be
   * one of several cells.
   */
  guardProjects(): void;
  /** Committed batches, the commands in them, and the commands that wait for a batch. */
  counts(): { batches: number; commands: number; waiting: number };
  close(): Promise<void>;
}

export interface Connection extends StoreBase {
  write<M extends WriteMethod>(method: M, args: Writes[M]['args']): Promise<Writes[M]['result']>;
  read<M extends ReadMethod>(method: M, args: Reads[M]['args']): Promise<Reads[M]['result']>;
  /** See `Batching.endOfTurn`. If absent, methods decode large results without pausing. */
  endOfTurn?: () => Promise<void>;
  /**
   * Takes one step to drop expired data by whole tables, outside the transactions of the commands. Returns whether more may be
   * left. Absent where `dropExpired` deletes all expired rows.
   */
  dropTables?: (bounds: { logsBeforeMs: Millis; nowMs: Millis; rowsMax: number }) => Promise<boolean>;
}

/** `guardProjects` of a database that no other process uses. */
export function refuseToGuard(): never {
  throw new Error('this store cannot be one of several cells');
}
