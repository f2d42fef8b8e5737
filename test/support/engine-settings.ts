/** The default settings of engines in tests. */
import type { EngineSettings } from '../../src/engine/settings.ts';

/** Few slots, and a retention that is longer than any test. */
export const ENGINE_SETTINGS: EngineSettings = {
  inFlightMax: 10,
  inFlightPerOriginMax: 10,
  inFlightBytesMax: 1_000_000,
  deduplicationWindowMs: 600_000,
  deliveredGraceMs: 5_000,
  logRetentionMs: 1e9,
  dlqRetentionMs: 1e9,
  retentionIntervalMs: 1e9,
  publishDelayTargetMs: 500,
  lazyFetchBytes: 3 * 1024 * 1024,
};
