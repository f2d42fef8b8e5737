/** What does the store see of a database, in its own thread or in another? */
import type { OriginLine } from '../engine/lanes/origin-line.ts';
import type { Millis } from '../engine/model.ts';
import type { ReadMethod, Reads, WriteMethod, Writes } from './operations/all.ts';

/** The database as the store sees it, in this thread or in another. */
export interface Connection {
  write<M extends WriteMethod>(method: M, args: Writes[M]['args']): Promise<Writes[M]['answer']>;
  read<M extends ReadMethod>(method: M, args: Reads[M]['args']): Promise<Reads[M]['answer']>;
  /** Resolves when the event loop has heard what there is. Absent where nobody else waits for this thread. */
  endOfTurn?: () => Promise<void>;
  /** From now on `listener` is told when a lane lets messages go that nobody was told of, or others leave some waiting. */
  listen(listener: (dueAtMs: Millis) => void): void;
  /** From now on `listener` is told when others put messages into the line of an origin. */
  listenForWaitingLines(listener: (line: OriginLine) => void): void;
  /**
   * Drops a piece of what leaves the database by whole tables, beside the transactions of the commands; answers whether
   * more may be left. Absent where all of it goes with `dropExpired`.
   */
  dropTables?: (bounds: { logsBeforeMs: Millis; nowMs: Millis; rowsMax: number }) => Promise<boolean>;
  /** From now on `listener` is told when others have changed projects, tokens or keys. Absent where there are no others. */
  listenForAccounts?: (listener: () => void) => void;
  /** From now on `listener` is told when a batch was refused of which something may have been saved. */
  listenForCommitUnknown(listener: () => void): void;
  /** Batches committed, commands in them, commands that wait. */
  counts(): { batches: number; commands: number; waiting: number };
  close(): Promise<void>;
}
