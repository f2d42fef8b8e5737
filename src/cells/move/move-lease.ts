/**
 * The lease that lets only one command move a project. The command renews its lease in the directory every second;
 * another command takes over when the lease has expired, as after a crash.
 */

import type { ProjectMove } from '../../engine/accounts/store.ts';
import type { ProjectId } from '../../engine/model.ts';
import type { Clock, Timer } from '../../engine/ports.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import type { Driver } from '../../store/driver.ts';
import { MoveRefused } from '../../store/move/progress.ts';
import type { Store } from '../../store/store.ts';
import { takenOverError } from './mover-check.ts';

const RENEW_EVERY_MS = 1_000;
/** A lease that was not renewed for this long has expired. */
export const LEASE_MS = 5_000;
/** The renewal time that marks a released lease: no command holds the lease, and the project is not paused. */
export const RELEASED_MS = 0;
/** A lease that was renewed within this time needs no renewal before a transaction. */
const FRESH_MS = 3_000;
const RETRY_EVERY_MS = 200;

/** Whether the command that moves the project has ended before the move was done. */
export function isStuck({ renewedAtMs }: Pick<ProjectMove, 'renewedAtMs'>, nowMs: number): boolean {
  return renewedAtMs < nowMs - LEASE_MS;
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

  /**
   * Takes the lease of a started move once the lease has expired. Throws `MoveRefused` if another command renews the
   * lease.
   */
  static async take(moves: Store['moves'], clock: Clock, projectId: ProjectId, mover: string): Promise<MoveLease> {
    const untilMs = clock.elapsedMs + LEASE_MS + RENEW_EVERY_MS;
    for (;;) {
      const nowMs = clock.wallMs();
      if (await moves.renewMove({ projectId, mover, nowMs, expiredBeforeMs: nowMs - LEASE_MS }))
        return new MoveLease(moves, clock, projectId, mover);
      if (!(await moves.findMove({ projectId }))) throw new MoveRefused('the move has ended');
      if (clock.elapsedMs > untilMs) throw new MoveRefused('another command moves the project');
      await new Promise<void>((resolve) => clock.startTimer(RETRY_EVERY_MS, resolve));
    }
  }

  /** Returns the database with transactions that throw `MoveRefused` once another command may have taken over. */
  guard(driver: Driver): Driver {
    return {
      dialect: driver.dialect,
      transaction: async (work, options) => {
        if (this.#ageMs > FRESH_MS) await this.#renew();
        return driver.transaction((tx) => {
          if (this.#ageMs > LEASE_MS) throw new MoveRefused('this command was suspended for too long; run it again');
          return work(tx);
        }, options);
      },
      read: (work) => driver.read(work),
      close: () => driver.close(),
    };
  }

  /** Stops the renewal, so that another command can take over once the lease has expired. */
  async stopRenewal(): Promise<void> {
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
    if (!(await this.#moves.renewMove(kept))) throw takenOverError();
    this.#renewedAtMs = startedMs;
  }

  #scheduleRenewal(): void {
    this.#timer = this.#clock.startTimer(RENEW_EVERY_MS, () => {
      this.#round = this.#renew()
        .catch((error: unknown) => {
          // The next transaction tries to renew the lease again, and throws the error.
          if (!(error instanceof MoveRefused || error instanceof StoreUnavailable)) throw error;
        })
        .then(() => {
          if (this.#timer) this.#scheduleRenewal();
        });
    });
  }
}
