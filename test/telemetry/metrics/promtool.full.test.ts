/** Checks that Prometheus itself accepts the metrics of a server, and the files to use with it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { exposition } from '../../../src/telemetry/metrics/exposition.ts';
import { WorkerMetrics } from '../../../src/telemetry/metrics/worker-metrics.ts';
import { openWorld } from '../../api/support/world.ts';
import { DEBIAN_ENV, obstacleTo } from '../../support/debian.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';
import { FOLDER, QUERIES } from './files.ts';

const obstacle = obstacleTo('promtool', ['prometheus']);
/** What promtool finds wrong; `''`: nothing. */
function faults(args: string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { env: DEBIAN_ENV, input, encoding: 'utf8' });
  return status === 0 ? '' : `${stdout}${stderr}`;
}

function faultsOfRules(rules: readonly { record: string; expr: string }[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-rules-'));
  try {
    const file = join(folder, 'rules.yaml');
    writeFileSync(file, stringify({ groups: [{ name: 'queries', rules }] }));
    return faults(['check', 'rules', file]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe.skipIf(obstacle !== undefined)(`promtool${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`, () => {
  it('finds no fault in what a server tells of itself', async () => {
    const metrics = new WorkerMetrics(new SimulatedClock());
    metrics.responded(true, 200, 3);
    const { text } = await exposition([await metrics.read()]);
    metrics.close();
    expect(faults(['check', 'metrics'], text)).toBe('');
    expect(faults(['check', 'metrics'], text.replaceAll('waypost_retries_total', 'waypost_retries'))).toContain(
      '_total',
    );
  });

  it('finds no fault in what a project is told', async () => {
    const world = await openWorld();
    const { text } = await world.ask({ method: 'GET', url: '/v2/waypost/metrics' });
    await world.close();
    expect(faults(['check', 'metrics'], text)).toBe('');
  });

  it('finds no fault in the configuration and the alerts', () => {
    expect(faults(['check', 'config', join(FOLDER, 'prometheus.yaml')])).toBe('');
    expect(faults(['check', 'rules', join(FOLDER, 'alerts.yaml')])).toBe('');
  });

  it('can read every query of the dashboard and of KEDA', () => {
    const queries = Object.values(QUERIES).flat();
    // Grafana puts the interval in.
    const rules = queries.map((expr, index) => ({
      record: `query_${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m'),
    }));
    expect(rules.length).toBeGreaterThan(20);
    expect(faultsOfRules(rules)).toBe('');
    expect(faultsOfRules([{ record: 'wrong', expr: 'max(waypost_workers' }])).toContain('unclosed left parenthesis');
  });
});
