/**
 * Of several commands that would move the same project, one does. It says every second in the directory that it goes on;
 * another one takes over when it has been silent, as after a crash.
 */

import type { ProjectMove } from '../../engine/accounts/store.ts';
import type { ProjectId } from '../../engine/model.ts';
import type { Clock, Timer } from '../../engine/ports.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import type { Driver } from '../../store/driver.ts';
import { MoveRefused } from '../../store/move/progress.ts';
import type { Store } from '../../store/store.ts';
import { takenOver } from './mover.ts';

const RENEW_EVERY_MS = 1_000;
/** Who has been silent for this long is gone. */
export const GONE_AFTER_MS = 5_000;
/** In place of when a command has said that it goes on: nobody does, and its project is served. */
export const RELEASED_MS = 0;
/** Who has said it no longer ago than this is not asked whether another one has taken over. */
const FRESH_MS = 3_000;
const RETRY_EVERY_MS = 200;

/** Whether the command that moves the project has ended before it was done. */
export function isStuck({ seenAtMs }: Pick<ProjectMove, 'seenAtMs'>, nowMs: number): boolean {
  return seenAtMs < nowMs - GONE_AFTER_MS;
}

export class MoveLease {
  readonly #moves: Store['moves'];
  readonly #clock: Clock;
  readonly #projectId: ProjectId;
  readonly #mover: string;
  #renewedAtMs: number;
  #timer: Timer | undefined;
  #round: Promise<void> | undefined;

  private constructor(moves: Store['moves'], clock: Clock, projectId: ProjectId, mover: string) {
    this.#moves = moves;
    this.#clock = clock;
    this.#projectId = projectId;
    this.#mover = mover;
    this.#renewedAtMs = clock.elapsedMs;
    this.#scheduleRenewal();
  }

  /** Of a move that has begun. Waits until an earlier command is known to be gone. Throws `MoveRefused` when it goes on. */
  static async take(moves: Store['moves'], clock: Clock, projectId: ProjectId, mover: string): Promise<MoveLease> {
    const untilMs = clock.elapsedMs + GONE_AFTER_MS + RENEW_EVERY_MS;
    for (;;) {
      const nowMs = clock.wallMs();
      if (await moves.keepMove({ projectId, mover, nowMs, goneBeforeMs: nowMs - GONE_AFTER_MS }))
        return new MoveLease(moves, clock, projectId, mover);
      if (!(await moves.findMove({ projectId }))) throw new MoveRefused('the move has ended');
      if (clock.elapsedMs > untilMs) throw new MoveRefused('another command moves the project');
      await new Promise<void>((resolve) => clock.startTimer(RETRY_EVERY_MS, resolve));
    }
  }

  /** The same database, in which nothing is written once another command has taken over: `MoveRefused` is thrown. */
  guard(driver: Driver): Driver {
    return {
      dialect: driver.dialect,
      transaction: async (work, options) => {
        if (this.#ageMs > FRESH_MS) await this.#renew();
        return driver.transaction((tx) => {
          if (this.#ageMs > GONE_AFTER_MS) throw new MoveRefused('this command stood still; run it again');
          return work(tx);
        }, options);
      },
      read: (work) => driver.read(work),
      close: () => driver.close(),
    };
  }

  /** Lets others take over. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#round;
  }

  get #ageMs(): number {
    return this.#clock.elapsedMs - this.#renewedAtMs;
  }

  async #renew(): Promise<void> {
    const startedMs = this.#clock.elapsedMs;
    const kept = { projectId: this.#projectId, mover: this.#mover, nowMs: this.#clock.wallMs() };
    if (!(await this.#moves.keepMove(kept))) throw takenOver();
    this.#renewedAtMs = startedMs;
  }

  #scheduleRenewal(): void {
    this.#timer = this.#clock.startTimer(RENEW_EVERY_MS, () => {
      this.#round = this.#renew()
        .catch((error: unknown) => {
          // It is found out again by whatever is written next.
          if (!(error instanceof MoveRefused || error instanceof StoreUnavailable)) throw error;
        })
        .then(() => {
          if (this.#timer) this.#scheduleRenewal();
        });
    });
  }
}
