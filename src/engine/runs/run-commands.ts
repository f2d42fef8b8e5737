/** What `api` asks of the engine about workflow runs: checked, typed, with defaults filled in. */
import type { HeaderMap, ResultPart, WorkflowFeature } from '../../protocol/settings.ts';
import type { JournalEntry, RunKey } from '../../workflow/model.ts';
import type { StepState } from '../../workflow/records.ts';
import type { RunLog } from '../../workflow/run-log.ts';
import type { MessageId, Millis, ProjectId } from '../model.ts';
import type { Page, PageRequest } from '../page.ts';
import type { RunExplanation } from './explain.ts';
import type { RunFilter } from './log-store.ts';
import type { Waiter } from './stores.ts';

/** A wait that a run asks for. */
export interface WaitCommand {
  runId: string;
  /** When the run was created, if the sender says so: runs may have the same id one after the other. */
  createdAtMs?: Millis;
  eventId: string;
  /** As it was sent. */
  timeout: string;
  timeoutMs: Millis;
  /** The step, its members as they were sent. */
  step: Uint8Array;
  stepId: number;
  /** What the receiver of its result supports. */
  features: WorkflowFeature[];
  /** As the client asked for them, before the configuration of the run is applied. */
  notified: ResultPart;
  timedOut: ResultPart;
  /** Header maps as the list of waiters shows them. */
  headers: HeaderMap;
  timeoutHeaders: HeaderMap;
  /** Base64. */
  timeoutBody?: string;
  callerIp?: string;
}

/** What a notification did for one run. */
export interface Notified {
  /** Absent when the notification was saved for a later wait. */
  waiter?: Waiter;
  messageId?: MessageId;
  runId: string;
  runCreatedAtMs: Millis;
}

export interface WaiterCommands {
  /**
   * Registers the wait, or ends it at once with an event that was saved for it. The id is that of the wait. Throws
   * `ApiError` 400 when the run is over, and 412 when its journal is full.
   */
  wait(projectId: ProjectId, command: WaitCommand): Promise<{ messageId: MessageId; deduplicated: boolean }>;
  /**
   * Wakes all runs that wait for the event now. There may be any number of them, so `tell` hears of them piece by piece,
   * each time after a piece is saved.
   */
  notify(projectId: ProjectId, eventId: string, body: Uint8Array, tell: (piece: Notified[]) => void): Promise<void>;
  /**
   * Wakes all waiters of one run, or with `oldestOnly` the oldest. When there is none, the event is saved for the run's
   * next wait. Answers for the first waiter. `undefined`: no such run is active. Throws `ApiError` 412 when the run has
   * too many saved events.
   */
  notifyRun(
    projectId: ProjectId,
    runId: string,
    eventId: string,
    body: Uint8Array,
    options: { oldestOnly: boolean },
  ): Promise<Notified | undefined>;
  /** Up to 1,000 in order of registration; fewer when they were registered with large bodies. */
  listWaiters(projectId: ProjectId, eventId: string): Promise<Waiter[]>;
}

/** What the API must know of a run before it does anything with it. */
export interface ActiveRun {
  /** Its bodies are redacted. */
  hidesBodies: boolean;
}

/** Of the runs that had an id one after the other. Absent: whichever is active. */
export interface WhichRun {
  createdAtMs?: Millis | undefined;
  runKey?: RunKey | undefined;
}

export interface RunCommands {
  /** `undefined` when no such run is active; one that ended a moment ago may still be found. */
  findActiveRun(projectId: ProjectId, runId: string): Promise<ActiveRun | undefined>;
  /** Succeeds in any state of the run. A run that has ended, or has another `createdAtMs`, stays as it is. */
  completeRun(projectId: ProjectId, runId: string, response: Uint8Array, createdAtMs?: Millis): Promise<void>;
  /** False when no such run is active. */
  cancelRun(projectId: ProjectId, runId: string, which?: WhichRun): Promise<boolean>;
  /** All of the journal that deliveries show; `undefined` when no such run, or with `runKey` that one, is active. */
  readJournal(projectId: ProjectId, runId: string, runKey?: RunKey): Promise<JournalEntry[] | undefined>;
}

export interface RunLogCommands {
  /**
   * Runs with their steps, newest first; with `stepState` only those that have a step in one of these states. With
   * `bodyBytesMax` bodies may be cut to that length and one byte more. A page may be short although more runs follow.
   */
  listRuns(
    projectId: ProjectId,
    filter: RunFilter & { stepState?: StepState[] },
    page: PageRequest,
    bodyBytesMax?: number,
  ): Promise<Page<RunLog>>;
  /** Why the latest run of the id does not go on (P14), or how it ended; `undefined` when nothing of it is kept. */
  explainRun(projectId: ProjectId, runId: string): Promise<RunExplanation | undefined>;
}
