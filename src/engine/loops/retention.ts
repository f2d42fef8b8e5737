/** Drops what is past its retention time, piece by piece, so that no piece is felt by a publish (P13). */
import type { Clock, EventLog, Timer } from '../ports.ts';
import type { EngineSettings } from '../settings.ts';
import { StoreUnavailable } from '../store-errors.ts';
import type { RetentionStore } from '../stores.ts';

/** Rows dropped in one transaction: a few milliseconds of work. */
const PIECE_ROWS = 500;

/** A day after its last use a flow-control key is forgotten (contract M 16.9), which is kept to the hour. */
const KEYS_REMEMBERED_MS = 25 * 3_600_000;

type RetentionSettings = Pick<EngineSettings, 'logRetentionMs' | 'dlqRetentionMs' | 'retentionIntervalMs'>;

export class RetentionLoop {
  readonly #store: { retention: RetentionStore };
  readonly #clock: Clock;
  readonly #log: EventLog;
  readonly #settings: RetentionSettings;
  /** Of the next round; undefined while there is one under way. */
  #timer: Timer | undefined;
  #isHastened = false;
  #round: Promise<void> | undefined;
  #stopped = false;

  constructor(store: { retention: RetentionStore }, clock: Clock, log: EventLog, settings: RetentionSettings) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#settings = settings;
  }

  /** The first round is at once: it goes on with what a crash has cut off, such as the deletion of a queue. */
  start(): void {
    this.#startIn(0);
  }

  /** The next round is at once, for the same reason: somebody else has crashed. One under way may be past what is cut off. */
  hasten(): void {
    this.#isHastened = true;
    if (!this.#timer || this.#stopped) return;
    this.#timer.cancel();
    this.#startIn(0);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#round;
  }

  #startIn(delayMs: number): void {
    this.#timer = this.#clock.startTimer(delayMs, () => {
      this.#timer = undefined;
      this.#isHastened = false;
      this.#round = this.#dropAll().then(() => {
        if (!this.#stopped) this.#startIn(this.#isHastened ? 0 : this.#settings.retentionIntervalMs);
      });
    });
  }

  async #dropAll(): Promise<void> {
    try {
      while (!this.#stopped && (await this.#dropPiece()));
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#log.warn('retention_failed', { reason: error.message }); // the next round goes on where this one ended
    }
  }

  #dropPiece(): Promise<boolean> {
    const nowMs = this.#clock.nowMs();
    const wallMs = this.#clock.wallMs();
    return this.#store.retention.dropExpired({
      logsBeforeMs: wallMs - this.#settings.logRetentionMs,
      deadBeforeMs: wallMs - this.#settings.dlqRetentionMs,
      keysUsedBeforeMs: nowMs - KEYS_REMEMBERED_MS,
      nowMs,
      rowsMax: PIECE_ROWS,
    });
  }
}
