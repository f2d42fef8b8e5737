/** The types of workflows: a run, what its trigger fixed for it, and an entry of its journal (contract W 2). */
import type {
  AttemptSettings,
  CallbackSettings,
  CallType,
  Dialect,
  HeaderMap,
  Redaction,
  TraceContext,
  WorkflowFeature,
} from '../protocol/options/settings.ts';

/** The key of a run's first message. A safe integer. */
export type RunKey = number;

export type RunState = 'RUN_STARTED' | EndState;
export type EndState = 'RUN_SUCCESS' | 'RUN_FAILED' | 'RUN_CANCELED';

/** What an entry of a journal is. Waits and invocations are no messages: their results are. */
export type EntryKind = 'initial' | 'step' | 'plan' | 'toCallback' | 'fromCallback' | 'stepConfig' | 'wait' | 'invoke';

/** The state of a run's failure callback; `none`: the workflow has no failure function. */
export type FailureCallbackState = 'inProgress' | 'success' | 'fail' | 'canceled' | 'none';

/** What is fixed when a run begins. */
export interface RunConfig extends AttemptSettings {
  dialect: Dialect;
  features: WorkflowFeature[];
  /** Whether all later messages take the members below from here, and not from their own headers. */
  isKept: boolean;
  isRest: boolean;
  /** Its first message must find out which library serves the URL. */
  isUnknownSdk: boolean;
  /** Forwarded headers of the trigger, without those of a service prefix. */
  header: HeaderMap;
  labels?: string[];
  redact?: Redaction;
  /** The trace that all of the run belongs to, whatever a later message names: client libraries do not repeat it. */
  trace?: TraceContext;
  /** Where a failure is reported, and how; absent: nowhere. */
  failureCallback?: CallbackSettings;
  /** The failed run that this one replaces, and the run that replaces this one. */
  predecessor?: RunLink;
  successor?: RunLink;
}

/** A run as others name it, also when it is no longer kept. */
export interface RunLink {
  id: string;
  createdAtMs: number;
}

/** Version of a run that has just begun. */
export const FIRST_VERSION = 1;

/** What the engine must know of a run to decide. */
export interface Run {
  key: RunKey;
  projectId: number;
  id: string;
  url: string;
  createdAtMs: number;
  state: RunState;
  /** Goes up when `config` or `invokers` change. */
  version: number;
  config: RunConfig;
  callerIp?: string;
  /** Entries of its journal so far. */
  entries: number;
  /** Id of its first message. */
  messageId: string;
  /** Keys of the invocations that wait for its end; their parents may have ended. */
  invokers: number[];
}

/** An entry as deliveries show it. */
export interface JournalEntry {
  position: number;
  messageId: string;
  callType: CallType;
  body: Uint8Array;
}
