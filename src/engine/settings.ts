/** The engine's share of the settings table in `config`; each default is explained there. */
import type { Millis } from './model.ts';

export interface EngineSettings {
  /** Delivery slots: attempts at most that are being sent or about to be answered, over all origins. */
  inFlightMax: number;
  /** Attempts in flight at most to one origin. */
  inFlightPerOriginMax: number;
  /** Attempts at most that have had no outcome for two seconds, beside those of `inFlightMax`. Default: eight times these. */
  silentMax?: number;
  /** Body bytes of messages in flight at most. */
  inFlightBytesMax: number;
  /** How long a deduplication id is remembered. */
  deduplicationWindowMs: Millis;
  /** How long a delivered message can still be fetched by id. */
  deliveredGraceMs: Millis;
  logRetentionMs: Millis;
  dlqRetentionMs: Millis;
  /** Pause between two rounds of dropping what is past its time. */
  retentionIntervalMs: Millis;
  /** How long publishes may wait to be saved before some are answered 503. */
  publishDelayTargetMs: Millis;
  /** Delivered bodies of more bytes are not sent; the endpoint fetches them, if it can (contract W 8.3). */
  lazyFetchBytes: number;
  /** Entries of a revived run in one transaction, and waiters that are read together; only tests set it. */
  togetherMax?: number;
  /** Lines of origins of a project in memory, the proven ones not counted; only tests set it. */
  backlogsMax?: number;
}
