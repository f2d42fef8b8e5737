/** How does held time pass? From timer to timer, and at each it stands still until nothing is left to do. */
import type { Millis } from '../engine/model.ts';
import type { TimerKind } from '../engine/ports.ts';
import { endOfTurn } from '../system/system.ts';
import type { HeldClock } from './held-clock.ts';

/**
 * With the store in this process, only what goes over the network takes more than a few turns of the event loop, and that
 * is known: after this many turns without any, nothing more happens by itself.
 */
const QUIET_TURNS = 10;

export class Passage {
  readonly #clock: HeldClock;
  readonly #underWay: () => Promise<unknown> | undefined;
  /** Ends when time has passed for all who have asked. */
  #turn: Promise<unknown> = Promise.resolve();

  /** `underWay` answers `undefined` when nothing is, and otherwise what resolves when to look again. */
  constructor(clock: HeldClock, underWay: () => Promise<unknown> | undefined) {
    this.#clock = clock;
    this.#underWay = underWay;
  }

  nowMs(): Millis {
    return this.#clock.nowMs();
  }

  /** Whether only timers of upkeep are left. */
  get isIdle(): boolean {
    return this.#clock.nextTimerAtMs('work') === undefined;
  }

  /** Lets time pass, and everything happen that falls due on the way. */
  advance(ms: Millis): Promise<void> {
    return this.#inTurn(() => this.#to(this.#clock.nowMs() + ms));
  }

  /** Lets time pass until all is idle. Answers false when `limitMs` pass before. */
  runUntilIdle(limitMs: Millis): Promise<boolean> {
    return this.#inTurn(() => this.#toEndOfWork(this.#clock.nowMs() + limitMs));
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  /** Resolves once nothing is left to do before time passes. */
  async quiet(): Promise<void> {
    for (let turns = 0; turns < QUIET_TURNS; turns += 1) {
      await endOfTurn();
      const more = this.#underWay();
      if (more === undefined) continue;
      await more;
      turns = -1;
    }
  }

  async #to(untilMs: Millis): Promise<void> {
    await this.quiet();
    while (await this.toNextTimer(untilMs));
    this.#clock.advanceTo(untilMs);
    await this.quiet();
  }

  async #toEndOfWork(untilMs: Millis): Promise<boolean> {
    await this.quiet();
    while (!this.isIdle) {
      if (!(await this.toNextTimer(untilMs, 'work'))) return false;
    }
    return true;
  }

  /** Fires the next timer, unless the next of that kind comes after `untilMs`; whether it has. */
  async toNextTimer(untilMs: Millis, kind?: TimerKind): Promise<boolean> {
    const wantedAtMs = this.#clock.nextTimerAtMs(kind);
    const atMs = this.#clock.nextTimerAtMs();
    if (atMs === undefined || wantedAtMs === undefined || wantedAtMs > untilMs) return false;
    this.#clock.advanceTo(atMs);
    await this.quiet();
    return true;
  }
}
