/**
 * Looks at the store now and then: does it fill up, is it full? A full store takes no message, so the operator is told of
 * it by a request that is kept nowhere.
 */

import { isSuccess } from '../../protocol/success.ts';
import type { Store } from '../../store/store.ts';
import { Alarm } from '../alarm.ts';
import type { Claimed, Message, Millis } from '../model.ts';
import type { Clock, Delivery, EventLog } from '../ports.ts';
import { StoreFull, StoreUnavailable } from '../store-errors.ts';
import type { OperatorEvents } from './events.ts';
import { NO_PROJECT, type OperatorEventsOptions } from './model.ts';

/** Before each request that tells of a full store. */
const PAUSES_MS = [0, 10_000, 60_000, 600_000];

export interface StoreWatchDeps {
  store: { backlog: Pick<Store['backlog'], 'readStorage'>; ping: Store['ping'] };
  clock: Clock;
  log: EventLog;
  delivery: Delivery;
  events: OperatorEvents;
  options: OperatorEventsOptions;
  /** Pause between two looks. */
  everyMs: Millis;
  /** Whether it is this worker that looks. */
  isTurn: () => boolean;
}

export class StoreWatch {
  readonly #deps: StoreWatchDeps;
  readonly #alarm: Alarm;
  readonly #pause: Alarm;
  readonly #abort = new AbortController();
  #round: Promise<void> | undefined;
  #resume = (): void => {};
  #wasFilling = false;
  #isTelling = false;
  /** Of a full store nothing is told before. */
  #quietUntilMs: Millis = 0;

  constructor(deps: StoreWatchDeps) {
    this.#deps = deps;
    this.#alarm = new Alarm(deps.clock, () => this.#begin(), 'upkeep');
    this.#pause = new Alarm(deps.clock, () => this.#resume(), 'upkeep');
  }

  start(): void {
    const { events } = this.#deps;
    if (events.isTold('store_filling') || events.isTold('store_full')) this.#alarm.setIn(0);
  }

  /** A command failed. A full store is looked at now rather than later. */
  noteFailure(error: unknown): void {
    if (error instanceof StoreFull && this.#alarm.isSet) this.#alarm.setIn(0);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#alarm.cancel();
    this.#pause.cancel();
    this.#resume();
    await this.#round;
  }

  #begin(): void {
    const { everyMs, isTurn } = this.#deps;
    this.#round = (isTurn() ? this.#look() : Promise.resolve()).then(() => {
      if (!this.#abort.signal.aborted) this.#alarm.setIn(everyMs);
    });
  }

  async #look(): Promise<void> {
    const { store, log } = this.#deps;
    try {
      await store.ping();
      await this.#lookAtSize();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      if (error instanceof StoreFull) void this.#tellFull(error.message);
      else log.warn('operator_events_failed', { reason: error.message });
    }
  }

  async #lookAtSize(): Promise<void> {
    const { store, events, options } = this.#deps;
    const { bytesMax, freeBytesMin } = options.storage;
    if (!events.isTold('store_filling')) return;
    const { bytes } = await store.backlog.readStorage({ projectId: options.projectId });
    const free = await this.#freeBytes();
    const isLarge = bytesMax > 0 && bytes > bytesMax;
    const isDiskFilling = free === undefined ? this.#wasFilling : free < freeBytesMin;
    const isFilling = isLarge || isDiskFilling;
    const what = isLarge ? `the database has ${bytes} bytes` : `its disk has ${free} bytes left`;
    if (isFilling && !this.#wasFilling) await events.note('store_filling', what);
    this.#wasFilling = isFilling;
  }

  /** `undefined`: the disk could not be asked. A look that fails ends no server. */
  async #freeBytes(): Promise<number | undefined> {
    const { log, options } = this.#deps;
    try {
      return (await options.storage.readFreeBytes?.()) ?? Infinity;
    } catch (error) {
      log.warn('operator_events_failed', { reason: error instanceof Error ? error.message : String(error) });
      return undefined;
    }
  }

  async #tellFull(reason: string): Promise<void> {
    const { clock, log, events, options } = this.#deps;
    const atMs = clock.nowMs();
    if (!events.isTold('store_full') || this.#isTelling || atMs < this.#quietUntilMs) return;
    this.#isTelling = true;
    const tally = { kind: 'store_full', projectId: NO_PROJECT, count: 1, firstAtMs: atMs, lastAtMs: atMs } as const;
    const message = events.messageOf({ ...tally, example: reason }, 0); // keys come from the store too
    let isTold = false;
    for (const pauseMs of PAUSES_MS) isTold ||= await this.#isTaken(message, pauseMs);
    if (!isTold && !this.#abort.signal.aborted) log.error('operator_not_told', { kind: tally.kind });
    this.#quietUntilMs = clock.nowMs() + options.quietMs;
    this.#isTelling = false;
  }

  async #isTaken(message: Message, pauseMs: Millis): Promise<boolean> {
    const { clock, delivery } = this.#deps;
    await new Promise<void>((resolve) => {
      this.#resume = resolve;
      if (this.#abort.signal.aborted) resolve();
      else this.#pause.setIn(pauseMs);
    });
    const claimed: Claimed = { message, retried: 0, claimToken: 0, claimedAtMs: clock.nowMs() };
    const outcome = await delivery.attempt(claimed, this.#abort.signal);
    if (outcome.kind !== 'answered') return false;
    outcome.release?.();
    return isSuccess(outcome.status);
  }
}
