/**
 * What is told of messages, attempts and runs once it is saved: by the log, to an operator and to the developer of an app,
 * by the counts of each minute and by metrics?
 */
import { withoutRedirectPath } from '../protocol/redirects.ts';
import type { MinuteCounter } from './minutes/counter.ts';
import type { Change, Claimed, Message, Millis, NewMessage, Outcome } from './model.ts';
import type { EndedRun, EventLog, Metrics, Observer } from './ports.ts';

export interface ReportsOptions {
  log: EventLog;
  minutes: Pick<MinuteCounter, 'accepted' | 'settled' | 'runEnded'>;
  metrics?: Metrics | undefined;
  /** Absent: the operator is told of nothing. */
  operatorEvents?: { noteSaved(): void; noteHeldBack(origin: string): void } | undefined;
  spans?: Observer | undefined;
  /**
   * Whether each failed attempt and each end of a run is logged with its URL, as in development. Otherwise they are
   * events of level `debug`, and of a URL only the origin is logged: paths may hold secrets.
   */
  tellsAll: boolean;
}

export class Reports {
  readonly #log: EventLog;
  readonly #minutes: ReportsOptions['minutes'];
  readonly #metrics: Metrics | undefined;
  readonly #operatorEvents: ReportsOptions['operatorEvents'];
  readonly #observers: readonly Observer[];
  readonly #tellsAll: boolean;

  constructor({ log, minutes, metrics, spans, operatorEvents, tellsAll }: ReportsOptions) {
    this.#log = log;
    this.#minutes = minutes;
    this.#metrics = metrics;
    this.#observers = [metrics, spans].filter((observer) => observer !== undefined);
    this.#operatorEvents = operatorEvents;
    this.#tellsAll = tellsAll;
  }

  /** `newMessage` was saved. */
  accepted(newMessage: NewMessage, atMs: Millis): void {
    this.#minutes.accepted(newMessage);
    for (const observer of this.#observers) observer.accepted(newMessage, atMs);
  }

  /** An attempt has ended; nothing of it is saved yet. */
  attempted(claimed: Claimed, outcome: Outcome, endedAtMs: Millis): void {
    for (const observer of this.#observers) observer.attempted(claimed, outcome, endedAtMs);
  }

  /** The outcome of an attempt was not saved (P6). */
  claimLost(): void {
    this.#metrics?.claimLost();
  }

  /** `change` was saved at `atMs`, after an attempt. */
  settled(claimed: Claimed, change: Change, atMs: Millis): void {
    this.#minutes.settled(claimed, change);
    for (const observer of this.#observers) observer.settled(claimed, change, atMs);
    if (change.toldAs) this.#operatorEvents?.noteSaved();
    const { message, retried } = claimed;
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
    const reason = this.#tellsAll ? error : withoutRedirectPath(error);
    const about = { messageId: message.id, ...this.#where(message), reason, attempts: retried + 1 };
    if (change.ending && run) this.#log.warn('run_failed', { runId: run.id, ...about });
    else if (change.deadLetter) this.#log.warn('message_buried', about);
    else {
      const next = nextOf(change, retried, atMs);
      if (this.#tellsAll) this.#log.warn('attempt_failed', { ...about, next });
      else this.#log.debug('attempt_failed', { ...about, next });
    }
  }

  /** The run returned or was cancelled. A run that failed is reported with its message, by `settled`. */
  runEnded(run: EndedRun, state: 'RUN_SUCCESS' | 'RUN_CANCELED', atMs: Millis): void {
    const { projectId, id, url } = run;
    this.#minutes.runEnded(projectId, state, atMs);
    for (const observer of this.#observers) observer.runEnded(run, state, atMs);
    const about = { runId: id, ...this.#where({ url, origin: originOf(url) }) };
    const event = state === 'RUN_SUCCESS' ? 'run_succeeded' : 'run_canceled';
    if (this.#tellsAll) this.#log.info(event, about);
    else this.#log.debug(event, about);
  }

  /** The wait that `record` registered is over. */
  woken(record: Message, by: 'event' | 'deadline', atMs: Millis): void {
    for (const observer of this.#observers) observer.woken(record, by, atMs);
  }

  /** Attempts to `origin` end without an answer: from now on it gets the fewest at a time that an origin can have. */
  heldBack(origin: string): void {
    this.#log.warn('origin_held_back', { origin });
    this.#operatorEvents?.noteHeldBack(origin);
  }

  #where({ url, origin }: Pick<Message, 'url' | 'origin'>): { url: string } | { origin: string } {
    return this.#tellsAll ? { url: withoutQuery(url) } : { origin };
  }
}

/** What comes after a failed attempt that made no dead letter. */
function nextOf({ next, events }: Change, retried: number, atMs: number): string {
  if (next.kind === 'waiting') return `attempt ${retried + 2} in ${Math.ceil((next.dueAtMs - atMs) / 1000)} s`;
  return events.some(({ state }) => state === 'CANCELED')
    ? 'none, it is cancelled'
    : 'none, its run goes on without it';
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}

/** Without user name and password, too. */
function withoutQuery(url: string): string {
  if (!URL.canParse(url)) return url;
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
