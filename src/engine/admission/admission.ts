/**
 * Which publishes are turned away when more come than can be saved?
 *
 * The delay of each project is measured by itself. The accepts of projects take turns, so only those of a project that
 * sends more than its share wait. When all accepts of a project waited longer than the target during an interval, the
 * project is limited. It may then have as many accepts under way as are done within the target, at the speed of the
 * last interval. Newer publishes are refused. The limit ends with an interval in which an accept waited at most half
 * the target.
 */
import type { Millis, ProjectId } from '../model.ts';

/** With fewer under way, of all projects together, nothing is refused: one or two transactions save them all. */
const FREE_COUNT = 128;
/** A limited project may always have so many under way, so that we notice when its accepts become faster. */
const LEAST_COUNT = 4;
/** The longest time that a client is told to wait: older measurements say nothing. */
const RETRY_AFTER_MAX_S = 30;

interface Intake {
  underWay: number;
  /** Refused publishes that are expected to come back: fewer as time passes, at the measured speed. */
  toComeBack: number;
  toComeBackAtMs: Millis;
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

/** Needs times that only grow, such as `Clock.elapsedMs`. */
export class Admission {
  readonly #targetMs: Millis;
  readonly #intakes = new Map<ProjectId, Intake>();
  #underWay = 0;

  /** `targetMs`: how long an accept may wait; also the interval. */
  constructor(targetMs: Millis) {
    this.#targetMs = targetMs;
  }

  /** Seconds after which a publish that comes now may try again; `undefined`: it is not refused, and must `enter`. */
  refuse(projectId: ProjectId, nowMs: Millis): number | undefined {
    const intake = this.#intakes.get(projectId);
    if (!intake || this.#underWay < FREE_COUNT) return undefined;
    if (!intake.isLimited && !this.#isStalled(intake, nowMs)) return undefined;
    if (intake.underWay < Math.max(LEAST_COUNT, intake.rate * this.#targetMs)) return undefined;
    return this.#retryAfterS(intake, nowMs);
  }

  /** An accept is under way from now on. When it ends, with success or not, call `leave` with this time. */
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

  /** An accept that entered at `enteredMs` is done. */
  leave(projectId: ProjectId, enteredMs: Millis, nowMs: Millis): void {
    const intake = this.#intakes.get(projectId);
    if (!intake) return;
    this.#underWay -= 1;
    intake.underWay -= 1;
    // A pause says nothing about the speed.
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
    if (lengthMs < this.#targetMs) return;
    intake.rate = intake.done / lengthMs;
    if (intake.leastDelayMs > this.#targetMs) intake.isLimited = true;
    else if (intake.leastDelayMs <= this.#targetMs / 2) intake.isLimited = false;
    beginInterval(intake, nowMs);
  }

  /** Seconds until those under way, and those refused before, are done at the measured speed. */
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
