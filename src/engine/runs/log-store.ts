/** What the engine asks of a store about the logs of workflow runs; the rules of `stores.ts` hold. */
import type { KnownMessage, KnownRun, RunHistory } from '../../workflow/history.ts';
import type { RunState } from '../../workflow/model.ts';
import type { InProject, LogDetail, LogState, MessageId, Millis, RunLogState } from '../model.ts';
import type { Page, PageRequest } from '../page.ts';

/** Several values of one name are alternatives, names narrow each other. */
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
  /** Of the event, as `toMs`. */
  fromMs?: Millis;
  toMs?: Millis;
}

/** One event of the flat view. */
export interface RunEvent {
  atMs: Millis;
  state: LogState | RunLogState;
  /** With what is known of a run only once it has begun or ended where the event is about that. */
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
  /** Of the creation of the run, as `toMs`. */
  fromMs?: Millis;
  toMs?: Millis;
}

export interface RunLogStore {
  listRunEvents(args: InProject & { filter: RunEventFilter; page: PageRequest }): Promise<Page<RunEvent>>;
  /**
   * Runs by their creation, each with all of its journal; a page may end early rather than hold very many bytes. With
   * `bodyBytesMax` a body may come cut to one byte more. Of very many answers to failed attempts, and payloads of invoked
   * runs, some come without their bodies.
   */
  listRunHistories(
    args: InProject & { filter: RunFilter; page: PageRequest; bodyBytesMax?: number | undefined },
  ): Promise<Page<RunHistory>>;
}
