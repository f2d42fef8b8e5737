/** The reference: the newest Restate server and its SDK with default settings, each in its own process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool, request } from 'undici';
import { installReferences, versionOf } from '../references.ts';
import type { Contestant } from './contestant.ts';
import { startEndpoint } from './endpoint-process.ts';
import { checkResult } from './program.ts';

const PACKAGES = ['@restatedev/restate-server', '@restatedev/restate-sdk'] as const;
const CONNECTIONS = 64;
const START_LIMIT_MS = 60_000;
const RESULT_LIMIT_MS = 10_000;

/** Installs Restate if needed. Each call then starts a server on an empty folder. */
export function restateContestant(): () => Promise<Contestant> {
  const folder = installReferences(PACKAGES);
  return () => startRestate(folder);
}

async function startRestate(folder: string): Promise<Contestant> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-restate-'));
  const server = await startServer(folder, dataDir);
  const endpoint = await startEndpoint('restate', [folder]);
  await register(server.adminUrl, endpoint.url);
  const pool = new Pool(server.ingressUrl, { connections: CONNECTIONS, pipelining: 1 });
  const invocations = new Map<number, string>();
  return {
    name: `Restate ${versionOf(folder, PACKAGES[0])}`,
    serverPid: server.pid,
    endpointPid: endpoint.pid,
    async start(number) {
      const response = await pool.request({
        path: '/bench/three/send',
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ number }),
      });
      const text = await response.body.text();
      if (response.statusCode > 299) throw new Error(`Restate rejected a run: ${response.statusCode} ${text}`);
      invocations.set(number, (JSON.parse(text) as { invocationId: string }).invocationId);
    },
    listen: (onEnded) => {
      endpoint.onEnded = onEnded;
    },
    traffic: () => endpoint.traffic(),
    async verify(numbers) {
      for (const number of numbers) checkResult(number, await outputOf(pool, invocations.get(number) ?? ''));
    },
    async end() {
      await pool.destroy();
      await server.end();
      await endpoint.end();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

interface RestateServer {
  pid: number;
  ingressUrl: string;
  adminUrl: string;
  end(): Promise<void>;
}

/** Default settings, except for addresses, the log level and telemetry. */
async function startServer(folder: string, dataDir: string): Promise<RestateServer> {
  const [ingressPort, adminPort, nodePort] = await freePorts(3);
  const platform = `@restatedev/restate-server-${process.platform}-${process.arch}`;
  const program = join(folder, 'node_modules', platform, 'bin', 'restate-server');
  const child = spawn(program, ['--base-dir', dataDir, '--listen-mode', 'tcp', '--bind-ip', '127.0.0.1', '--no-logo'], {
    env: {
      ...process.env,
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingressPort}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${adminPort}`,
      RESTATE_BIND_ADDRESS: `127.0.0.1:${nodePort}`,
      RESTATE_LOG_FILTER: 'warn',
      RESTATE_DISABLE_TELEMETRY: 'true',
      DO_NOT_TRACK: '1',
    },
    stdio: 'ignore',
  });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  const server: RestateServer = {
    pid: child.pid ?? Number.NaN,
    ingressUrl: `http://127.0.0.1:${ingressPort}`,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    end() {
      child.kill('SIGKILL'); // its data is no longer needed
      return exited;
    },
  };
  await healthy(child, server);
  return server;
}

async function healthy(child: ChildProcess, { ingressUrl, adminUrl }: RestateServer): Promise<void> {
  const giveUpAt = performance.now() + START_LIMIT_MS;
  for (const url of [`${adminUrl}/health`, `${ingressUrl}/restate/health`]) {
    while (!(await isOk(url))) {
      if (child.exitCode !== null) throw new Error(`Restate exited with ${child.exitCode}`);
      if (performance.now() > giveUpAt) throw new Error(`Restate is not ready after ${START_LIMIT_MS} ms`);
      await sleep(100);
    }
  }
}

async function isOk(url: string): Promise<boolean> {
  try {
    const response = await request(url);
    await response.body.dump();
    return response.statusCode === 200;
  } catch {
    return false; // the server does not listen yet
  }
}

async function register(adminUrl: string, uri: string): Promise<void> {
  const response = await request(`${adminUrl}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri }),
  });
  const text = await response.body.text();
  if (response.statusCode > 299) throw new Error(`Restate rejected the endpoint: ${response.statusCode} ${text}`);
}

/**
 * The result of an invocation. The result may not be available yet, since the endpoint reports the end of the run
 * slightly before the server.
 */
async function outputOf(pool: Pool, invocationId: string): Promise<string> {
  const giveUpAt = performance.now() + RESULT_LIMIT_MS;
  for (;;) {
    const response = await pool.request({ path: `/restate/invocation/${invocationId}/output`, method: 'GET' });
    const text = await response.body.text();
    if (response.statusCode === 200) return text;
    if (response.statusCode !== 470 || performance.now() > giveUpAt) {
      throw new Error(`no result of ${invocationId}: ${response.statusCode} ${text}`);
    }
    await sleep(20);
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => {
        server.listen(0, '127.0.0.1', resolve);
      });
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
