/** The types of workflows: a run, the configuration that its trigger fixes, and an entry of its journal (contract W 2). */
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

/** The kind of a journal entry. Waits and invocations are not messages, but their results are messages. */
export type EntryKind = 'initial' | 'step' | 'plan' | 'toCallback' | 'fromCallback' | 'stepConfig' | 'wait' | 'invoke';

/** The state of a run's failure callback; `none`: the workflow has no failure function. */
export type FailureCallbackState = 'inProgress' | 'success' | 'fail' | 'canceled' | 'none';

/** The configuration that is fixed when a run starts. */
export interface RunConfig extends AttemptSettings {
  dialect: Dialect;
  features: WorkflowFeature[];
  /** Whether later messages use the settings below instead of their own headers. */
  isKept: boolean;
  isRest: boolean;
  /** Whether the trigger does not name the library that serves the URL. If so, the first message asks for this name. */
  isUnknownSdk: boolean;
  /** The trigger's forwarded headers, without headers that have a service prefix. */
  header: HeaderMap;
  labels?: string[];
  redact?: Redaction;
  /**
   * The trace of the whole run. It replaces the trace of each later message, because client libraries do not repeat the
   * trace.
   */
  trace?: TraceContext;
  /** How a failure of the run is reported; absent: the failure is not reported. */
  failureCallback?: CallbackSettings;
  /** `predecessor`: the failed run that this run replaces. `successor`: the run that replaces this run. */
  predecessor?: RunLink;
  successor?: RunLink;
}

/** A reference to a run, which stays valid after the run was deleted. */
export interface RunLink {
  id: string;
  createdAtMs: number;
}

/** The version of a run that has just started. */
export const FIRST_VERSION = 1;

/** The state of a run on which the engine bases its decisions. */
export interface Run {
  key: RunKey;
  projectId: number;
  id: string;
  url: string;
  createdAtMs: number;
  state: RunState;
  /** Increases when `config` or `invokers` change. */
  version: number;
  config: RunConfig;
  callerIp?: string;
  /** The number of entries in the run's journal. */
  entries: number;
  /** The id of the run's first message. */
  messageId: string;
  /** The keys of the invocations that wait for the end of this run. The invoking runs may have ended already. */
  invokers: number[];
}

/** An entry as deliveries contain it. */
export interface JournalEntry {
  position: number;
  messageId: string;
  callType: CallType;
  body: Uint8Array;
}
