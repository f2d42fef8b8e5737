/**
 * Combines the metrics of all workers of a process, and formats the result for Prometheus. This module is loaded on
 * demand.
 */
import { AggregatorRegistry } from 'prom-client';
import type { Reading } from './instruments.ts';

export async function exposition(readings: readonly Reading[]): Promise<{ type: string; text: string }> {
  const registry = AggregatorRegistry.aggregate(readings.map((reading) => [...reading]));
  return { type: registry.contentType, text: await registry.metrics() };
}
