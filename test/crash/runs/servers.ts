/** The servers that are killed and restarted: one with an embedded store, or several workers on one PostgreSQL. */
import type { Examination } from '../../../src/admin/examine.ts';

export interface Servers {
  /** The URL of the servers, which never changes. */
  readonly url: string;
  /** Whether no server is running. */
  readonly areDown: boolean;
  /** Starts the servers that are not running. */
  start(): Promise<void>;
  /** Kills one of the servers. */
  kill(): Promise<void>;
  /** Shuts all servers down cleanly, so that their data can be examined. */
  end(): Promise<void>;
  /** Waits until the store has no active run and no message, or until their number no longer changes. */
  untilEmpty(): Promise<void>;
  /** The findings of `waypost doctor` about the store; `undefined` without a store. */
  examine(): Promise<Examination | undefined>;
  /** The result of the integrity check of an embedded database: `['ok']` if the file is sound. */
  integrity(): string[];
  /** Kills all servers, and removes their data. */
  close(): Promise<void>;
}
