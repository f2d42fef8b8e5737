/** What `api` asks of the engine: checked, typed, with defaults filled in. */
import type { AttributeFilter } from './filters.ts';
import type { LogWatcher } from './live/feed.ts';
import type { DeadRetryOverride } from './messages/dead-retry.ts';
import type { ExplainedBacklog, ExplainedMessage, Explanation } from './messages/explain.ts';
import type { Admitted, PublishCommand, PublishOutcome } from './messages/publish-command.ts';
import type { ClaimToken, Message, MessageId, Millis, ProjectId, WorkerId } from './model.ts';
import type { Page, PageRequest } from './page.ts';
import type { ProjectStore } from './project-store.ts';
import type { WorkflowCommands } from './runs/workflows.ts';
import type { ScheduleCommand } from './schedules/commands.ts';
import type { Totals, UnfinishedFilter } from './unfinished.ts';

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

export interface Engine extends WorkflowCommands {
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
  /** Saves an event of another cell for the operator, whose project this is, unless one with the same `hash` was saved. */
  saveEvent(projectId: ProjectId, message: Message, hash: string): Promise<void>;
  findMessage(projectId: ProjectId, id: MessageId): Promise<Message | undefined>;
  /** Why an unfinished message waits (P14); `undefined` once it is finished. */
  explainMessage(projectId: ProjectId, id: MessageId): Promise<Explanation | undefined>;
  /** Each with why it waits, as far as that is known without counting those before it. */
  listUnfinished(
    projectId: ProjectId,
    filter: UnfinishedFilter,
    page: Omit<PageRequest, 'order'>,
  ): Promise<Page<ExplainedMessage>>;
  readBacklog(projectId: ProjectId): Promise<ExplainedBacklog>;
  /** Tells `watcher` of what is added to the log of the project, until the function that it returns is called. */
  watchLog(projectId: ProjectId, watcher: LogWatcher): () => void;
  /** Cancels up to `count` matching messages, all when absent, in pieces that do not stall the store. */
  cancelMatching(projectId: ProjectId, filter: AttributeFilter, count?: number): Promise<number>;

  /**
   * Publishes each entry anew and removes it, in the order given. `undefined`, with nothing done, when one of them does
   * not exist. More than 16 are retried in pieces. When an entry disappears meanwhile, its piece is left as it is.
   */
  retryDead(projectId: ProjectId, dlqIds: string[], override?: DeadRetryOverride): Promise<MessageId[] | undefined>;

  /** Replaces a schedule with the same id; only its pause and what is known of its earlier triggers stay. */
  createSchedule(
    projectId: ProjectId,
    command: ScheduleCommand,
    schedulesMax: number,
  ): Promise<{ scheduleId: string } | 'tooMany'>;
  /** Times that pass during a pause are not made up for. */
  setSchedulePaused(projectId: ProjectId, id: string, isPaused: boolean): Promise<'saved' | 'missing'>;
  /** Cancels the queue's messages, in pieces that do not stall the store. */
  deleteQueue(projectId: ProjectId, name: string): Promise<void>;

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
