/**
 * When does a publish begin to be saved, and which are turned away?
 *
 * The event loop hears every socket that has something to say before it goes on, so that many publishers would leave it
 * little time for deliveries: all that a delivery waits for (a claim, a connection, an answer, its settle) is heard once in
 * a turn. So only so many publishes begin in one turn, and turns stay short. The rest waits here, each project in its turn.
 */
import { Overloaded } from '../protocol/rate-limits.ts';
import { Admission } from './admission.ts';
import type { Millis, ProjectId } from './model.ts';
import type { Clock, EventLog, Timer } from './ports.ts';
import { ProjectTurns } from './project-turns.ts';

/** Messages of publishes that begin in one turn of the event loop: a few milliseconds of work. */
const BEGUN_PER_TURN = 32;
/** Nothing was refused for so long: it is over. The operator hears of the begin and of the end, not of each refusal. */
const QUIET_MS = 10_000;

interface PublishGateDeps {
  clock: Clock;
  log: EventLog;
  settings: { publishDelayTargetMs: Millis };
  /** Resolves when the event loop has heard what there is. Default: the end of the microtasks. */
  endOfTurn?: () => Promise<void>;
}

export class PublishGate {
  readonly #clock: Clock;
  readonly #log: EventLog;
  readonly #endOfTurn: () => Promise<void>;
  readonly #admission: Admission;
  readonly #waiting = new ProjectTurns<() => void>();
  /** In this turn of the event loop. */
  #begun = 0;
  #isTurning = false;
  #shedding: { sinceMs: Millis; latestMs: Millis; count: number; timer: Timer } | undefined;

  constructor({ clock, log, settings, endOfTurn = () => Promise.resolve() }: PublishGateDeps) {
    this.#clock = clock;
    this.#log = log;
    this.#endOfTurn = endOfTurn;
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
    this.#admission.enter(projectId, enteredMs);
    try {
      const turn = this.#takeTurn(projectId, count);
      if (turn !== undefined) await turn;
      return await save();
    } finally {
      this.#admission.leave(projectId, enteredMs, this.#clock.elapsedMs);
    }
  }

  /** `undefined`: now. */
  #takeTurn(projectId: ProjectId, count: number): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#begun < BEGUN_PER_TURN) {
      this.#begun += count;
      void this.#turn();
      return undefined;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(projectId, resolve, count);
    return promise;
  }

  /** One turn of the event loop after the other, while publishes come. */
  async #turn(): Promise<void> {
    if (this.#isTurning) return;
    this.#isTurning = true;
    while (this.#begun > 0) {
      await this.#endOfTurn();
      const begins: (() => void)[] = [];
      this.#begun = this.#waiting.takeInto(begins, BEGUN_PER_TURN);
      for (const begin of begins) begin();
    }
    this.#isTurning = false;
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
