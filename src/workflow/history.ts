/** The data from which the log of a run is built: the run, its journal, and the delivery progress of each message. */
import type { HeaderMap, MessageSettings } from '../protocol/options/settings.ts';
import type { EntryKind, FailureCallbackState, RunConfig, RunKey, RunState } from './model.ts';

/** The members of a message or a record that a log shows. */
export interface LoggedMessage {
  id: string;
  url: string;
  method: string;
  header: HeaderMap;
  body: Uint8Array;
  createdAtMs: number;
  notBeforeMs: number;
  settings: MessageSettings;
}

/** The response to an attempt. */
export interface KeptResponse {
  status: number;
  header: HeaderMap;
  body: Uint8Array;
}

/** One failed attempt. */
export interface Failure {
  atMs: number;
  error: string;
  /** Absent if the attempt had no response. */
  response?: KeptResponse;
}

/** The deliveries of a message so far. */
export interface DeliveryProgress {
  /** The next attempt, or the attempt in flight. Present while the message is unfinished. */
  pending?: { dueAtMs: number; isInFlight: boolean };
  /** Absent while the message is unfinished, and after its log was deleted. */
  end?: 'delivered' | 'failed' | 'canceled';
  /** The failed attempts, oldest first. */
  failures: Failure[];
  /** The endpoint's latest report about its changed code. Present while the message is parked. */
  parked?: Failure;
  /** The response to the successful attempt, if the response was kept. */
  response?: KeptResponse;
}

export interface HistoryEntry extends DeliveryProgress {
  position: number;
  kind: EntryKind;
  entryKey: string;
  key: number;
  message: LoggedMessage;
  /** The first message of the invoked run. Present for an invocation, unless the message was deleted. */
  child?: LoggedMessage;
}

export interface FailureFunction extends DeliveryProgress {
  state: FailureCallbackState;
  message: LoggedMessage;
}

/** The members of a run that a log shows. */
export interface LoggedRun {
  key: RunKey;
  id: string;
  url: string;
  createdAtMs: number;
  state: RunState;
  config: RunConfig;
  completedAtMs?: number;
  /** The return value of the workflow. */
  response?: Uint8Array;
  /** The DLQ id of the run, if the run is in the DLQ. */
  dlqId?: string;
  callerIp?: string;
  /** The run that invoked this run, unless the invoking run was deleted. */
  invoker?: { id: string; url: string; createdAtMs: number };
}

export interface RunHistory {
  run: LoggedRun;
  /** The entries of the run, in the order of the journal. */
  entries: HistoryEntry[];
  failureFunction?: FailureFunction;
}
