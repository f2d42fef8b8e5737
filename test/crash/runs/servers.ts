/** The servers that are killed and restarted: one with an embedded store, or several workers on one PostgreSQL. */
import type { Examination } from '../../../src/admin/examine.ts';

export interface Servers {
  /** Where they always are. */
  readonly url: string;
  /** None of them is there. */
  readonly areDown: boolean;
  /** Starts whichever is not there. */
  start(): Promise<void>;
  /** Kills one of them. */
  kill(): Promise<void>;
  /** Asks all to end in order, so that their data can be looked at. */
  end(): Promise<void>;
  /** Waits until the store has no active run and no message, or until their number stands still. */
  untilEmpty(): Promise<void>;
  /** What `waypost doctor` says of the store; `undefined` when there is none. */
  examine(): Promise<Examination | undefined>;
  /** What an embedded database says of its file: `['ok']` for a sound one. */
  integrity(): string[];
  /** Kills all that is there, and removes what it has left. */
  close(): Promise<void>;
}
