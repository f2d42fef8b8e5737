/** The reference: the newest Restate server and its SDK, as they come, each in a process of its own. */
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

/** Installs it if need be; then each call starts a server on an empty folder. */
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
      const answer = await pool.request({
        path: '/bench/three/send',
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ number }),
      });
      const text = await answer.body.text();
      if (answer.statusCode > 299) throw new Error(`Restate refused a run: ${answer.statusCode} ${text}`);
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

/** All of its own choosing but addresses, and that it neither logs each run nor reports to its makers. */
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
      child.kill('SIGKILL'); // nothing of it is needed any more
      return exited;
    },
  };
  await healthy(child, server);
  return server;
}

async function healthy(child: ChildProcess, { ingressUrl, adminUrl }: RestateServer): Promise<void> {
  const giveUpAt = performance.now() + START_LIMIT_MS;
  for (const url of [`${adminUrl}/health`, `${ingressUrl}/restate/health`]) {
    while (!(await answersOk(url))) {
      if (child.exitCode !== null) throw new Error(`Restate ended with ${child.exitCode}`);
      if (performance.now() > giveUpAt) throw new Error(`Restate is not ready after ${START_LIMIT_MS} ms`);
      await sleep(100);
    }
  }
}

async function answersOk(url: string): Promise<boolean> {
  try {
    const answer = await request(url);
    await answer.body.dump();
    return answer.statusCode === 200;
  } catch {
    return false; // it does not listen yet
  }
}

async function register(adminUrl: string, uri: string): Promise<void> {
  const answer = await request(`${adminUrl}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri }),
  });
  const text = await answer.body.text();
  if (answer.statusCode > 299) throw new Error(`Restate refused the endpoint: ${answer.statusCode} ${text}`);
}

/** What an invocation returned; the endpoint knows of its end a little before the server. */
async function outputOf(pool: Pool, invocationId: string): Promise<string> {
  const giveUpAt = performance.now() + RESULT_LIMIT_MS;
  for (;;) {
    const answer = await pool.request({ path: `/restate/invocation/${invocationId}/output`, method: 'GET' });
    const text = await answer.body.text();
    if (answer.statusCode === 200) return text;
    if (answer.statusCode !== 470 || performance.now() > giveUpAt) {
      throw new Error(`no result of ${invocationId}: ${answer.statusCode} ${text}`);
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
