/** The dead letter queue of workflow runs (contract W 21): its types. */
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

/** A run that has failed, as the DLQ shows it. */
export interface DeadRun {
  dlqId: string;
  run: FailedRunHead;
  /** The dead message, without its body, which is a step of the run. */
  message: Message;
  deadLetter: DeadLetter;
  /** What the run was started with. */
  payload: Uint8Array;
  failureCallback?: FailureCallback;
}

/** What it takes to start a run again. */
export type FailedRunHead = Pick<Run, 'key' | 'projectId' | 'id' | 'url' | 'createdAtMs' | 'config'>;

/** The state of the failure callback, and its last answer. */
export interface FailureCallback {
  state: FailureCallbackState;
  answer?: { status: number; header: HeaderMap; body: Uint8Array };
}

/** Selects active runs by what they were triggered with; `fromMs` and `toMs` are about when they began. */
export interface ActiveRunFilter
  extends Pick<AttributeFilter, 'url' | 'host' | 'path' | 'label' | 'flowControlKey' | 'callerIp' | 'fromMs' | 'toMs'> {
  /** The beginning of their URL. */
  urlPrefix?: string[];
}

/** Selects failed runs; `fromMs` and `toMs` are about when they failed. */
export interface DeadRunFilter extends Omit<ActiveRunFilter, 'urlPrefix'> {
  runId?: string;
  runCreatedAtMs?: Millis;
  failureCallback?: FailureCallbackState[];
  responseStatus?: number[];
}

/** An entry of a journal without its content. */
export interface OutlinedEntry {
  position: number;
  kind: EntryKind;
  key: MessageKey;
  entryKey: string;
  bodyBytes: number;
}

/**
 * A run that replaces a failed one in the DLQ, with the first entries of its journal; of one that has many, a piece.
 * `M`: its messages, as far as made.
 */
export interface RunRetry<M = NewMessage> {
  projectId: ProjectId;
  dlqId: string;
  run: NewRun;
  /** The key of its first entry. */
  runKey: RunKey;
  /** Those of the piece, in order. */
  journal: RetriedEntry<M>[];
  /** Whether the piece has the run's first entry. */
  isFirst: boolean;
  /** Whether it has the last one. Then the rest comes with it: nothing of a run may happen before the run is whole. */
  isLast: boolean;
  /** What the run waits for. `key`: that of the record. */
  waiters: { key: MessageKey; eventId: string; deadlineMs: Millis }[];
  /** Its records that wait for the end of another run. */
  invocations: { key: MessageKey; childKey: RunKey }[];
  /** First messages of the runs that it invokes anew. */
  children: M[];
}

export type RetriedEntry<M = NewMessage> =
  /** The failed run's entry at this place, which is not sent again: both runs share its content. */
  | { kind: 'shared'; key: MessageKey; entry: NewEntry }
  /** Made anew, and not sent: a wait, an invocation, or a first message that need not go out again. */
  | { kind: 'record'; record: NewRecord; event?: 'WAITER_ADDED' | 'INVOKED' }
  /** Made anew, to be sent. */
  | { kind: 'message'; message: M };

/**
 * `messages`: how those of the journal were saved that are sent, in their order. `children`: the same of the children.
 */
export type RetriedAs =
  | { kind: 'retried'; messages: Saved[]; children: Saved[] }
  /** There is no such entry in the DLQ. */
  | { kind: 'missing' }
  /** A run of its id is active. */
  | { kind: 'idTaken' }
  /** What the pieces before have saved was given up: see `retryRun`. */
  | { kind: 'lost' };

/** What a resumed or restarted run changes compared with the failed one. */
export interface RunOverride extends Partial<AttemptSettings & Pick<RunConfig, 'labels' | 'failureCallback'>> {
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
  /** Too little of the run is still kept. */
  | 'unknown'
  /** The id that was asked for belongs to an active run. */
  | 'idTaken';
