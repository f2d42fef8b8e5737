/**
 * Limits how many publishes are being saved at a time, and rejects publishes when more arrive than can be saved.
 *
 * A message that is due at once takes a delivery slot before it is saved, so that it can be sent without a claim. If many
 * publishes waited for the store with a slot each, deliveries would have no slots. All messages would then go through the
 * backlog, which costs more, and more messages would be accepted than delivered. So only a limited number of messages of
 * a project is being saved at a time. Other publishes wait here, without a slot. While deliveries of the project lag
 * (`LaggingProjects`), these publishes also wait until the deliveries catch up. Projects do not wait for each other: a
 * lock that delays one project delays no other project.
 */
import { Overloaded } from '../../protocol/rate-limits.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { Clock, EventLog, Timer } from '../ports.ts';
import { HUNG_MS, StoreUnavailable } from '../store-errors.ts';
import { Fifo } from './fair-queue.ts';
import type { LaggingProjects } from './lagging-projects.ts';

/**
 * The maximum of messages of a project that are being saved at a time: a quarter of the slots of one origin, enough to
 * fill a transaction.
 */
const SAVING_MAX = 64;
/**
 * A publish of many messages counts as this many at most, so that the next publish is ready when the large one is saved.
 */
const SAVING_PER_BATCH_MAX = SAVING_MAX / 4;
/** Load shedding ends after this long without a rejection. Only the start and the end of load shedding are logged. */
const QUIET_MS = 10_000;

/** The longest time that queued publishes wait because deliveries lag. */
const PAUSE_MAX_MS = 250;

export type EndPublish = (error?: unknown) => void;

interface QueuedPublish {
  start: () => void;
  reject: (error: StoreUnavailable) => void;
}

interface PublishQueue {
  /** The cost of the publishes that are being saved, in messages. */
  saving: number;
  waiting: Fifo<QueuedPublish>;
  /** Set while the queued publishes wait because deliveries lag. */
  pause?: Timer;
}

export class PublishGate {
  readonly #clock: Clock;
  readonly #laggingProjects: LaggingProjects;
  readonly #log: EventLog;
  readonly #admission: Admission;
  /** The queues of projects with publishes that are being saved. */
  readonly #queues = new Map<ProjectId, PublishQueue>();
  #isClosed = false;
  #shedding: { sinceMs: Millis; latestMs: Millis; count: number; timer: Timer } | undefined;

  constructor(clock: Clock, log: EventLog, delayTargetMs: Millis, laggingProjects: LaggingProjects) {
    this.#clock = clock;
    this.#log = log;
    this.#laggingProjects = laggingProjects;
    laggingProjects.listen((projectId) => this.#endPause(projectId));
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
   * Admits a publish of `count` messages when the publishes before it in the project's queue have been admitted. The caller
   * calls the returned function when saving has ended, with the error if it failed. Throws `Overloaded`.
   */
  enter(projectId: ProjectId, count: number): EndPublish | Promise<EndPublish> {
    this.check(projectId);
    const enteredMs = this.#clock.elapsedMs;
    const cost = Math.min(count, SAVING_PER_BATCH_MAX);
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

  /** Stops the timer that logs the end of load shedding, because the server ends. */
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

  /**
   * Starts the next publishes. While deliveries lag, waits until deliveries have caught up or `PAUSE_MAX_MS` have passed.
   */
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

/** Resolves when the publish may start. The publish then counts as being saved. */
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
 * After this many successful saves in a row the store has recovered. One save is not enough, since a full disk sometimes
 * has space for one message.
 */
const SAVES_TO_RECOVER = 10;
/** A failure is forgotten after this time: a load balancer that sends no more publishes must try again soon after a failover. */
const FAILURE_REMEMBERED_MS = 3_000;

/** Whether the store saves publishes, for the health check. */
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

  /** `error`: why a publish was not saved. The failure counts only if the store could not save the publish. */
  noteFailure(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) return;
    this.#refused = { atMs: this.#clock.elapsedMs, error };
    this.#savedSince = 0;
  }

  /** Throws `StoreUnavailable` while the store does not save publishes. */
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

/**
 * While fewer publishes than this are pending in all projects together, no publish is rejected: one or two transactions
 * save all of them.
 */
const UNLIMITED_MAX = 128;
/**
 * A limited project may always have this many publishes pending, so that the server notices when saving becomes faster.
 */
const LIMIT_MIN = 4;
/** The longest time that a client is asked to wait, because the measured rate means nothing after a longer time. */
const RETRY_AFTER_MAX_S = 30;

interface ProjectIntake {
  pending: number;
  /** Rejected publishes whose retry is expected: fewer as time passes, at the measured rate. */
  expectedRetries: number;
  expectedRetriesAtMs: Millis;
  /** When the last publish ended. Until a publish has ended, the time when the first publish entered. */
  latestMs: Millis;
  /**
   * The current interval: its start, the publishes that ended in this interval, and the delay of the fastest of these
   * publishes.
   */
  sinceMs: Millis;
  done: number;
  leastDelayMs: Millis;
  /** Publishes per millisecond that ended in the last interval with such a publish. */
  rate: number;
  isLimited: boolean;
}

/**
 * Rejects publishes when more arrive than can be saved.
 *
 * The delay of each project is measured separately. Projects are served round-robin, so only a project that sends more than its
 * share waits. When all publishes of a project waited longer than the target during an interval, the project is limited: it may
 * then have as many publishes pending as are saved within the target at the rate of the last interval, and newer ones are
 * rejected. The limit ends with an interval in which a publish waited at most half the target. Needs monotonic times, such as
 * `Clock.elapsedMs`.
 */
export class Admission {
  readonly #targetMs: Millis;
  readonly #intakes = new Map<ProjectId, ProjectIntake>();
  #pending = 0;

  /** `targetMs`: how long a publish may wait; also the length of an interval. */
  constructor(targetMs: Millis) {
    this.#targetMs = targetMs;
  }

  /**
   * Returns the seconds after which a publish that comes now may be retried, or undefined if it is not rejected: then the
   * caller must call `enter`.
   */
  refuse(projectId: ProjectId, nowMs: Millis): number | undefined {
    const intake = this.#intakes.get(projectId);
    if (!intake || this.#pending < UNLIMITED_MAX) return undefined;
    if (!intake.isLimited && !this.#isStalled(intake, nowMs)) return undefined;
    if (intake.pending < Math.max(LIMIT_MIN, intake.rate * this.#targetMs)) return undefined;
    return this.#retryAfterS(intake, nowMs);
  }

  /**
   * Notes that a publish is pending from now on. When the publish ends, with success or not, call `leave` with the same
   * time.
   */
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

  /** The publish that entered at `enteredMs` has ended. */
  leave(projectId: ProjectId, enteredMs: Millis, nowMs: Millis): void {
    const intake = this.#intakes.get(projectId);
    if (!intake) return;
    this.#pending -= 1;
    intake.pending -= 1;
    // The time without an ended publish says nothing about the rate, so a new interval starts.
    if (this.#isStalled(intake, nowMs)) startInterval(intake, nowMs);
    intake.latestMs = nowMs;
    intake.done += 1;
    intake.leastDelayMs = Math.min(intake.leastDelayMs, nowMs - enteredMs);
    this.#measure(intake, nowMs);
    if (intake.pending === 0) this.#intakes.delete(projectId);
  }

  /** Whether nothing has ended for so long that all pending publishes have exceeded the target. */
  #isStalled({ latestMs }: ProjectIntake, nowMs: Millis): boolean {
    return nowMs - latestMs >= 2 * this.#targetMs;
  }

  /** Ends the interval if it is as long as the target. */
  #measure(intake: ProjectIntake, nowMs: Millis): void {
    const lengthMs = nowMs - intake.sinceMs;
    if (lengthMs < this.#targetMs) return;
    intake.rate = intake.done / lengthMs;
    if (intake.leastDelayMs > this.#targetMs) intake.isLimited = true;
    else if (intake.leastDelayMs <= this.#targetMs / 2) intake.isLimited = false;
    startInterval(intake, nowMs);
  }

  /**
   * Seconds until the pending publishes, and the expected retries of rejected publishes, are done at the measured rate.
   */
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
