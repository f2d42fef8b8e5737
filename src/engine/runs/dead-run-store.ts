/** The dead letter queue of workflow runs (contract W 21): its words, what it asks of the store, what `api` asks of it. */
import type { HeaderMap } from '../../protocol/settings.ts';
import type { Run, RunConfig, RunKey } from '../../workflow/model.ts';
import type { AttributeFilter } from '../filters.ts';
import type { Saved } from '../messages/accepted.ts';
import type {
  DeadLetter,
  EntryKind,
  FailureCallbackState,
  InProject,
  Message,
  MessageKey,
  Millis,
  NewEntry,
  NewMessage,
  NewRecord,
  NewRun,
  ProjectId,
} from '../model.ts';
import type { Page, PageRequest } from '../page.ts';

/** A run that has failed, as the DLQ shows it. */
export interface DeadRun {
  dlqId: string;
  run: FailedRunHead;
  /** The one that failed for good; without its body, which is a step of the run. */
  message: Message;
  deadLetter: DeadLetter;
  /** What the run was started with. */
  payload: Uint8Array;
  failureCallback?: FailureCallback;
}

/** What it takes to start a run again. */
export type FailedRunHead = Pick<Run, 'key' | 'projectId' | 'id' | 'url' | 'createdAtMs' | 'config'>;

/** How telling of the failure stands, and what was answered last. */
export interface FailureCallback {
  state: FailureCallbackState;
  answer?: { status: number; header: HeaderMap; body: Uint8Array };
}

/** Which runs are meant, by what they were triggered with; times are those of their beginning. */
export interface ActiveRunFilter
  extends Pick<AttributeFilter, 'url' | 'host' | 'path' | 'label' | 'flowControlKey' | 'callerIp' | 'fromMs' | 'toMs'> {
  /** What their URL begins with. */
  urlPrefix?: string[];
}

/** The same of failed runs; times are those of their failure. */
export interface DeadRunFilter extends Omit<ActiveRunFilter, 'urlPrefix'> {
  runId?: string;
  runCreatedAtMs?: Millis;
  failureCallback?: FailureCallbackState[];
  responseStatus?: number[];
}

/** An entry of a journal without what it says. */
export interface OutlinedEntry {
  position: number;
  kind: EntryKind;
  key: MessageKey;
  entryKey: string;
  bodyBytes: number;
}

/** A run that takes the place of a failed one in the DLQ, with what its journal begins with. `M`: its messages, so far. */
export interface RunRetry<M = NewMessage> {
  projectId: ProjectId;
  dlqId: string;
  /** Its key is that of its first entry. */
  run: NewRun;
  /** From the first position on. */
  journal: RetriedEntry<M>[];
  /** First messages of the runs that it invokes anew. */
  children: M[];
}

export type RetriedEntry<M = NewMessage> =
  /** What the failed run has at this place, and nobody has to send: the two share a content. */
  | { kind: 'shared'; key: MessageKey; entry: NewEntry }
  /** Made anew, and not sent: a beginning that had its effect, a wait, an invocation. */
  | { kind: 'record'; record: NewRecord; waiter?: { eventId: string; deadlineMs: Millis }; childKey?: RunKey }
  /** Made anew, to be sent. */
  | { kind: 'message'; message: M };

/** `messages` are those of the journal that are sent, in their order; then those of `children`. */
export type RetriedAs =
  | { kind: 'retried'; messages: Saved[]; children: Saved[] }
  /** There is no such entry in the DLQ. */
  | { kind: 'missing' }
  /** A run of its id is active. */
  | { kind: 'idTaken' };

export interface DeadRunStore {
  /** Keys of active runs that match, oldest first, of those after `afterKey`; `nextAfterKey`: there may be more. */
  activeRunKeys(
    projectId: ProjectId,
    filter: ActiveRunFilter,
    page: { afterKey: RunKey; limit: number },
  ): Promise<{ keys: RunKey[]; nextAfterKey?: RunKey }>;
  listDeadRuns(args: InProject & { filter: DeadRunFilter; page: PageRequest }): Promise<Page<DeadRun>>;
  /** Those that exist, in the order of `dlqIds`. */
  findDeadRuns(args: InProject & { dlqIds: string[] }): Promise<DeadRun[]>;
  /** Returns how many existed. */
  deleteDeadRuns(args: InProject & { dlqIds: string[] }): Promise<number>;
  /** All entries of a journal in order, waits and invocations included. */
  outlineJournal(runKey: RunKey): Promise<OutlinedEntry[]>;
  /** Removes the entry from the DLQ and begins the run, or changes nothing. */
  retryRun(retry: RunRetry, nowMs: Millis): Promise<RetriedAs>;
  /** The message that told of a failure; `undefined` when none did, or nothing is known of it any more. */
  findFailureCallback(projectId: ProjectId, dlqId: string): Promise<Message | undefined>;
  /** Tells of the failure once more, if the last time has failed. */
  repeatFailureCallback(
    projectId: ProjectId,
    dlqId: string,
    message: NewMessage,
    nowMs: Millis,
  ): Promise<Saved | 'missing' | 'notFailed'>;
  /** Gives up telling of the failure. */
  cancelFailureCallback(
    projectId: ProjectId,
    dlqId: string,
    nowMs: Millis,
  ): Promise<'canceled' | 'missing' | 'notInProgress'>;
}

/** What a resumed or restarted run has other than the failed one. */
export interface RunOverride
  extends Partial<
    Pick<RunConfig, 'maxRetries' | 'retryDelayExpression' | 'flowControl' | 'labels' | 'failureCallback'>
  > {
  /** Only for a single run; absent: the server makes one. */
  runId?: string;
  delayMs?: Millis;
  notBeforeMs?: Millis;
}

export interface StartedRun {
  runId: string;
  createdAtMs: Millis;
}

/** Why a failed run was not started again. */
export type NotRetried =
  | 'missing'
  /** Too little is known of it any more. */
  | 'unknown'
  /** The id that was asked for belongs to an active run. */
  | 'idTaken';

export interface DeadRunCommands {
  /** Cancels active runs by their ids; returns how many were active. */
  cancelRuns(projectId: ProjectId, runIds: string[]): Promise<number>;
  /** Cancels up to `count` active runs that match, oldest first, all when absent. */
  cancelRunsMatching(projectId: ProjectId, filter: ActiveRunFilter, count?: number): Promise<number>;
  /** Goes on where the run stopped: what it recorded is not done again. */
  resumeRun(projectId: ProjectId, dlqId: string, override: RunOverride): Promise<StartedRun | NotRetried>;
  /** Begins anew with the same payload and configuration. */
  restartRun(projectId: ProjectId, dlqId: string, override: RunOverride): Promise<StartedRun | NotRetried>;
  /** Tells of the failure once more. */
  repeatFailureCallback(projectId: ProjectId, dlqId: string): Promise<StartedRun | 'missing' | 'notFailed' | 'unknown'>;
  cancelFailureCallback(projectId: ProjectId, dlqId: string): Promise<'canceled' | 'missing' | 'notInProgress'>;
}
