/**
 * Limits the connections of each store where several stores share a server: a store may have half of those that the others do
 * not use. Otherwise a store whose statements all wait for a lock would take every connection and block the other stores.
 */
import type { Clock } from '../../../../engine/ports.ts';
import type { ServerContext } from '../context.ts';
import { classify } from '../failures.ts';

/** A store. */
type User = object;

interface Waiter {
  user: User;
  resolve: () => void;
}

export class FairSemaphore {
  readonly #connectionsMax: number;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #users = new Set<User>();
  readonly #heldBy = new Map<User, number>();
  #held = 0;
  #waiting: Waiter[] = [];

  constructor({ connectionsMax, timeoutMs, clock }: ServerContext) {
    this.#connectionsMax = connectionsMax;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  join(user: User): void {
    this.#users.add(user);
  }

  /** Returns the number of remaining users. */
  leave(user: User): number {
    this.#users.delete(user);
    return this.#users.size;
  }

  /** Resolves when the user has a permit. Rejects after the timeout. */
  async acquire(user: User): Promise<void> {
    if (this.#mayTake(user)) return this.#count(user, 1);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = { user, resolve };
    this.#waiting.push(waiting);
    const timer = this.#clock.startTimer(
      this.#timeoutMs,
      () => {
        this.#waiting = this.#waiting.filter((each) => each !== waiting);
        reject(new Error('timeout exceeded when trying to connect'));
      },
      'outside',
    );
    await promise.finally(() => timer.cancel());
  }

  /** Runs `work` with a permit, as a user of its own. Throws `StoreUnavailable` when no permit is free in time. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const user = {};
    this.join(user);
    try {
      await this.acquire(user).catch((error: unknown) => {
        throw classify(error);
      });
      return await work().finally(() => this.release(user));
    } finally {
      this.leave(user);
    }
  }

  release(user: User): void {
    this.#count(user, -1);
    for (const waiting of [...this.#waiting]) {
      if (!this.#mayTake(waiting.user)) continue;
      this.#waiting = this.#waiting.filter((each) => each !== waiting);
      this.#count(waiting.user, 1);
      waiting.resolve();
    }
  }

  #mayTake(user: User): boolean {
    if (this.#users.size < 2) return true;
    const held = this.#heldBy.get(user) ?? 0;
    const left = this.#connectionsMax - (this.#held - held);
    return held < Math.ceil(left / 2);
  }

  #count(user: User, change: 1 | -1): void {
    this.#held += change;
    const held = (this.#heldBy.get(user) ?? 0) + change;
    if (held === 0) this.#heldBy.delete(user);
    else this.#heldBy.set(user, held);
  }
}
