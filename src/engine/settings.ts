/** The settings of the engine. `config` explains each default. */
import type { Millis } from './model.ts';

export interface EngineSettings {
  /** Delivery slots: the maximum of attempts in flight to all origins, without the silent attempts. */
  inFlightMax: number;
  /** The maximum of attempts in flight to one origin. */
  inFlightPerOriginMax: number;
  /** The maximum of silent attempts, in addition to `inFlightMax`. Default: eight times `inFlightMax`. */
  silentMax?: number;
  /** The maximum of body bytes of messages in flight. */
  inFlightBytesMax: number;
  /** How long a deduplication id is remembered. */
  deduplicationWindowMs: Millis;
  /** How long a delivered message can still be fetched by id. */
  deliveredGraceMs: Millis;
  logRetentionMs: Millis;
  dlqRetentionMs: Millis;
  /** The pause between two rounds of retention. */
  retentionIntervalMs: Millis;
  /** How long publishes may wait to be saved before some are rejected with 503. */
  publishDelayTargetMs: Millis;
  /** Delivered bodies above this size are not sent: the endpoint fetches them, if it can (contract W 8.3). */
  lazyFetchBytes: number;
  /**
   * The maximum of entries of a resumed or restarted run in one transaction, and of waiters read together. Only tests set
   * this limit.
   */
  togetherMax?: number;
  /** The maximum of unknown endpoint backlogs of a project in memory. Only tests set this limit. */
  backlogsMax?: number;
}
