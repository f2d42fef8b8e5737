/** What does the store see of a database, in its own thread or in another? */
import type { OriginLine } from '../engine/lanes/origin-line.ts';
import type { ClaimToken, Millis } from '../engine/model.ts';
import type { ReadMethod, Reads, WriteMethod, Writes } from './operations/all.ts';

/** What a store tells and does besides its operations. */
export interface StoreUpkeep {
  /**
   * From now on calls `listener` with the earliest due time of messages that no answer has reported: when a lane releases
   * them, and when other workers leave them waiting.
   */
  onDue(listener: (dueAtMs: Millis) => void): void;
  /** From now on calls `listener` when other workers put messages into the line of an origin. */
  onWaitingLine(listener: (line: OriginLine) => void): void;
  /** From now on calls `listener` when other workers have changed projects, tokens or keys. Heartbeats show this too. */
  onAccountsChanged(listener: () => void): void;
  /**
   * From now on calls `listener` with claims whose messages were cancelled, also by other workers, also claims that others have.
   * It may not be told of all.
   */
  onCancelled(listener: (claimTokens: ClaimToken[]) => void): void;
  /** From now on calls `listener` when a command failed that may have been saved all the same. */
  onCommitUnknown(listener: () => void): void;
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

/** What only several processes on one database need. */
export const ALONE: Pick<Connection, 'onAccountsChanged' | 'guardProjects'> = {
  onAccountsChanged() {},
  guardProjects() {
    throw new Error('this store cannot be one of several cells');
  },
};
