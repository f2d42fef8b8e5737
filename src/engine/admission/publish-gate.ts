/**
 * When does a publish begin to be saved, and which are rejected?
 *
 * A message that is due at once takes a delivery slot before it is saved, so that it can go out without a claim. If
 * many publishes waited for the store with a slot each, deliveries would have none. All messages would then go through
 * the backlog, which costs more, and more would be accepted than goes out. So only a limited number of a project's
 * messages is being saved at a time. The other publishes wait here, without a slot. While the project has a backlog
 * (backlog.ts), they also wait for it to shrink. Projects do not wait for each other: a lock that delays one of them delays no other.
 */
import { Overloaded } from '../../protocol/rate-limits.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { Clock, EventLog, Timer } from '../ports.ts';
import { HUNG_MS, StoreUnavailable } from '../store-errors.ts';
import { Admission } from './admission.ts';
import type { Backlog } from './backlog.ts';
import { Fifo } from './fair-queue.ts';

/**
 * Messages of a project that are being saved at a time: a quarter of the slots of one origin, enough to fill a
 * transaction.
 */
const SAVING_MAX = 64;
/** A batch counts as at most so many messages, so that the next publish is ready when the batch is saved. */
const SAVING_OF_ONE_MAX = SAVING_MAX / 4;
/** After so long without a refusal, shedding is over. The log tells its beginning and its end, not each refusal. */
const QUIET_MS = 10_000;

/** How long waiting publishes wait for the backlog at most; a longer backlog does not stop them. */
const HOLD_MS = 250;

export type Leave = (error?: unknown) => void;

interface Waiting {
  begin: () => void;
  refuse: (error: StoreUnavailable) => void;
}

interface Line {
  /** What is being saved, counted in messages. */
  saving: number;
  waiting: Fifo<Waiting>;
  /** Present while the waiting publishes are held back. */
  hold?: Timer;
}

export class PublishGate {
  readonly #clock: Clock;
  readonly #backlog: Backlog;
  readonly #log: EventLog;
  readonly #admission: Admission;
  /** Of projects that have something being saved. */
  readonly #lines = new Map<ProjectId, Line>();
  #isClosed = false;
  #shedding: { sinceMs: Millis; latestMs: Millis; count: number; timer: Timer } | undefined;

  constructor(clock: Clock, log: EventLog, delayTargetMs: Millis, backlog: Backlog) {
    this.#clock = clock;
    this.#log = log;
    this.#backlog = backlog;
    backlog.listen((projectId) => this.#endHold(projectId));
    this.#admission = new Admission(delayTargetMs);
  }

  /** Throws `Overloaded` when the project publishes more than can be saved (admission.ts). */
  check(projectId: ProjectId): void {
    const nowMs = this.#clock.elapsedMs;
    const retryAfterS = this.#admission.refuse(projectId, nowMs);
    if (retryAfterS === undefined) return;
    this.#noteRefusal(nowMs);
    throw new Overloaded(retryAfterS);
  }

  /**
   * Admits a publish of `count` messages when it is the project's turn. The caller calls the answer when saving them has
   * ended, with the error if it failed. Throws `Overloaded`.
   */
  enter(projectId: ProjectId, count: number): Leave | Promise<Leave> {
    this.check(projectId);
    const enteredMs = this.#clock.elapsedMs;
    const cost = Math.min(count, SAVING_OF_ONE_MAX);
    this.#admission.enter(projectId, enteredMs);
    const line = this.#lineOf(projectId);
    const begin = (): Leave => {
      const begunMs = this.#clock.elapsedMs;
      return (error) => {
        const endedMs = this.#clock.elapsedMs;
        if (error instanceof StoreUnavailable && endedMs - begunMs > HUNG_MS) refuseWaiting(line, error);
        this.#end(projectId, line, cost);
        this.#admission.leave(projectId, enteredMs, endedMs);
      };
    };
    if (line.saving >= SAVING_MAX || line.waiting.length > 0) {
      return turnIn(line, cost).then(begin, (error) => {
        this.#admission.leave(projectId, enteredMs, this.#clock.elapsedMs);
        throw error;
      });
    }
    line.saving += cost;
    return begin();
  }

  /** Looks no more whether shedding is over: the server ends. */
  close(): void {
    this.#isClosed = true;
    this.#shedding?.timer.cancel();
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

  /** Begins the next publishes. With a backlog, only once it is gone or `HOLD_MS` have passed. */
  #beginNext(projectId: ProjectId, line: Line): void {
    if (line.hold || line.waiting.length === 0) return;
    if (!this.#backlog.has(projectId, this.#clock.elapsedMs)) return beginNext(line);
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
    if (this.#isClosed) return;
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

/** Resolves when the publish may begin; it counts as being saved then. */
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
