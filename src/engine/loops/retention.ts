/** Deletes rows past their retention time, in batches so small that no publish notices them (P13). */
import type { Store } from '../../store/store.ts';
import type { EngineDeps } from '../deps.ts';
import { StoreUnavailable } from '../store-errors.ts';
import { Alarm } from './alarm.ts';

/** The maximum of rows that are deleted in one transaction: a few milliseconds of work. */
const BATCH_ROWS = 500;

/**
 * A flow-control key is forgotten a day after its last use (contract M 16.9). The time of this use is exact to an hour.
 */
const KEYS_REMEMBERED_MS = 25 * 3_600_000;

/** The counts by minute are kept as long as logs, but no longer than this, so that a project has at most 43,200 rows. */
const MINUTES_KEPT_MS = 30 * 24 * 3_600_000;

type RetentionContext = Pick<EngineDeps, 'clock' | 'log' | 'settings'> & { store: Pick<Store, 'retention'> };

export class RetentionLoop {
  readonly #context: RetentionContext;
  /** Starts the next round. Not set during a round. */
  readonly #alarm: Alarm;
  #isHastened = false;
  #round: Promise<void> | undefined;
  #stopped = false;

  constructor(context: RetentionContext) {
    this.#context = context;
    this.#alarm = new Alarm(context.clock, () => this.#startRound(), 'upkeep');
  }

  /** Starts the first round at once, to finish work that a crash interrupted, such as the deletion of a queue. */
  start(): void {
    this.#alarm.setIn(0);
  }

  /**
   * Starts the next round at once, because another worker has crashed. The current round may have passed the rows that
   * the crashed worker left unfinished.
   */
  hasten(): void {
    this.#isHastened = true;
    if (this.#alarm.isSet) this.#alarm.setIn(0);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#alarm.cancel();
    await this.#round;
  }

  #startRound(): void {
    this.#isHastened = false;
    this.#round = this.#dropAll().then(() => {
      if (!this.#stopped) this.#alarm.setIn(this.#isHastened ? 0 : this.#context.settings.retentionIntervalMs);
    });
  }

  async #dropAll(): Promise<void> {
    try {
      while (!this.#stopped && (await this.#dropBatch()));
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#context.log.warn('retention_failed', { reason: error.message }); // the next round continues where this one ended
    }
  }

  #dropBatch(): Promise<boolean> {
    const { store, clock, settings } = this.#context;
    const nowMs = clock.nowMs();
    const wallMs = clock.wallMs();
    return store.retention.dropExpired({
      logsBeforeMs: wallMs - settings.logRetentionMs,
      deadBeforeMs: wallMs - settings.dlqRetentionMs,
      minutesBeforeMs: wallMs - Math.min(settings.logRetentionMs, MINUTES_KEPT_MS),
      keysUsedBeforeMs: nowMs - KEYS_REMEMBERED_MS,
      nowMs,
      leadMs: clock.leadMs,
      rowsMax: BATCH_ROWS,
    });
  }
}
