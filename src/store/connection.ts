/** What does the store see of a database, in its own thread or in another? */
import type { OriginLine } from '../engine/lanes/origin-line.ts';
import type { ClaimToken, Millis } from '../engine/model.ts';
import type { ReadMethod, Reads, WriteMethod, Writes } from './operations/all.ts';

export interface Connection {
  write<M extends WriteMethod>(method: M, args: Writes[M]['args']): Promise<Writes[M]['answer']>;
  read<M extends ReadMethod>(method: M, args: Reads[M]['args']): Promise<Reads[M]['answer']>;
  /** Resolves when the event loop has delivered the input it has. Absent where no other thread waits for this one. */
  endOfTurn?: () => Promise<void>;
  /**
   * From now on `listener` is told of messages that a lane released without telling anyone, and of due messages that
   * others left waiting.
   */
  listen(listener: (dueAtMs: Millis) => void): void;
  /** From now on `listener` is told when others put messages into the line of an origin. */
  listenForWaitingLines(listener: (line: OriginLine) => void): void;
  /**
   * Drops a piece of the data that leaves the database by whole tables, outside the transactions of the commands.
   * Answers whether more may be left. Absent where `dropExpired` removes everything.
   */
  dropTables?: (bounds: { logsBeforeMs: Millis; nowMs: Millis; rowsMax: number }) => Promise<boolean>;
  /** From now on `listener` is told when others have changed projects, tokens or keys. Absent if there are none. */
  listenForAccounts?: (listener: () => void) => void;
  /** From now on `listener` is told of claims whose messages were cancelled, by this worker or by others. */
  listenForCancelled(listener: (claimTokens: ClaimToken[]) => void): void;
  /** From now on `listener` is told when a batch was refused whose commit may have succeeded. */
  listenForCommitUnknown(listener: () => void): void;
  /** From now on nothing is saved of projects that are not here. Absent where the database cannot be one of several cells. */
  guardProjects?: () => void;
  /** Batches committed, commands in them, commands that wait. */
  counts(): { batches: number; commands: number; waiting: number };
  close(): Promise<void>;
}
