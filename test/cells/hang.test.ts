/**
 * A cell whose server hangs, so that connections stay open without responses, blocks neither the start nor the shutdown of a
 * worker.
 */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { testFolder } from '../support/folder.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { outputOf, projectWithToken } from '../support/waypost-command.ts';
import { WaypostProcess } from '../support/waypost-process.ts';

let folder: string;
let env: Record<string, string>;
let proxy: TcpProxy;
let tokens: { first: string; second: string };
const processes: WaypostProcess[] = [];

beforeEach(async () => {
  folder = testFolder();
  env = {
    WAYPOST_DATABASE_URL: await freshDatabase(),
    WAYPOST_DATA_DIR: folder,
    WAYPOST_DATABASE_TIMEOUT: '1s',
    WAYPOST_DRAIN_LIMIT: '1s',
    WAYPOST_PORT: '0',
    WAYPOST_ALLOW_DESTINATIONS: '127.0.0.1',
  };
  const second = await freshDatabase();
  proxy = await TcpProxy.open(Number(new URL(second).port));
  await done('init');
  const first = await projectWithToken('in-first', env);
  await done('cells', 'add', 'second', '--url', proxy.through(second));
  tokens = { first, second: await projectWithToken('in-second', env) };
});

afterEach(async () => {
  await Promise.all(processes.splice(0).map((process) => process.kill()));
  await proxy.close();
});

const done = (...args: string[]): Promise<string> => outputOf(args, env);

async function serve(): Promise<{ process: WaypostProcess; url: string }> {
  const process = new WaypostProcess(['serve', '--log-format', 'json'], env);
  processes.push(process);
  return { process, url: await process.url() };
}

const publish = async (url: string, token: string): Promise<number> => {
  const headers = { authorization: `Bearer ${token}`, 'upstash-delay': '1h' };
  return (await fetch(`${url}/v2/publish/http://127.0.0.1:1/`, { method: 'POST', headers })).status;
};

const opened = (process: WaypostProcess) =>
  eventually('the worker opens the cell', () => process.events().some(({ event }) => event === 'cell_opened'), 30_000);

it('a worker that serves it shuts down cleanly', async () => {
  const { process, url } = await serve();
  await opened(process);
  expect(await publish(url, tokens.second)).toBe(200);
  proxy.stall();
  expect([await publish(url, tokens.second), await publish(url, tokens.first)]).toEqual([503, 200]);
  process.signal('SIGTERM');
  expect(await process.waitForExit()).toMatchObject({ code: 0 });
});

it('a worker starts without it, shuts down cleanly, and serves the cell when it responds again', async () => {
  proxy.stall();
  const { process, url } = await serve();
  expect([await publish(url, tokens.second), await publish(url, tokens.first)]).toEqual([503, 200]);
  process.signal('SIGTERM');
  expect(await process.waitForExit()).toMatchObject({ code: 0 });
  const next = await serve();
  proxy.flow();
  await opened(next.process);
  expect(await publish(next.url, tokens.second)).toBe(200);
});
