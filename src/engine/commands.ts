/**
 * The interface of the engine for `api`. The API has checked and typed all arguments, and has filled in their defaults.
 */
import { checkpoint, hasCall } from './calls/checkpoints.ts';
import type { BoundFunctions } from './context.ts';
import type { Totals } from './lists/unfinished.ts';
import type { LogWatcher } from './live/feed.ts';
import * as messages from './messages/commands.ts';
import type { Admitted, PublishCommand, PublishOutcome } from './messages/publish-command.ts';
import type { ClaimToken, Millis, ProjectId, WorkerId } from './model.ts';
import type { ProjectStore } from './project-store.ts';
import {
  cancelRun,
  cancelRuns,
  cancelRunsMatching,
  completeRun,
  findActiveRun,
  readJournal,
} from './runs/active-run-commands.ts';
import { repeatFailureCallback, restartRun, resumeRun } from './runs/dead/dead-runs.ts';
import { explainRun, listRuns } from './runs/logs/logs.ts';
import { resumeParkedRun, resumeParkedRuns } from './runs/parked.ts';
import { listWaiters, notify, notifyRun, wait } from './runs/waits/waits.ts';
import { createSchedule, setSchedulePaused } from './schedules/commands.ts';

/** Each command is a function of the engine's context. */
export const COMMANDS = {
  ...messages,
  ...{ createSchedule, setSchedulePaused, listRuns, explainRun, findActiveRun, readJournal },
  ...{ completeRun, cancelRun, cancelRuns, cancelRunsMatching, resumeRun, restartRun, repeatFailureCallback },
  ...{ resumeParkedRun, resumeParkedRuns, wait, notify, notifyRun, listWaiters, hasCall, checkpoint },
};

export type Commands = BoundFunctions<typeof COMMANDS>;

/** The state of a cell on this worker. */
export interface CellState {
  name: string;
  /** This worker's attempts in flight in the cell. */
  inFlight: number;
  /**
   * `resting`: the cell is closed until it has work. `away`: the cell could not be opened. `changing`: the cell is being
   * opened or closed.
   */
  state: 'open' | 'resting' | 'changing' | 'away';
  /** Whether this worker serves the cell. */
  isServed: boolean;
  /** Reads the totals of the cell, as `Engine.readTotals` does, but does not open a resting cell. */
  readTotals(): Promise<Totals>;
}

/** A cell whose store does not work at present. */
export interface UnavailableCell {
  name: string;
  /** The reason as in `StoreUnavailable.reason`, which is fit for the public. */
  reason: string;
}

export interface Engine extends Commands {
  /** Commands and reads that need only the store. */
  readonly storeOf: (projectId: ProjectId) => ProjectStore;
  /** How long logs and dead messages are kept. */
  readonly retention: { logsMs: Millis; dlqMs: Millis };
  /** Attempts of this worker in flight. */
  readonly inFlight: number;
  /** The totals of the store, or of the first cell if there are several. Throws `StoreUnavailable`. */
  readTotals(): Promise<Totals>;
  /** The `count` projects with the most attempts in flight, each with its number of attempts. */
  busiestProjects(count: number): [ProjectId, number][];
  /**
   * The number of live workers on a shared database, as far as this worker knows; undefined if the database is not
   * shared.
   */
  readonly workersAlive: number | undefined;
  /** The other live workers that claim messages. */
  readonly otherWorkers: readonly WorkerId[];
  /** The cells, as this worker sees them; absent if there is only one cell. */
  readonly cells?: readonly CellState[];
  /** The name of the project's cell. Absent if there is only one cell. */
  cellOf?(projectId: ProjectId): string | undefined;

  /**
   * Throws `Overloaded` (503) if a publish of the project would be rejected now. The API calls this method before it
   * reads a body, except for a publish that continues a run: such a publish is never rejected.
   */
  checkAdmission(projectId: ProjectId): void;
  /**
   * Accepts all messages or none, apart from messages whose queue would exceed the limit of queues. Resolves after the
   * commit (P1) with the outcomes in the order of `commands`. Throws only if nothing was accepted: `RateLimited` (429) if
   * the messages exceed the daily limit of the project; `Overloaded` (503) if more is published than can be saved, unless
   * a command continues a run; `ApiError` if the run of a message has ended (400) or the journal of the run would be too
   * long (412). If the accounts have changed since the caller was admitted, calls `readmit` and rethrows its error.
   */
  publish(projectId: ProjectId, commands: PublishCommand[], admitted?: Admitted): Promise<PublishOutcome[]>;
  /** Notifies `watcher` of new log entries of the project. Returns a function that stops the watch. */
  watchLog(projectId: ProjectId, watcher: LogWatcher): () => void;
  /**
   * Resolves if the store works, as far as this worker knows; otherwise rejects with `StoreUnavailable`. If there are
   * several cells, one working cell is enough, and the result lists the cells that do not work.
   */
  ping(): Promise<readonly UnavailableCell[]>;
  /** Whether this worker works on the claim with this token. */
  hasActiveClaim(claimToken: ClaimToken): boolean;
  /**
   * Starts no more attempts, waits up to `limitMs` for the attempts in flight, and then releases the remaining claims
   * uncounted. Other workers still count this worker as alive. Idempotent.
   */
  quiesce(limitMs: Millis): Promise<void>;
  /** Calls `quiesce`, and then removes this worker from the list of workers. Idempotent. */
  drain(limitMs: Millis): Promise<void>;
}
