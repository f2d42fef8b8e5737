/** What the engine asks of a store about the logs of workflow runs; the rules of `stores.ts` hold. */
import type { KnownMessage, KnownRun } from '../../../workflow/history.ts';
import type { RunState } from '../../../workflow/model.ts';
import type { LogDetail, LogState, MessageId, Millis, RunLogState } from '../../model.ts';

/** Several values of one name are alternatives; a run must match every name that is given. */
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
  /** The time of the event, as for `toMs`. */
  fromMs?: Millis;
  toMs?: Millis;
}

/** One event of the flat view. */
export interface RunEvent {
  atMs: Millis;
  state: LogState | RunLogState;
  /** What belongs to the run's beginning or end is present only on events that are about these. */
  run: Pick<KnownRun, 'id' | 'url' | 'createdAtMs' | 'response' | 'dlqId' | 'callerIp' | 'invoker'> & {
    config?: KnownRun['config'];
  };
  /** Absent on events of the run itself. */
  message?: KnownMessage & { key: number };
  /** The wait or the invocation whose result the message is, and the first message of the run that was invoked. */
  record?: KnownMessage;
  child?: KnownMessage;
  detail?: LogDetail;
}

export interface RunFilter extends RunAttributes {
  /** Exactly these runs. */
  runs?: { id: string; createdAtMs: Millis }[];
  state?: RunState[];
  /** The runs that own these messages. */
  messageId?: MessageId[];
  /** The time when the run was created, as for `toMs`. */
  fromMs?: Millis;
  toMs?: Millis;
}
