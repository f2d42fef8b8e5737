/** The types of the dead letter queue of workflow runs (contract W 21). */
import type { AttemptSettings, HeaderMap } from '../../../protocol/options/settings.ts';
import type { Run, RunConfig, RunKey } from '../../../workflow/model.ts';
import type { AttributeFilter } from '../../lists/filters.ts';
import type { Saved } from '../../messages/accepted.ts';
import type {
  DeadLetter,
  EntryKind,
  FailureCallbackState,
  Message,
  MessageKey,
  Millis,
  NewEntry,
  NewMessage,
  NewRecord,
  NewRun,
  ProjectId,
} from '../../model.ts';

/** A failed run in the DLQ. */
export interface DeadRun {
  dlqId: string;
  run: FailedRunRef;
  /** The dead message of the run, without its body. */
  message: Message;
  deadLetter: DeadLetter;
  /** The payload with which the run was started. */
  payload: Uint8Array;
  failureCallback?: FailureCallback;
}

/** The properties of a failed run that a resume or a restart needs. */
export type FailedRunRef = Pick<Run, 'key' | 'projectId' | 'id' | 'url' | 'createdAtMs' | 'config'>;

/** The state of the failure callback, and the last response to it. */
export interface FailureCallback {
  state: FailureCallbackState;
  response?: { status: number; header: HeaderMap; body: Uint8Array };
}

/** Selects active runs by the properties of their triggers. `fromMs` and `toMs` limit the time when the runs started. */
export interface ActiveRunFilter
  extends Pick<AttributeFilter, 'url' | 'host' | 'path' | 'label' | 'flowControlKey' | 'callerIp' | 'fromMs' | 'toMs'> {
  /** Prefixes of the run's URL. */
  urlPrefix?: string[];
}

/** Selects failed runs. `fromMs` and `toMs` limit the time when the runs failed. */
export interface DeadRunFilter extends Omit<ActiveRunFilter, 'urlPrefix'> {
  runId?: string;
  runCreatedAtMs?: Millis;
  failureCallback?: FailureCallbackState[];
  responseStatus?: number[];
}

/** A journal entry without its content. */
export interface EntryOutline {
  position: number;
  kind: EntryKind;
  key: MessageKey;
  entryKey: string;
  bodyBytes: number;
}

/**
 * One transaction of the resume or restart of a failed run. It saves the new run with a batch of its first journal
 * entries. `M`: the type of the messages.
 */
export interface RunRetry<M = NewMessage> {
  projectId: ProjectId;
  dlqId: string;
  run: NewRun;
  /** The key of the run's first entry. */
  runKey: RunKey;
  /** The entries of the batch, in order. */
  journal: RetriedEntry<M>[];
  /** Whether the batch has the run's first entry. */
  isFirst: boolean;
  /**
   * Whether the batch has the last entry. Only the last batch has `waiters`, `invocations` and `children`: a run may not
   * continue before all its entries are saved.
   */
  isLast: boolean;
  /** The waits of the run. `key`: the key of the record. */
  waiters: { key: MessageKey; eventId: string; deadlineMs: Millis }[];
  /** The records that wait for the end of other runs. `childKey`: the key of the run for which the record waits. */
  invocations: { key: MessageKey; childKey: RunKey }[];
  /** The first messages of the runs that are invoked again. */
  children: M[];
}

export type RetriedEntry<M = NewMessage> =
  /** An entry of the failed run that is not sent again: both runs share its content. */
  | { kind: 'shared'; key: MessageKey; entry: NewEntry }
  /** A new entry that is not sent: a wait, an invocation, or a first message that need not be sent again. */
  | { kind: 'record'; record: NewRecord; event?: 'WAITER_ADDED' | 'INVOKED' }
  /** A new entry that is sent. */
  | { kind: 'message'; message: M };

/**
 * The outcome of saving a `RunRetry`. `messages`: how each sent message of the journal was saved, in order. `children`: the same
 * for the children.
 */
export type RunRetryResult =
  | { kind: 'retried'; messages: Saved[]; children: Saved[] }
  /** The DLQ has no entry for the failed run. */
  | { kind: 'missing' }
  /** A run with the requested id is active. */
  | { kind: 'idTaken' }
  /** The earlier batches of this retry were cancelled, so nothing was saved: see `retryRun`. */
  | { kind: 'lost' };

/** The settings that differ between a resumed or restarted run and the failed run. */
export interface RunOverride extends Partial<AttemptSettings & Pick<RunConfig, 'labels' | 'failureCallback'>> {
  /** The id of the new run. Only for the retry of a single run; absent: the server generates an id. */
  runId?: string;
  delayMs?: Millis;
  notBeforeMs?: Millis;
}

export interface StartedRun {
  runId: string;
  createdAtMs: Millis;
}

/** Why a failed run was not resumed or restarted. */
export type RetryRefusal =
  | 'missing'
  /** Messages that the new run needs are no longer kept. */
  | 'unknown'
  /** The requested id belongs to an active run. */
  | 'idTaken';
