/**
 * Checks periodically whether the store is filling up or full. A full store cannot save a message, so the operator is
 * notified by a request that is not stored.
 */

import { isSuccess } from '../../protocol/responses.ts';
import type { EngineDeps } from '../deps.ts';
import { Alarm } from '../loops/alarm.ts';
import type { Claimed, Message, Millis } from '../model.ts';
import { StoreFull, StoreUnavailable } from '../store-errors.ts';
import type { OperatorEvents } from './events.ts';
import { NO_PROJECT } from './model.ts';

/** The pause before each of the requests that report a full store. */
const PAUSES_MS = [0, 10_000, 60_000, 600_000];

export class StoreWatch {
  readonly #context: Pick<EngineDeps, 'store' | 'clock' | 'log' | 'delivery' | 'settings'>;
  readonly #events: OperatorEvents;
  readonly #isResponsible: () => boolean;
  readonly #alarm: Alarm;
  readonly #pause: Alarm;
  readonly #abort = new AbortController();
  #round: Promise<void> | undefined;
  #resume = (): void => {};
  #wasFilling = false;
  #isReportingFull = false;
  /** No notification about a full store is sent before this time. */
  #quietUntilMs: Millis = 0;

  /** `isResponsible`: whether this worker does the checks. */
  constructor(
    context: Pick<EngineDeps, 'store' | 'clock' | 'log' | 'delivery' | 'settings'>,
    events: OperatorEvents,
    isResponsible: () => boolean,
  ) {
    this.#context = context;
    this.#events = events;
    this.#isResponsible = isResponsible;
    this.#alarm = new Alarm(context.clock, () => this.#startRound(), 'upkeep');
    this.#pause = new Alarm(context.clock, () => this.#resume(), 'upkeep');
  }

  start(): void {
    const events = this.#events;
    if (events.isPublished('store_filling') || events.isPublished('store_full')) this.#alarm.setIn(0);
  }

  /** Notes a failed command. If the store was full, checks the store now. */
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

  #startRound(): void {
    this.#round = (this.#isResponsible() ? this.#checkStore() : Promise.resolve()).then(() => {
      if (!this.#abort.signal.aborted) this.#alarm.setIn(this.#context.settings.retentionIntervalMs);
    });
  }

  async #checkStore(): Promise<void> {
    const { store, log } = this.#context;
    try {
      await store.ping();
      await this.#checkSize();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      if (error instanceof StoreFull) void this.#reportFull(error.message);
      else log.warn('operator_events_failed', { reason: error.message });
    }
  }

  async #checkSize(): Promise<void> {
    const events = this.#events;
    const { storage, projectId } = events.options;
    const { bytesMax, freeBytesMin } = storage;
    if (!events.isPublished('store_filling')) return;
    const { bytes } = await this.#context.store.backlog.readStorage({ projectId });
    const freeBytes = await this.#freeBytes();
    const isLarge = bytesMax > 0 && bytes > bytesMax;
    const isDiskFilling = freeBytes === undefined ? this.#wasFilling : freeBytes < freeBytesMin;
    const isFilling = isLarge || isDiskFilling;
    const detail = isLarge ? `the database has ${bytes} bytes` : `its disk has ${freeBytes} bytes left`;
    if (isFilling && !this.#wasFilling) await events.note('store_filling', detail);
    this.#wasFilling = isFilling;
  }

  /** Returns the free space, or undefined if the free space could not be read. A failed check is only logged. */
  async #freeBytes(): Promise<number | undefined> {
    const { log } = this.#context;
    try {
      return (await this.#events.options.storage.readFreeBytes?.()) ?? Infinity;
    } catch (error) {
      log.warn('operator_events_failed', { reason: error instanceof Error ? error.message : String(error) });
      return undefined;
    }
  }

  async #reportFull(reason: string): Promise<void> {
    const { clock, log } = this.#context;
    const events = this.#events;
    const atMs = clock.nowMs();
    if (!events.isPublished('store_full') || this.#isReportingFull || atMs < this.#quietUntilMs) return;
    this.#isReportingFull = true;
    const tally = { kind: 'store_full', projectId: NO_PROJECT, count: 1, firstAtMs: atMs, lastAtMs: atMs } as const;
    const message = events.messageOf({ ...tally, example: reason }, 0); // the full store assigns no keys
    let isDelivered = false;
    for (const pauseMs of PAUSES_MS) isDelivered ||= await this.#isDelivered(message, pauseMs);
    if (!isDelivered && !this.#abort.signal.aborted) log.error('operator_not_told', { kind: tally.kind });
    this.#quietUntilMs = clock.nowMs() + events.options.quietMs;
    this.#isReportingFull = false;
  }

  async #isDelivered(message: Message, pauseMs: Millis): Promise<boolean> {
    const { clock, delivery } = this.#context;
    await new Promise<void>((resolve) => {
      this.#resume = resolve;
      if (this.#abort.signal.aborted) resolve();
      else this.#pause.setIn(pauseMs);
    });
    const claimed: Claimed = { message, retried: 0, claimToken: 0, claimedAtMs: clock.nowMs() };
    const outcome = await delivery.attempt(claimed, this.#abort.signal);
    if (outcome.kind !== 'responded') return false;
    outcome.release?.();
    return isSuccess(outcome.status);
  }
}
