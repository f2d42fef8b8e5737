/** The metrics that Prometheus reads from a complete server. */
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEVELOPMENT_ACCOUNTS } from '../../../src/config/development.ts';
import type { RunningServer } from '../../../src/server/server.ts';
import { listMetrics } from '../../../src/telemetry/metrics/table.ts';
import { startDevelopmentServer } from '../../support/development-server.ts';
import { eventually } from '../../support/eventually.ts';
import { listen, originOf } from '../../support/listen.ts';
import { type Family, parseExposition, sampleOf } from './exposition.ts';

const SECRET = 'canary3f9c';

describe('a server with an address for metrics', () => {
  const endpoint = createServer((request, response) => {
    response.writeHead(request.url?.startsWith('/ok') ? 200 : 500).end();
  });
  let server: RunningServer;
  let families: Map<string, Family>;

  const publish = (path: string, headers: Record<string, string> = {}) => {
    return fetch(`${server.url}/v2/publish/${originOf(endpoint)}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${DEVELOPMENT_ACCOUNTS[0].token}`, ...headers },
    });
  };
  const read = async () => {
    const answer = await fetch(server.metricsUrl ?? '');
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    return parseExposition(await answer.text());
  };

  beforeAll(async () => {
    await listen(endpoint);
    server = await startDevelopmentServer('--metrics-address', '0');
    await publish(`/ok/${SECRET}`, { 'upstash-flow-control-key': SECRET, 'upstash-flow-control-value': 'rate=9' });
    await publish('/ok', { 'upstash-label': SECRET });
    await publish('/fail', { 'upstash-retries': '0' });
    await publish('/ok', { 'upstash-delay': '1h' });
    await publish('/fail', { 'upstash-retries': '1', 'upstash-retry-delay': '3600000' });
    await publish('/ok', { 'upstash-delay': 'nonsense' });
    families = await eventually('all that is due', async () => {
      const now = await read();
      const ends = ['messages_delivered_total', 'dead_letters_total', 'retries_total'];
      return ends.reduce((sum, end) => sum + (sampleOf(now, `waypost_${end}`) ?? 0), 0) === 4 && now;
    });
  });
  afterAll(async () => {
    await server.stop(0);
    endpoint.closeAllConnections();
    endpoint.close();
  });

  it('tells of every metric of the table, and of nothing else, with kind and meaning', () => {
    const told = [...families].map(([name, { kind, help }]) => ({ name, kind, help }));
    const known = listMetrics().map(({ name, metric: { kind, meaning } }) => ({ name, kind, help: meaning }));
    expect(told).toEqual(known);
  });

  it('counts publishes, attempts by their result, retries and what was buried', () => {
    const counts = Object.fromEntries(
      [
        'waypost_http_requests_total{status="2xx"}',
        'waypost_http_requests_total{status="4xx"}',
        'waypost_publish_duration_seconds_count',
        'waypost_messages_accepted_total',
        'waypost_attempts_total{result="2xx"}',
        'waypost_attempts_total{result="5xx"}',
        'waypost_attempts_total{result="timeout"}',
        'waypost_attempt_duration_seconds_count',
        'waypost_first_attempt_lag_seconds_count',
        'waypost_messages_delivered_total',
        'waypost_retries_total',
        'waypost_messages_failed_total',
        'waypost_dead_letters_total',
      ].map((sample) => [sample.replace('waypost_', ''), sampleOf(families, sample)]),
    );
    expect(counts).toEqual({
      'http_requests_total{status="2xx"}': 5,
      'http_requests_total{status="4xx"}': 1,
      publish_duration_seconds_count: 5,
      messages_accepted_total: 5,
      'attempts_total{result="2xx"}': 2,
      'attempts_total{result="5xx"}': 2,
      'attempts_total{result="timeout"}': 0,
      attempt_duration_seconds_count: 4,
      first_attempt_lag_seconds_count: 4,
      messages_delivered_total: 2,
      retries_total: 1,
      messages_failed_total: 1,
      dead_letters_total: 1,
    });
  });

  it('tells of commits, of the process, and how old the sample of the backlog is', () => {
    expect(sampleOf(families, 'waypost_commit_duration_seconds_count')).toBeGreaterThan(5);
    expect(sampleOf(families, 'waypost_commit_batch_commands_sum')).toBeGreaterThan(5);
    expect(sampleOf(families, 'waypost_resident_memory_bytes')).toBeGreaterThan(1e6);
    expect(sampleOf(families, 'waypost_cpu_seconds_total')).toBeGreaterThan(0);
    expect(sampleOf(families, 'waypost_workers')).toBe(1);
    expect(sampleOf(families, 'waypost_in_flight')).toBe(0);
    expect(sampleOf(families, 'waypost_sample_age_seconds')).toBeGreaterThanOrEqual(0);
    expect(sampleOf(families, 'waypost_backlog_messages{state="queue"}')).toBe(0);
  });

  it('has no label that a client can choose: neither URL nor key nor label is in it, and each value is of the table', () => {
    const samples = [...families.values()].flatMap((family) => [...family.samples.keys()]);
    expect(samples.join('\n')).not.toContain(SECRET);
    const values = samples.flatMap((sample) => [...sample.matchAll(/(\w+)="([^"]*)"/g)]);
    const known = new Set(
      listMetrics().flatMap(({ metric }) =>
        (metric.label?.values ?? []).map((value) => `${metric.label?.name}=${value}`),
      ),
    );
    const unknown = values.filter(([, label, value]) => label !== 'le' && !known.has(`${label}=${value}`));
    expect(unknown).toEqual([]);
  });

  it('has nothing else at that address, and no metrics at the address of the interface', async () => {
    expect((await fetch(new URL('/v2/messages', server.metricsUrl))).status).toBe(404);
    expect((await fetch(server.metricsUrl ?? '', { method: 'POST' })).status).toBe(404);
    expect((await fetch(`${server.url}/metrics`)).status).toBe(404);
  });

  it('is refused an address that is in use', async () => {
    const { port } = new URL(server.metricsUrl ?? '');
    await expect(startDevelopmentServer('--metrics-address', port)).rejects.toThrow(
      'WAYPOST_METRICS_ADDRESS: cannot listen on',
    );
  });
});

it('a server without such an address tells nothing', async () => {
  const server = await startDevelopmentServer();
  expect(server.metricsUrl).toBeUndefined();
  await server.stop(0);
});
