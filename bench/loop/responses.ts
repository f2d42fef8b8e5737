/** Measures `GET /healthz` while other clients request large responses: 200 pipelined requests on each of 200 connections. */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { emptyMinute, MINUTE_MS } from '../../src/engine/minutes/counts.ts';
import { openInlineSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import type { Figure } from '../figure.ts';
import { quantile } from '../statistics.ts';
import { startWaypost } from '../waypost-process.ts';
import { AUTHORIZATION } from './requests.ts';

export interface ResponsesOptions {
  connections: number;
  /** Pipelined requests per connection. */
  requests: number;
  /** Duration of the measurement per route. */
  seconds: number;
  /** Stored objects of each kind. */
  objects: number;
  /** The folder of the checkout to measure; default: this one. */
  program?: string;
}

export const DEFAULT_RESPONSES: ResponsesOptions = { connections: 200, requests: 200, seconds: 8, objects: 500 };

/** Every route whose response can exceed 16 KiB, except those that return a single stored body. */
const ROUTES = [
  '/docs',
  '/openapi.json',
  '/v2/logs?count=1000',
  '/v2/waypost/messages?count=1000',
  '/v2/dlq?count=100',
  '/v2/queues',
  '/v2/schedules',
  '/v2/topics',
  '/v2/workflows/logs?count=1000',
  '/v2/workflows/messageLogs?count=1000',
  '/v2/waypost/minutes?fromDate=0',
  '/v2/waypost/live/entries',
];

/** The default maximum number of URL groups of a project. */
const GROUPS_MAX = 100;
const PROBE_EVERY_MS = 20;
/** No server listens on this port. */
const URL_TEXT = 'http://127.0.0.1:1/';

export async function measureResponses(options: ResponsesOptions, onFigure: (figure: Figure) => void): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-responses-'));
  const { program } = options;
  const server = await startWaypost({ dataDir, ...(program !== undefined && { program }) });
  try {
    await fill(server.url, options.objects);
    await addMinutes(join(dataDir, 'waypost.db'));
    for (const route of ROUTES) {
      const bytes = await responseBytes(server.url, route);
      const timesMs = await probeTimesMs(server.url, route, options);
      const name = `healthz during a flood of ${route} (${Math.round(bytes / 1024)} KiB)`;
      onFigure({ name: `${name}, p50`, value: quantile(timesMs, 0.5), unit: 'ms' });
      onFigure({ name: `${name}, max`, value: quantile(timesMs, 1), unit: 'ms' });
    }
  } finally {
    await server.end('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function fill(url: string, objects: number): Promise<void> {
  const each = Array.from({ length: objects }, (_, nth) => nth);
  const body = 'x'.repeat(500);
  const post = async (target: string, json: unknown): Promise<void> => {
    const headers = { authorization: AUTHORIZATION, 'content-type': 'application/json' };
    const { ok, status } = await fetch(`${url}${target}`, { method: 'POST', headers, body: JSON.stringify(json) });
    if (!ok) throw new Error(`${target} failed with status ${status}`);
  };
  const item = { destination: URL_TEXT, body };
  await post(
    '/v2/batch',
    each.map((nth) => ({ ...item, queue: `queue-${nth}`, headers: { 'Upstash-Retry-Delay': '3600000' } })),
  );
  await post(
    '/v2/batch',
    each.map(() => ({ ...item, headers: { 'Upstash-Retries': '0' } })),
  );
  const run = { 'Upstash-Workflow-Init': 'true', 'Upstash-Workflow-Url': URL_TEXT, 'Upstash-Delay': '1h' };
  await post(
    '/v2/batch',
    each.map((nth) => ({ ...item, headers: { ...run, 'Upstash-Workflow-RunId': `wfr_${nth}` } })),
  );
  const endpoints = Array.from({ length: 10 }, (_, nth) => ({ url: `${URL_TEXT}${nth}` }));
  for (const nth of each.slice(0, GROUPS_MAX)) await post(`/v2/topics/group-${nth}/endpoints`, { endpoints });
  for (const _ of each) {
    const headers = { authorization: AUTHORIZATION, 'upstash-cron': '0 0 1 1 *' };
    await fetch(`${url}/v2/schedules/${URL_TEXT}`, { method: 'POST', headers, body });
  }
}

/** Adds a day of minutes with counts in every bucket: one response contains at most a day. */
async function addMinutes(path: string): Promise<void> {
  const onFatal = (error: Error): void => {
    throw error;
  };
  const store = await openInlineSqliteStore({ path, onFatal });
  const [project] = await store.projects.listProjects();
  if (!project) throw new Error('the server has no project');
  const nowMs = Date.now();
  const counts = { latency: Array(12).fill(100), lag: Array(12).fill(100) };
  const minutes = Array.from({ length: 1_440 }, (_, nth) => ({ ...emptyMinute(nowMs - nth * MINUTE_MS), ...counts }));
  await store.minutes.addMinutes({ projectId: project.projectId, minutes });
  await store.close();
}

async function responseBytes(url: string, route: string): Promise<number> {
  const response = await fetch(`${url}${route}`, { headers: { authorization: AUTHORIZATION } });
  if (!response.ok) throw new Error(`${route} failed with status ${response.status}`);
  return (await response.arrayBuffer()).byteLength;
}

async function probeTimesMs(url: string, route: string, options: ResponsesOptions): Promise<number[]> {
  const { connections, requests, seconds } = options;
  const request = `GET ${route} HTTP/1.1\r\nHost: h\r\nAuthorization: ${AUTHORIZATION}\r\n\r\n`;
  const flooder = fork(fileURLToPath(new URL('./flooder.ts', import.meta.url)), [
    new URL(url).port,
    String(connections),
    request,
    String(requests),
  ]);
  try {
    const timesMs: Promise<number>[] = [];
    for (let nth = 0; nth < (seconds * 1_000) / PROBE_EVERY_MS; nth += 1) {
      timesMs.push(probe(url));
      await sleep(PROBE_EVERY_MS);
    }
    return await Promise.all(timesMs);
  } finally {
    await kill(flooder);
  }
}

/** Returns the response time of `GET /healthz` on a new connection, in milliseconds. */
function probe(url: string): Promise<number> {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${url}/healthz`, { agent: false }, (response) => {
      response.on('end', () => resolve(performance.now() - startedAt)).resume();
    });
    request.on('error', reject).end();
  });
}

function kill(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}
