/** How long does `GET /healthz` take while others ask for large answers, 200 requests at a time on each of 200 connections? */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { emptyMinute, MINUTE_MS } from '../../src/engine/minutes/minute.ts';
import { openInlineSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import type { Figure } from '../figure.ts';
import { quantile } from '../statistics.ts';
import { startWaypost } from '../waypost-process.ts';
import { AUTHORIZATION } from './requests.ts';

export interface AnswersOptions {
  connections: number;
  /** Requests that each connection sends at once. */
  requests: number;
  /** How long is measured, of each route. */
  seconds: number;
  /** Objects of each kind that the lists show. */
  objects: number;
  /** The folder of the checkout that is measured; default: this one. */
  program?: string;
}

export const DEFAULT_ANSWERS: AnswersOptions = { connections: 200, requests: 200, seconds: 8, objects: 500 };

/** Every route whose answer can be larger than 16 KiB, but for those with one stored body. */
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

/** A project may have this many by default. */
const GROUPS_MAX = 100;
const PROBE_EVERY_MS = 20;
/** Nobody listens there. */
const URL_TEXT = 'http://127.0.0.1:1/';

export async function measureAnswers(options: AnswersOptions, onFigure: (figure: Figure) => void): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-answers-'));
  const { program } = options;
  const server = await startWaypost({ dataDir, ...(program !== undefined && { program }) });
  try {
    await fill(server.url, options.objects);
    await addMinutes(join(dataDir, 'waypost.db'));
    for (const route of ROUTES) {
      const bytes = await answerBytes(server.url, route);
      const waits = await probesDuring(server.url, route, options);
      const name = `healthz during a flood of ${route} (${Math.round(bytes / 1024)} KiB)`;
      onFigure({ name: `${name}, p50`, value: quantile(waits, 0.5), unit: 'ms' });
      onFigure({ name: `${name}, longest`, value: quantile(waits, 1), unit: 'ms' });
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
    if (!ok) throw new Error(`${target} was answered ${status}`);
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

/** A day of them, each with counts in every bucket, as one answer has at most. */
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

async function answerBytes(url: string, route: string): Promise<number> {
  const answer = await fetch(`${url}${route}`, { headers: { authorization: AUTHORIZATION } });
  if (!answer.ok) throw new Error(`${route} was answered ${answer.status}`);
  return (await answer.arrayBuffer()).byteLength;
}

async function probesDuring(url: string, route: string, options: AnswersOptions): Promise<number[]> {
  const { connections, requests, seconds } = options;
  const request = `GET ${route} HTTP/1.1\r\nHost: h\r\nAuthorization: ${AUTHORIZATION}\r\n\r\n`;
  const flooder = fork(fileURLToPath(new URL('./flooder.ts', import.meta.url)), [
    new URL(url).port,
    String(connections),
    request,
    String(requests),
  ]);
  try {
    const waits: Promise<number>[] = [];
    for (let nth = 0; nth < (seconds * 1_000) / PROBE_EVERY_MS; nth += 1) {
      waits.push(probe(url));
      await sleep(PROBE_EVERY_MS);
    }
    return await Promise.all(waits);
  } finally {
    await ended(flooder);
  }
}

/** On a connection of its own. */
function probe(url: string): Promise<number> {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${url}/healthz`, { agent: false }, (response) => {
      response.on('end', () => resolve(performance.now() - startedAt)).resume();
    });
    request.on('error', reject).end();
  });
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}
