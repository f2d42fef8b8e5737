/**
 * When does a publish start to be saved, and which are rejected?
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
import { Fifo } from './fair-queue.ts';
import type { LaggingProjects } from './lagging-projects.ts';

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
const PAUSE_MAX_MS = 250;

export type EndPublish = (error?: unknown) => void;

interface QueuedPublish {
  start: () => void;
  reject: (error: StoreUnavailable) => void;
}

interface PublishQueue {
  /** What is being saved, counted in messages. */
  saving: number;
  waiting: Fifo<QueuedPublish>;
  /** Present while the waiting publishes are held back. */
  pause?: Timer;
}

export class PublishGate {
  readonly #clock: Clock;
  readonly #laggingProjects: LaggingProjects;
  readonly #log: EventLog;
  readonly #admission: Admission;
  /** Of projects that have something being saved. */
  readonly #queues = new Map<ProjectId, PublishQueue>();
  #isClosed = false;
  #shedding: { sinceMs: Millis; latestMs: Millis; count: number; timer: Timer } | undefined;

  constructor(clock: Clock, log: EventLog, delayTargetMs: Millis, backlog: LaggingProjects) {
    this.#clock = clock;
    this.#log = log;
    this.#laggingProjects = backlog;
    backlog.listen((projectId) => this.#endPause(projectId));
    this.#admission = new Admission(delayTargetMs);
  }

  /** Throws `Overloaded` when the project publishes more than can be saved (`Admission`). */
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
  enter(projectId: ProjectId, count: number): EndPublish | Promise<EndPublish> {
    this.check(projectId);
    const enteredMs = this.#clock.elapsedMs;
    const cost = Math.min(count, SAVING_OF_ONE_MAX);
    this.#admission.enter(projectId, enteredMs);
    const queue = this.#queueOf(projectId);
    const start = (): EndPublish => {
      const startedMs = this.#clock.elapsedMs;
      return (error) => {
        const endedMs = this.#clock.elapsedMs;
        if (error instanceof StoreUnavailable && endedMs - startedMs > HUNG_MS) rejectQueued(queue, error);
        this.#end(projectId, queue, cost);
        this.#admission.leave(projectId, enteredMs, endedMs);
      };
    };
    if (queue.saving >= SAVING_MAX || queue.waiting.length > 0) {
      return enqueue(queue, cost).then(start, (error) => {
        this.#admission.leave(projectId, enteredMs, this.#clock.elapsedMs);
        throw error;
      });
    }
    queue.saving += cost;
    return start();
  }

  /** Looks no more whether shedding is over: the server ends. */
  close(): void {
    this.#isClosed = true;
    this.#shedding?.timer.cancel();
  }

  #queueOf(projectId: ProjectId): PublishQueue {
    let queue = this.#queues.get(projectId);
    if (!queue) {
      queue = { saving: 0, waiting: new Fifo() };
      this.#queues.set(projectId, queue);
    }
    return queue;
  }

  #end(projectId: ProjectId, queue: PublishQueue, cost: number): void {
    queue.saving -= cost;
    this.#startNext(projectId, queue);
    if (queue.saving > 0 || queue.waiting.length > 0) return;
    queue.pause?.cancel();
    this.#queues.delete(projectId);
  }

  /** Begins the next publishes. With a backlog, only once it is gone or `HOLD_MS` have passed. */
  #startNext(projectId: ProjectId, queue: PublishQueue): void {
    if (queue.pause || queue.waiting.length === 0) return;
    if (!this.#laggingProjects.has(projectId, this.#clock.elapsedMs)) return startNext(queue);
    queue.pause = this.#clock.startTimer(PAUSE_MAX_MS, () => this.#endPause(projectId));
  }

  #endPause(projectId: ProjectId): void {
    const queue = this.#queues.get(projectId);
    if (!queue?.pause) return;
    queue.pause.cancel();
    delete queue.pause;
    startNext(queue);
  }

  #noteRefusal(nowMs: Millis): void {
    if (this.#isClosed) return;
    if (this.#shedding) {
      this.#shedding.count += 1;
      this.#shedding.latestMs = nowMs;
      return;
    }
    this.#log.warn('shedding_started');
    this.#shedding = { sinceMs: nowMs, latestMs: nowMs, count: 1, timer: this.#checkLater(QUIET_MS) };
  }

  #checkLater(delayMs: Millis): Timer {
    return this.#clock.startTimer(delayMs, () => {
      if (!this.#shedding) return;
      const { sinceMs, latestMs, count } = this.#shedding;
      const quietMs = this.#clock.elapsedMs - latestMs;
      if (quietMs < QUIET_MS) {
        this.#shedding.timer = this.#checkLater(QUIET_MS - quietMs);
        return;
      }
      this.#shedding = undefined;
      this.#log.warn('shedding_ended', { count, durationMs: Math.round(latestMs - sinceMs) });
    });
  }
}

/** Resolves when the publish may start; it counts as being saved then. */
function enqueue(queue: PublishQueue, cost: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  queue.waiting.push({ start: resolve, reject }, cost);
  return promise;
}

function startNext(queue: PublishQueue): void {
  const next: QueuedPublish[] = [];
  queue.saving += queue.waiting.takeInto(next, SAVING_MAX - queue.saving);
  for (const { start } of next) start();
}

function rejectQueued(queue: PublishQueue, error: StoreUnavailable): void {
  const queued: QueuedPublish[] = [];
  queue.waiting.takeInto(queued, Infinity);
  for (const { reject } of queued) reject(error);
}

/**
 * After so many publishes saved in a row the trouble is over. One proves nothing: a full disk sometimes has room for
 * one.
 */
const SAVES_TO_RECOVER = 10;
/**
 * After this time a refusal is forgotten: a load balancer that sends no more publishes must try again soon after a
 * failover.
 */
const FAILURE_REMEMBERED_MS = 3_000;

/** Is what clients publish saved, or refused? */
export class IntakeHealth {
  readonly #clock: Pick<Clock, 'elapsedMs'>;
  #refused: { atMs: Millis; error: StoreUnavailable } | undefined;
  #savedSince = SAVES_TO_RECOVER;

  constructor(clock: Pick<Clock, 'elapsedMs'>) {
    this.#clock = clock;
  }

  noteSaved(): void {
    this.#savedSince += 1;
  }

  /** `error`: why a publish was not saved. It counts only when the store could not save it. */
  noteFailure(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) return;
    this.#refused = { atMs: this.#clock.elapsedMs, error };
    this.#savedSince = 0;
  }

  /** Throws `StoreUnavailable` while the store refuses what is published. */
  check(): void {
    if (
      !this.#refused ||
      this.#savedSince >= SAVES_TO_RECOVER ||
      this.#clock.elapsedMs > this.#refused.atMs + FAILURE_REMEMBERED_MS
    )
      return;
    const { reason, detail } = this.#refused.error;
    throw new StoreUnavailable(`what was published last could not be saved: ${reason}`, { detail });
  }
}

/** With fewer under way, of all projects together, nothing is refused: one or two transactions save them all. */
const UNLIMITED_MAX = 128;
/** A limited project may always have so many under way, so that we notice when its accepts become faster. */
const LIMIT_MIN = 4;
/** The longest time that a client is told to wait: older measurements say nothing. */
const RETRY_AFTER_MAX_S = 30;

interface ProjectIntake {
  pending: number;
  /** Refused publishes that are expected to come back: fewer as time passes, at the measured speed. */
  expectedRetries: number;
  expectedRetriesAtMs: Millis;
  /** When the last accept was done; before that, when the first came. */
  latestMs: Millis;
  /** The interval that is being measured: since when, how many were done, and how long the fastest of them took. */
  sinceMs: Millis;
  done: number;
  leastDelayMs: Millis;
  /** Accepts done per millisecond in the last interval in which any was done. */
  rate: number;
  isLimited: boolean;
}

/**
 * Rejects publishes when more arrive than can be saved.
 *
 * The delay of each project is measured separately. Projects take turns, so only the accepts of a project that sends more than its
 * share wait. When all accepts of a project waited longer than the target during an interval, the project is limited: it may then
 * have as many accepts under way as are saved within the target, at the speed of the last interval, and newer publishes are
 * rejected. The limit ends with an interval in which an accept waited at most half the target. Needs times that only grow, such as
 * `Clock.elapsedMs`.
 */
export class Admission {
  readonly #targetMs: Millis;
  readonly #intakes = new Map<ProjectId, ProjectIntake>();
  #pending = 0;

  /** `targetMs`: how long an accept may wait; also the interval. */
  constructor(targetMs: Millis) {
    this.#targetMs = targetMs;
  }

  /** Seconds after which a publish that comes now may try again; `undefined`: it is not refused, and must `enter`. */
  refuse(projectId: ProjectId, nowMs: Millis): number | undefined {
    const intake = this.#intakes.get(projectId);
    if (!intake || this.#pending < UNLIMITED_MAX) return undefined;
    if (!intake.isLimited && !this.#isStalled(intake, nowMs)) return undefined;
    if (intake.pending < Math.max(LIMIT_MIN, intake.rate * this.#targetMs)) return undefined;
    return this.#retryAfterS(intake, nowMs);
  }

  /** An accept is under way from now on. When it ends, with success or not, call `leave` with this time. */
  enter(projectId: ProjectId, nowMs: Millis): void {
    this.#pending += 1;
    const intake = this.#intakes.get(projectId);
    if (intake) {
      intake.pending += 1;
      return;
    }
    this.#intakes.set(projectId, {
      pending: 1,
      expectedRetries: 0,
      expectedRetriesAtMs: nowMs,
      latestMs: nowMs,
      sinceMs: nowMs,
      done: 0,
      leastDelayMs: Infinity,
      rate: 0,
      isLimited: false,
    });
  }

  /** An accept that entered at `enteredMs` is done. */
  leave(projectId: ProjectId, enteredMs: Millis, nowMs: Millis): void {
    const intake = this.#intakes.get(projectId);
    if (!intake) return;
    this.#pending -= 1;
    intake.pending -= 1;
    // A pause says nothing about the speed.
    if (this.#isStalled(intake, nowMs)) startInterval(intake, nowMs);
    intake.latestMs = nowMs;
    intake.done += 1;
    intake.leastDelayMs = Math.min(intake.leastDelayMs, nowMs - enteredMs);
    this.#measure(intake, nowMs);
    if (intake.pending === 0) this.#intakes.delete(projectId);
  }

  /** Whether nothing was done for so long that what is under way must have waited for too long. */
  #isStalled({ latestMs }: ProjectIntake, nowMs: Millis): boolean {
    return nowMs - latestMs >= 2 * this.#targetMs;
  }

  /** Ends the interval, if it is over. */
  #measure(intake: ProjectIntake, nowMs: Millis): void {
    const lengthMs = nowMs - intake.sinceMs;
    if (lengthMs < this.#targetMs) return;
    intake.rate = intake.done / lengthMs;
    if (intake.leastDelayMs > this.#targetMs) intake.isLimited = true;
    else if (intake.leastDelayMs <= this.#targetMs / 2) intake.isLimited = false;
    startInterval(intake, nowMs);
  }

  /** Seconds until those under way, and those refused before, are done at the measured speed. */
  #retryAfterS(intake: ProjectIntake, nowMs: Millis): number {
    const { rate } = intake;
    intake.expectedRetries = 1 + Math.max(0, intake.expectedRetries - rate * (nowMs - intake.expectedRetriesAtMs));
    intake.expectedRetriesAtMs = nowMs;
    const drainedMs = (intake.pending + intake.expectedRetries) / rate; // Infinity, while nothing is done
    return Math.min(RETRY_AFTER_MAX_S, Math.max(1, Math.ceil(drainedMs / 1_000)));
  }
}

function startInterval(intake: ProjectIntake, nowMs: Millis): void {
  intake.sinceMs = nowMs;
  intake.done = 0;
  intake.leastDelayMs = Infinity;
}
