/**
 * Which publishes are turned away when more come than can be saved?
 *
 * By measured delay, of each project for itself: accepts of projects take turns, so whoever sends more than its share
 * waits, and the others do not. A project whose accepts have all waited longer than the target for an interval has more
 * under way than is good for it. From then on it may have as many as are done within the target at the speed of the last
 * interval, and what comes beyond that, the newest, is refused; until accepts wait less than half the target again.
 */
import type { Millis, ProjectId } from '../model.ts';

/** Fewer under way than these, of all projects together, are no queue: a transaction or two take them all. */
const FREE_COUNT = 128;
/** Even a project whose accepts take for ever may have so many under way: it is to be noticed when it gets better. */
const LEAST_COUNT = 4;
/** Nobody is sent away for longer: what was measured a minute ago says nothing. */
const RETRY_AFTER_MAX_S = 30;

interface Intake {
  underWay: number;
  /** Refused publishes that were told to come back and have not had the time to be done. */
  toComeBack: number;
  toComeBackAtMs: Millis;
  /** When one was done; before that, when the first came. */
  latestMs: Millis;
  /** The interval that is being measured: since when, how many were done, and how long the fastest of them took. */
  sinceMs: Millis;
  done: number;
  leastDelayMs: Millis;
  /** Done in a millisecond, in the last interval that told. */
  rate: number;
  isLimited: boolean;
}

/** Given times that only grow, such as `Clock.elapsedMs`. */
export class Admission {
  readonly #targetMs: Millis;
  readonly #intakes = new Map<ProjectId, Intake>();
  #underWay = 0;

  /** `targetMs`: how long an accept may wait; also the interval. */
  constructor(targetMs: Millis) {
    this.#targetMs = targetMs;
  }

  /** Seconds after which one that comes now may try again; `undefined`: it may go on, and is to `enter`. */
  refuse(projectId: ProjectId, nowMs: Millis): number | undefined {
    const intake = this.#intakes.get(projectId);
    if (!intake || this.#underWay < FREE_COUNT) return undefined;
    if (!intake.isLimited && !this.#isStalled(intake, nowMs)) return undefined;
    if (intake.underWay < Math.max(LEAST_COUNT, intake.rate * this.#targetMs)) return undefined;
    return this.#retryAfterS(intake, nowMs);
  }

  /** One is under way from now on; to be followed by `leave` with this time, whatever becomes of it. */
  enter(projectId: ProjectId, nowMs: Millis): void {
    this.#underWay += 1;
    const intake = this.#intakes.get(projectId);
    if (intake) {
      intake.underWay += 1;
      return;
    }
    this.#intakes.set(projectId, {
      underWay: 1,
      toComeBack: 0,
      toComeBackAtMs: nowMs,
      latestMs: nowMs,
      sinceMs: nowMs,
      done: 0,
      leastDelayMs: Infinity,
      rate: 0,
      isLimited: false,
    });
  }

  /** One is done that has entered at `enteredMs`. */
  leave(projectId: ProjectId, enteredMs: Millis, nowMs: Millis): void {
    const intake = this.#intakes.get(projectId);
    if (!intake) return;
    this.#underWay -= 1;
    intake.underWay -= 1;
    // A pause says nothing of the speed.
    if (this.#isStalled(intake, nowMs)) beginInterval(intake, nowMs);
    intake.latestMs = nowMs;
    intake.done += 1;
    intake.leastDelayMs = Math.min(intake.leastDelayMs, nowMs - enteredMs);
    this.#measure(intake, nowMs);
    if (intake.underWay === 0) this.#intakes.delete(projectId);
  }

  /** Whether nothing was done for so long that what is under way must have waited for too long. */
  #isStalled({ latestMs }: Intake, nowMs: Millis): boolean {
    return nowMs - latestMs >= 2 * this.#targetMs;
  }

  /** Ends the interval, if it is over. */
  #measure(intake: Intake, nowMs: Millis): void {
    const lengthMs = nowMs - intake.sinceMs;
    if (lengthMs < this.#targetMs || intake.done === 0) return;
    intake.rate = intake.done / lengthMs;
    if (intake.leastDelayMs > this.#targetMs) intake.isLimited = true;
    else if (intake.leastDelayMs <= this.#targetMs / 2) intake.isLimited = false;
    beginInterval(intake, nowMs);
  }

  /** When those under way, and those that were sent away before, are done at the speed that was measured. */
  #retryAfterS(intake: Intake, nowMs: Millis): number {
    const { rate } = intake;
    intake.toComeBack = 1 + Math.max(0, intake.toComeBack - rate * (nowMs - intake.toComeBackAtMs));
    intake.toComeBackAtMs = nowMs;
    const drainedMs = (intake.underWay + intake.toComeBack) / rate; // Infinity, while nothing is done
    return Math.min(RETRY_AFTER_MAX_S, Math.max(1, Math.ceil(drainedMs / 1_000)));
  }
}

function beginInterval(intake: Intake, nowMs: Millis): void {
  intake.sinceMs = nowMs;
  intake.done = 0;
  intake.leastDelayMs = Infinity;
}
