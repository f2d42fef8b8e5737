/** Checks that every metric follows the naming rules of Prometheus, and that docs/metrics.md is generated from them. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { listMetrics } from '../../../src/telemetry/metrics/table.ts';
import { metricsPage } from './page.ts';

it.each(listMetrics())('$name says its unit, and a counter that it counts', ({ name, metric }) => {
  expect(name).toMatch(/^waypost_[a-z_]+$/);
  expect(name.endsWith('_total')).toBe(metric.kind === 'counter');
  if (metric.kind === 'histogram') expect(name).toMatch(/_(seconds|commands)$/);
  expect(metric.meaning).toMatch(/^[A-Z][^|\n]+\.$/);
});

it('docs/metrics.md is made of the table (--update writes it)', async () => {
  await expect(metricsPage()).toMatchFileSnapshot(join(import.meta.dirname, '../../../docs/metrics.md'));
});
