/** Triggers runs on a Waypost server like the official client, and reads their results from the log. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';
import { storeInBatches } from '../batches.ts';
import type { ListeningProcess } from '../child-process.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from '../waypost-process.ts';
import type { Contestant } from './contestant.ts';
import { type Endpoint, startEndpoint } from './endpoint-process.ts';
import { checkResult, runIdOf } from './program.ts';

const CONNECTIONS = 64;
const LOGS_PAGE = 1_000;
const RESULTS_LIMIT_MS = 10_000;

/** A server on an empty folder, and an endpoint that publishes to it. */
export interface WorkflowSetup {
  dataDir: string;
  server: ListeningProcess;
  endpoint: Endpoint;
}

type EndpointKind = 'library' | 'own' | 'bare';

/** Ends both processes and removes the folder after `use`. `env` is added to the server's environment. */
export async function withSetup<T>(
  endpoint: EndpointKind,
  use: (setup: WorkflowSetup) => Promise<T>,
  env: Record<string, string> = {},
): Promise<T> {
  const setup = await openSetup(endpoint, 1, env);
  try {
    return await use(setup);
  } finally {
    await closeSetup(setup);
  }
}

async function openSetup(kind: EndpointKind, workers = 1, env: Record<string, string> = {}): Promise<WorkflowSetup> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-workflow-'));
  const server = await startWaypost({ dataDir, env, flags: ['--drain-limit', '0s', '--workers', String(workers)] });
  return { dataDir, server, endpoint: await startEndpoint(kind, [server.url, DEVELOPMENT_TOKEN]) };
}

async function closeSetup({ dataDir, server, endpoint }: WorkflowSetup): Promise<void> {
  await server.end('SIGTERM');
  await endpoint.end();
  rmSync(dataDir, { recursive: true, force: true });
}

/** The headers of a trigger that the official client sends (contract W 4.3). */
export function triggerHeaders(runId: string, url: string): Record<string, string> {
  const features = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig';
  return {
    'upstash-workflow-init': 'true',
    'upstash-workflow-runid': runId,
    'upstash-workflow-url': url,
    'upstash-workflow-sdk-version': '1',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'upstash-feature-set': features,
    'upstash-method': 'POST',
    'content-type': 'application/json',
    'upstash-failure-callback': url,
    'upstash-failure-callback-forward-upstash-workflow-is-failure': 'true',
    'upstash-failure-callback-forward-upstash-workflow-failure-callback': 'true',
    'upstash-failure-callback-workflow-runid': runId,
    'upstash-failure-callback-workflow-init': 'false',
    'upstash-failure-callback-workflow-url': url,
    'upstash-failure-callback-workflow-calltype': 'failureCall',
    'upstash-failure-callback-feature-set': features,
  };
}

/** Triggers runs `first` to `first` + `count` - 1 in batches of 500; returns the duration in milliseconds. */
export function triggerInBatches(
  server: ListeningProcess,
  url: string,
  { first, count, headers = {} }: { first: number; count: number; headers?: Record<string, string> },
): Promise<number> {
  return storeInBatches(server, count, (index) => ({
    destination: url,
    headers: { ...triggerHeaders(runIdOf(first + index), url), ...headers },
    body: JSON.stringify({ number: first + index }),
  }));
}

/** Resolves with true once `count` runs have ended, or with false after `limitMs`. Replaces the endpoint's listener. */
export function waitForRuns(endpoint: Endpoint, count: number, limitMs: number): Promise<boolean> {
  return waitForCount(count, limitMs, (note) => {
    endpoint.onEnded = () => note(1);
  });
}

/** Like `waitForRuns`, for deliveries that the endpoint has handled. */
export function waitForDeliveries(endpoint: Endpoint, count: number, limitMs: number): Promise<boolean> {
  return waitForCount(count, limitMs, (note) => {
    endpoint.onHandled = note;
  });
}

function waitForCount(
  count: number,
  limitMs: number,
  listen: (onMore: (more: number) => void) => void,
): Promise<boolean> {
  return new Promise((resolve) => {
    let soFar = 0;
    const limit = setTimeout(() => resolve(false), limitMs);
    listen((more) => {
      soFar += more;
      if (soFar < count) return;
      clearTimeout(limit);
      resolve(true);
    });
  });
}

export type WaypostContestant = EndpointKind | 'bare, within a call';

export const LIBRARY_NAMES = { library: '@upstash/workflow', own: '@waypost/workflow' };

const NAMES: Record<WaypostContestant, string> = {
  library: `Waypost, ${LIBRARY_NAMES.library}`,
  own: `Waypost, ${LIBRARY_NAMES.own}`,
  bare: 'Waypost, bare endpoint',
  'bare, within a call': 'Waypost, bare endpoint, within a call',
};

/** Starts Waypost with an endpoint, as a contestant of the comparison. */
export async function startWaypostContestant(kind: WaypostContestant, workers = 1): Promise<Contestant> {
  const setup = await openSetup(kind === 'bare, within a call' ? 'bare' : kind, workers);
  const { server, endpoint } = setup;
  const url = `${endpoint.url}/${kind === 'bare, within a call' ? 'within' : 'three'}`;
  const pool = new Pool(server.url, { connections: CONNECTIONS, pipelining: 1 });
  return {
    name: NAMES[kind],
    serverPid: server.pid,
    endpointPid: endpoint.pid,
    async start(number) {
      const item = {
        destination: url,
        headers: triggerHeaders(runIdOf(number), url),
        body: JSON.stringify({ number }),
      };
      const response = await pool.request({
        path: '/v2/batch',
        method: 'POST',
        headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify([item]),
      });
      const text = await response.body.text();
      if (response.statusCode !== 200) throw new Error(`trigger rejected: ${response.statusCode} ${text}`);
    },
    listen: (onEnded) => {
      endpoint.onEnded = onEnded;
    },
    traffic: () => endpoint.traffic(),
    async verify(numbers) {
      // At the end of a run within a call, the endpoint reports and responds; the server has the response slightly later.
      const deadline = performance.now() + RESULTS_LIMIT_MS;
      let results = await resultsOf(pool);
      while (results.size < numbers.length && performance.now() < deadline) results = await resultsOf(pool);
      for (const number of numbers) checkResult(number, results.get(runIdOf(number)));
    },
    async end() {
      await pool.destroy();
      await closeSetup(setup);
    },
  };
}

interface RunEvent {
  workflowRunId: string;
  workflowRunResponse?: string;
}

/** The result of run `number`. */
export async function resultOf(server: ListeningProcess, number: number): Promise<string | undefined> {
  const pool = new Pool(server.url);
  try {
    return (await resultsOf(pool)).get(runIdOf(number));
  } finally {
    await pool.destroy();
  }
}

/** The results of all successful runs by id, from the flat log. Throws if a run ended twice. */
async function resultsOf(pool: Pool): Promise<Map<string, string | undefined>> {
  const results = new Map<string, string | undefined>();
  let cursor: string | undefined;
  do {
    const query: Record<string, string> = { state: 'RUN_SUCCESS', count: String(LOGS_PAGE), ...(cursor && { cursor }) };
    const response = await pool.request({
      path: `/v2/workflows/messageLogs?${new URLSearchParams(query)}`,
      method: 'GET',
      headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}` },
    });
    const page = (await response.body.json()) as { cursor?: string; events: RunEvent[] };
    for (const { workflowRunId, workflowRunResponse } of page.events) {
      if (results.has(workflowRunId)) throw new Error(`${workflowRunId} ended twice`);
      results.set(workflowRunId, workflowRunResponse);
    }
    cursor = page.cursor;
  } while (cursor !== undefined);
  return results;
}
