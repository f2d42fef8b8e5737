/** What does the store see of a database, in its own thread or in another? */
import type { BacklogKey } from '../engine/lanes/backlog-key.ts';
import type { ClaimToken, Millis } from '../engine/model.ts';
import type { BatchOutcome } from './batches/batch.ts';
import type { ReadMethod, Reads, WriteMethod, Writes } from './operations/all.ts';

/** What a store reports without being asked: assign a function to hear of it. */
export class StoreEvents {
  /**
   * The earliest due time of messages that no answer has reported: when a lane releases them, and when other workers leave
   * them waiting.
   */
  onDue: (dueAtMs: Millis) => void = () => {};
  /** Other workers have put messages into the backlog of an origin. */
  onWaitingBacklog: (backlog: BacklogKey) => void = () => {};
  /** Other workers have changed projects, tokens or keys. Heartbeats show this too. */
  onAccountsChanged: () => void = () => {};
  /** Claims, also of other workers, whose messages were cancelled by any worker. Some may never be reported. */
  onCancelled: (claimTokens: ClaimToken[]) => void = () => {};
  /** A command failed that may have been saved all the same. */
  onCommitUnknown: () => void = () => {};

  /** Reports the outcome of a batch of this worker. */
  tell({ results, dueAtMs, cancelledClaims }: BatchOutcome): void {
    if (dueAtMs !== null) this.onDue(dueAtMs);
    if (cancelledClaims.length > 0) this.onCancelled(cancelledClaims);
    if (results.some((result) => result.kind === 'unavailable' && result.isCommitUnknown)) this.onCommitUnknown();
  }
}

/** What a store has besides its operations. */
export interface StoreUpkeep {
  events: StoreEvents;
  /**
   * This store is one of several cells: from now on, commands of projects that are not here are refused with
   * `ProjectAway`, and work that nobody asks for leaves their rows alone. Throws if it cannot be one.
   */
  guardProjects(): void;
  /** Batches committed, commands in them, commands that wait for theirs. */
  counts(): { batches: number; commands: number; waiting: number };
  close(): Promise<void>;
}

export interface Connection extends StoreUpkeep {
  write<M extends WriteMethod>(method: M, args: Writes[M]['args']): Promise<Writes[M]['answer']>;
  read<M extends ReadMethod>(method: M, args: Reads[M]['args']): Promise<Reads[M]['answer']>;
  /** Resolves when the event loop has delivered the input it has. Absent where no other thread waits for this one. */
  endOfTurn?: () => Promise<void>;
  /**
   * Drops a piece of the data that leaves the database by whole tables, outside the transactions of the commands.
   * Answers whether more may be left. Absent where `dropExpired` removes everything.
   */
  dropTables?: (bounds: { logsBeforeMs: Millis; nowMs: Millis; rowsMax: number }) => Promise<boolean>;
}

/** For a database that no other process uses. */
export function guardNone(): never {
  throw new Error('this store cannot be one of several cells');
}
