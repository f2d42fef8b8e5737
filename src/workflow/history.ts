/** What is known of a run when its log is made: the run, its journal, and what became of each message of it. */
import type { HeaderMap, MessageSettings } from '../protocol/options/settings.ts';
import type { EntryKind, FailureCallbackState, RunConfig, RunKey, RunState } from './model.ts';

/** A message or a record, as far as a log shows it. */
export interface KnownMessage {
  id: string;
  url: string;
  method: string;
  header: HeaderMap;
  body: Uint8Array;
  createdAtMs: number;
  notBeforeMs: number;
  settings: MessageSettings;
}

/** What an attempt was answered with. */
export interface Answered {
  status: number;
  header: HeaderMap;
  body: Uint8Array;
}

/** One failed attempt. */
export interface Failure {
  atMs: number;
  error: string;
  /** Absent: no answer came. */
  response?: Answered;
}

/** What became of a message so far. */
export interface Course {
  /** Present while it is unfinished. */
  pending?: { dueAtMs: number; isInFlight: boolean };
  /** Absent while it is unfinished, and when its log is gone. */
  end?: 'delivered' | 'failed' | 'canceled';
  /** Oldest first. */
  failures: Failure[];
  /** It is parked: what the endpoint said last of its code. */
  parked?: Failure;
  /** The answer of the attempt that succeeded, if it was kept. */
  answer?: Answered;
}

export interface HistoryEntry extends Course {
  position: number;
  kind: EntryKind;
  entryKey: string;
  key: number;
  message: KnownMessage;
  /** Of an invocation: the first message of the run that was invoked, while it is kept. */
  child?: KnownMessage;
}

export interface FailureFunction extends Course {
  state: FailureCallbackState;
  message: KnownMessage;
}

/** What a log says of a run itself. */
export interface KnownRun {
  key: RunKey;
  id: string;
  url: string;
  createdAtMs: number;
  state: RunState;
  config: RunConfig;
  completedAtMs?: number;
  /** What it returned. */
  response?: Uint8Array;
  /** Its entry in the DLQ, while there is one. */
  dlqId?: string;
  callerIp?: string;
  /** The run that invoked it, while that one is kept. */
  invoker?: { id: string; url: string; createdAtMs: number };
}

export interface RunHistory {
  run: KnownRun;
  /** In the order of the journal. */
  entries: HistoryEntry[];
  failureFunction?: FailureFunction;
}
