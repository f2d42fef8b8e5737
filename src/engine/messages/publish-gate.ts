/**
 * When does a publish begin to be saved, and which are turned away?
 *
 * What is due at once takes a delivery slot before it is saved, so that it can go out without being claimed. Publishes that
 * wait for the store with a slot each would leave none to deliveries: then all goes the long way through the backlog, which
 * costs more, and more is accepted than goes out. So a project has only so many being saved at a time. The rest waits here,
 * without a slot; and while what was accepted before waits for this worker, it goes on waiting for that. Each project for
 * itself: what holds up the saving of one, such as a lock, holds up no other.
 */
import { Overloaded } from '../../protocol/rate-limits.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { Clock, EventLog, Timer } from '../ports.ts';
import { HUNG_MS, StoreUnavailable } from '../store-errors.ts';
import { Admission } from './admission.ts';
import type { Backlog } from './backlog.ts';
import { Fifo } from './project-turns.ts';

/** Messages of a project's publishes that are being saved at a time: a quarter of the slots of one origin, and enough to fill a transaction. */
const SAVING_MAX = 64;
/** A batch of messages counts as no more than these, so that the next is ready when it is saved. */
const SAVING_OF_ONE_MAX = SAVING_MAX / 4;
/** Nothing was refused for so long: it is over. The operator hears of the begin and of the end, not of each refusal. */
const QUIET_MS = 10_000;

/** So long those that wait here wait for what was accepted to go out; a backlog that takes longer does not stop them. */
const HOLD_MS = 250;

interface PublishGateDeps {
  backlog: Pick<Backlog, 'has' | 'listen'>;
  clock: Clock;
  log: EventLog;
  settings: { publishDelayTargetMs: Millis };
}

interface Waiting {
  begin: () => void;
  refuse: (error: StoreUnavailable) => void;
}

interface Line {
  /** What is being saved counts, in messages. */
  saving: number;
  waiting: Fifo<Waiting>;
  /** While those that wait are held back. */
  hold?: Timer;
}

export class PublishGate {
  readonly #clock: Clock;
  readonly #backlog: PublishGateDeps['backlog'];
  readonly #log: EventLog;
  readonly #admission: Admission;
  /** Of projects that have something being saved. */
  readonly #lines = new Map<ProjectId, Line>();
  #shedding: { sinceMs: Millis; latestMs: Millis; count: number; timer: Timer } | undefined;

  constructor({ clock, log, settings, backlog }: PublishGateDeps) {
    this.#clock = clock;
    this.#backlog = backlog;
    backlog.listen((projectId) => this.#endHold(projectId));
    this.#log = log;
    this.#admission = new Admission(settings.publishDelayTargetMs);
  }

  /** Throws `Overloaded` when a publish of the project that comes now is turned away. */
  check(projectId: ProjectId): void {
    const nowMs = this.#clock.elapsedMs;
    const retryAfterS = this.#admission.refuse(projectId, nowMs);
    if (retryAfterS === undefined) return;
    this.#noteRefusal(nowMs);
    throw new Overloaded(retryAfterS);
  }

  /** Has `count` messages of the project saved by `save` when it is their turn, and measures how long it takes. */
  async pass<T>(projectId: ProjectId, count: number, save: () => Promise<T>): Promise<T> {
    const enteredMs = this.#clock.elapsedMs;
    const cost = Math.min(count, SAVING_OF_ONE_MAX);
    this.#admission.enter(projectId, enteredMs);
    try {
      const line = this.#lineOf(projectId);
      if (line.saving >= SAVING_MAX || line.waiting.length > 0) await turnIn(line, cost);
      else line.saving += cost;
      const begunMs = this.#clock.elapsedMs;
      try {
        return await save();
      } catch (error) {
        if (error instanceof StoreUnavailable && this.#clock.elapsedMs - begunMs > HUNG_MS) refuseWaiting(line, error);
        throw error;
      } finally {
        this.#end(projectId, line, cost);
      }
    } finally {
      this.#admission.leave(projectId, enteredMs, this.#clock.elapsedMs);
    }
  }

  #lineOf(projectId: ProjectId): Line {
    let line = this.#lines.get(projectId);
    if (!line) {
      line = { saving: 0, waiting: new Fifo() };
      this.#lines.set(projectId, line);
    }
    return line;
  }

  #end(projectId: ProjectId, line: Line, cost: number): void {
    line.saving -= cost;
    this.#beginNext(projectId, line);
    if (line.saving > 0 || line.waiting.length > 0) return;
    line.hold?.cancel();
    this.#lines.delete(projectId);
  }

  /** Unless they are held back: then not before the backlog is gone, or `HOLD_MS` are over. */
  #beginNext(projectId: ProjectId, line: Line): void {
    if (line.hold || line.waiting.length === 0) return;
    if (!this.#backlog.has(projectId)) return beginNext(line);
    line.hold = this.#clock.startTimer(HOLD_MS, () => this.#endHold(projectId));
  }

  #endHold(projectId: ProjectId): void {
    const line = this.#lines.get(projectId);
    if (!line?.hold) return;
    line.hold.cancel();
    delete line.hold;
    beginNext(line);
  }

  #noteRefusal(nowMs: Millis): void {
    if (this.#shedding) {
      this.#shedding.count += 1;
      this.#shedding.latestMs = nowMs;
      return;
    }
    this.#log.warn('shedding_started');
    this.#shedding = { sinceMs: nowMs, latestMs: nowMs, count: 1, timer: this.#lookLater(QUIET_MS) };
  }

  #lookLater(delayMs: Millis): Timer {
    return this.#clock.startTimer(delayMs, () => {
      if (!this.#shedding) return;
      const { sinceMs, latestMs, count } = this.#shedding;
      const quietMs = this.#clock.elapsedMs - latestMs;
      if (quietMs < QUIET_MS) {
        this.#shedding.timer = this.#lookLater(QUIET_MS - quietMs);
        return;
      }
      this.#shedding = undefined;
      this.#log.warn('shedding_ended', { count, durationMs: Math.round(latestMs - sinceMs) });
    });
  }
}

/** Resolves when it may begin, and counts as being saved. */
function turnIn(line: Line, cost: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  line.waiting.push({ begin: resolve, refuse: reject }, cost);
  return promise;
}

function beginNext(line: Line): void {
  const next: Waiting[] = [];
  line.saving += line.waiting.takeInto(next, SAVING_MAX - line.saving);
  for (const { begin } of next) begin();
}

function refuseWaiting(line: Line, error: StoreUnavailable): void {
  const waiting: Waiting[] = [];
  line.waiting.takeInto(waiting, Infinity);
  for (const { refuse } of waiting) refuse(error);
}
