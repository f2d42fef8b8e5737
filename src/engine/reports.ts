/**
 * Reports saved changes of messages, attempts and runs: to the log, to operator events, to the counts by minute and to metrics.
 */
import { withoutRedirectPath } from '../protocol/responses.ts';
import type { EngineDeps } from './deps.ts';
import type { MinuteCounter } from './minutes/counter.ts';
import { type Count, countsOf, countsOfNew } from './minutes/counts.ts';
import type { Change, Claimed, Message, Millis, NewMessage, Outcome, ProjectId } from './model.ts';
import type { EndedRun, EventLog, Metrics, Observer } from './ports.ts';

/** Absent: the operator is not notified. */
type OperatorEvents = { noteSaved(): void; noteHeldBack(origin: string): void } | undefined;

export class Reports {
  readonly #log: EventLog;
  readonly #minutes: Pick<MinuteCounter, 'count' | 'attempted'>;
  readonly #metrics: Metrics | undefined;
  readonly #operatorEvents: OperatorEvents;
  readonly #spans: Observer | undefined;
  /**
   * Whether each failed attempt and each end of a run is logged with its URL, as in development. Otherwise these events
   * have the level `debug` and only the origin of the URL, because paths may contain secrets.
   */
  readonly #logsAll: boolean;

  constructor(
    { log, metrics, spans, logsAll = false }: Pick<EngineDeps, 'log' | 'metrics' | 'spans' | 'logsAll'>,
    minutes: Pick<MinuteCounter, 'count' | 'attempted'>,
    operatorEvents?: OperatorEvents,
  ) {
    this.#log = log;
    this.#minutes = minutes;
    this.#metrics = metrics;
    this.#spans = spans;
    this.#operatorEvents = operatorEvents;
    this.#logsAll = logsAll;
  }

  /** `newMessage` was saved. */
  accepted(newMessage: NewMessage, atMs: Millis): void {
    const { projectId, createdAtMs } = newMessage.message;
    this.#count(projectId, createdAtMs, countsOfNew(newMessage));
    this.#spans?.accepted(newMessage, atMs);
  }

  /** An attempt has ended, and its outcome is not saved yet. */
  attempted(claimed: Claimed, outcome: Outcome, endedAtMs: Millis): void {
    this.#metrics?.attempted(claimed, outcome, endedAtMs);
    this.#spans?.attempted(claimed, outcome, endedAtMs);
  }

  /** The outcome of an attempt was not saved, because its claim is lost (P6). */
  claimLost(): void {
    this.#metrics?.claimLost();
  }

  /** `change` was saved at `atMs`, after an attempt. */
  settled(claimed: Claimed, change: Change, atMs: Millis): void {
    const { message, retried } = claimed;
    const [first] = change.events;
    this.#count(message.projectId, first?.atMs, countsOf(change));
    if (first) this.#minutes.attempted(claimed, first.atMs);
    this.#spans?.settled(claimed, change, atMs);
    if (change.operatorEventKind) this.#operatorEvents?.noteSaved();
    const { run } = message.settings;
    const parked = change.events.find(({ state }) => state === 'STEP_PARKED');
    if (parked && run) {
      const dueInS = change.next.kind === 'waiting' ? Math.ceil((change.next.dueAtMs - atMs) / 1000) : 0;
      const why = { ...this.#where(message), reason: parked.detail?.error ?? '', next: `in ${dueInS} s` };
      this.#log.warn('run_parked', { runId: run.id, messageId: message.id, ...why });
      return;
    }
    const error = change.events.find(({ state }) => state === 'ERROR')?.detail?.error;
    if (error === undefined) return;
    const reason = this.#logsAll ? error : withoutRedirectPath(error);
    const about = { messageId: message.id, ...this.#where(message), reason, attempts: retried + 1 };
    if (change.ending && run) this.#log.warn('run_failed', { runId: run.id, ...about });
    else if (change.deadLetter) this.#log.warn('message_buried', about);
    else {
      const next = describeNext(change, retried, atMs);
      if (this.#logsAll) this.#log.warn('attempt_failed', { ...about, next });
      else this.#log.debug('attempt_failed', { ...about, next });
    }
  }

  /** The run returned or was cancelled. A run that failed is reported with its message, by `settled`. */
  runEnded(run: EndedRun, state: 'RUN_SUCCESS' | 'RUN_CANCELED', atMs: Millis): void {
    const { projectId, id, url } = run;
    this.#count(projectId, atMs, [state === 'RUN_SUCCESS' ? 'runsSucceeded' : 'runsCanceled']);
    this.#spans?.runEnded(run, state, atMs);
    const about = { runId: id, ...this.#where({ url, origin: originOf(url) }) };
    const event = state === 'RUN_SUCCESS' ? 'run_succeeded' : 'run_canceled';
    if (this.#logsAll) this.#log.info(event, about);
    else this.#log.debug(event, about);
  }

  /** The wait that `record` registered has ended. */
  woken(record: Message, by: 'event' | 'deadline', atMs: Millis): void {
    this.#spans?.woken(record, by, atMs);
  }

  /** So many attempts to `origin` ended without a response that the origin now has the smallest concurrency window. */
  heldBack(origin: string): void {
    this.#log.warn('origin_held_back', { origin });
    this.#operatorEvents?.noteHeldBack(origin);
  }

  /**
   * `timeMs`: the time of the log entry; undefined if there is no log entry, in which case the event is not counted by
   * the minute.
   */
  #count(projectId: ProjectId, timeMs: Millis | undefined, counts: readonly Count[]): void {
    if (timeMs !== undefined) this.#minutes.count(projectId, timeMs, counts);
    this.#metrics?.count(counts);
  }

  #where({ url, origin }: Pick<Message, 'url' | 'origin'>): { url: string } | { origin: string } {
    return this.#logsAll ? { url: withoutQuery(url) } : { origin };
  }
}

/** Describes what follows a failed attempt whose message is not dead. */
function describeNext({ next, events }: Change, retried: number, atMs: number): string {
  if (next.kind === 'waiting') return `attempt ${retried + 2} in ${Math.ceil((next.dueAtMs - atMs) / 1000)} s`;
  return events.some(({ state }) => state === 'CANCELED')
    ? 'none, it is cancelled'
    : 'none, its run continues without it';
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}

/** The URL without query, user name and password. */
function withoutQuery(url: string): string {
  if (!URL.canParse(url)) return url;
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
