/** What `api` asks of the engine: checked, typed, with defaults filled in. */
import { checkpoint, hasCall } from './calls/checkpoints.ts';
import type { Bound } from './context.ts';
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

/** Each is a function of the engine's context, stated where it is. */
export const COMMANDS = {
  ...messages,
  ...{ createSchedule, setSchedulePaused, listRuns, explainRun, findActiveRun, readJournal },
  ...{ completeRun, cancelRun, cancelRuns, cancelRunsMatching, resumeRun, restartRun, repeatFailureCallback },
  ...{ resumeParkedRun, resumeParkedRuns, wait, notify, notifyRun, listWaiters, hasCall, checkpoint },
};

export type Commands = Bound<typeof COMMANDS>;

/** A cell as a worker has it. */
export interface CellState {
  name: string;
  /** Attempts of this worker under way there. */
  inFlight: number;
  /** `resting`: closed until there is something to do. `away`: it could not be opened. `changing`: it is being opened or closed. */
  state: 'open' | 'resting' | 'changing' | 'away';
  /** Whether this worker serves it. */
  isServed: boolean;
  /** As in `Engine`. Does not open a cell at rest. */
  readTotals(): Promise<Totals>;
}

/** A cell that does not read and save now. */
export interface CellAway {
  name: string;
  /** As `StoreUnavailable.reason`. */
  reason: string;
}

export interface Engine extends Commands {
  /** Commands and reads that need only the store. */
  readonly storeOf: (projectId: ProjectId) => ProjectStore;
  /** How long logs and dead messages are kept. */
  readonly retention: { logsMs: Millis; dlqMs: Millis };
  /** Attempts of this worker under way. */
  readonly inFlight: number;
  /** What is in the store; with several cells, in the first one. Throws `StoreUnavailable`. */
  readTotals(): Promise<Totals>;
  /** The `count` projects with the most of them, and how many those are. */
  busiestProjects(count: number): [ProjectId, number][];
  /** Workers that live on a database that they share, as far as this one knows; `undefined`: it shares none. */
  readonly workersAlive: number | undefined;
  /** The others of them that claim messages. */
  readonly otherWorkers: readonly WorkerId[];
  /** The cells, as this worker has them; none while there is only one. */
  readonly cells?: readonly CellState[];
  /** The name of the cell in which the project lives; none while there is only one. */
  cellOf?(projectId: ProjectId): string | undefined;

  /**
   * Throws `Overloaded` (503) when a publish of the project would be turned away now. The API asks before it reads a
   * body, but not for a publish that continues a run: that one is never turned away.
   */
  checkAdmission(projectId: ProjectId): void;
  /**
   * Accepts the messages together or not at all, except those whose queue would be one too many. Resolves after the
   * commit (P1), in the order given. It throws only when nothing was accepted: `RateLimited` (429) when the project has
   * fewer messages left today; `Overloaded` (503) when more is published than can be saved, unless a command continues
   * a run; `ApiError` when the run of a message is over (400) or its journal would be too long (412). When the accounts
   * that admitted the caller have changed, it is readmitted; this throws what `readmit` throws.
   */
  publish(projectId: ProjectId, commands: PublishCommand[], admitted?: Admitted): Promise<PublishOutcome[]>;
  /** Tells `watcher` of what is added to the log of the project, until the function that it returns is called. */
  watchLog(projectId: ProjectId, watcher: LogWatcher): () => void;
  /**
   * Resolves when the store reads and saves, as far as is known; rejects with `StoreUnavailable` when it does not. With
   * several cells one is enough; it answers those that do not.
   */
  ping(): Promise<readonly CellAway[]>;
  /** Whether this worker has the message of this claim. */
  holds(claimToken: ClaimToken): boolean;
  /**
   * Begins nothing more, lets running attempts finish up to `limitMs`, then gives the rest back uncounted. This worker still lives for the
   * others. Idempotent.
   */
  quiesce(limitMs: Millis): Promise<void>;
  /** The same, and then leaves. Idempotent. */
  drain(limitMs: Millis): Promise<void>;
}
