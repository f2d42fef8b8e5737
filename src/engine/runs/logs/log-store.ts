/** Types of the store's operations on the logs of workflow runs (see `stores.ts`). */
import type { LoggedMessage, LoggedRun } from '../../../workflow/history.ts';
import type { RunState } from '../../../workflow/model.ts';
import type { LogDetail, LogState, MessageId, Millis, RunLogState } from '../../model.ts';

/** Several values of one name are alternatives; a run must match every given name. */
export interface RunAttributes {
  runId?: string[];
  runCreatedAtMs?: Millis;
  runUrl?: string[];
  host?: string[];
  path?: string[];
  label?: string[];
  flowControlKey?: string[];
  callerIp?: string[];
}

export interface RunEventFilter extends RunAttributes {
  state?: (LogState | RunLogState)[];
  messageId?: MessageId[];
  /** The earliest time of the event. `toMs` is the latest time. */
  fromMs?: Millis;
  toMs?: Millis;
}

/** One event of the flat view. */
export interface RunEvent {
  atMs: Millis;
  state: LogState | RunLogState;
  /** Members about the start or the end of the run are present only on the event of its start or its end. */
  run: Pick<LoggedRun, 'id' | 'url' | 'createdAtMs' | 'response' | 'dlqId' | 'callerIp' | 'invoker'> & {
    config?: LoggedRun['config'];
  };
  /** The message of the event. Absent in events about the run itself. */
  message?: LoggedMessage & { key: number };
  /** The wait or the invocation of which the message is the result, and the first message of the invoked run. */
  record?: LoggedMessage;
  child?: LoggedMessage;
  detail?: LogDetail;
}

export interface RunFilter extends RunAttributes {
  /** Selects only these runs. */
  runs?: { id: string; createdAtMs: Millis }[];
  state?: RunState[];
  /** Selects the runs that own these messages. */
  messageId?: MessageId[];
  /** The earliest creation time of the run. `toMs` is the latest creation time. */
  fromMs?: Millis;
  toMs?: Millis;
}
