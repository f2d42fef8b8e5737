/**
 * Limits the connections of each store where several stores share a server: a store may use half of the connections that
 * the other stores do not use. Otherwise a store whose statements all wait for a lock would take every connection and
 * block the other stores.
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
  readonly #acquiredBy = new Map<User, number>();
  #acquired = 0;
  #waiters: Waiter[] = [];

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
    if (this.#mayAcquire(user)) return this.#count(user, 1);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { user, resolve };
    this.#waiters.push(waiter);
    const timer = this.#clock.startTimer(
      this.#timeoutMs,
      () => {
        this.#waiters = this.#waiters.filter((each) => each !== waiter);
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
    for (const waiter of [...this.#waiters]) {
      if (!this.#mayAcquire(waiter.user)) continue;
      this.#waiters = this.#waiters.filter((each) => each !== waiter);
      this.#count(waiter.user, 1);
      waiter.resolve();
    }
  }

  #mayAcquire(user: User): boolean {
    if (this.#users.size < 2) return true;
    const acquired = this.#acquiredBy.get(user) ?? 0;
    const available = this.#connectionsMax - (this.#acquired - acquired);
    return acquired < Math.ceil(available / 2);
  }

  #count(user: User, change: 1 | -1): void {
    this.#acquired += change;
    const acquired = (this.#acquiredBy.get(user) ?? 0) + change;
    if (acquired === 0) this.#acquiredBy.delete(user);
    else this.#acquiredBy.set(user, acquired);
  }
}
