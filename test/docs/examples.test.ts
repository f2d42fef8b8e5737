/**
 * Runs the examples of README.md and docs/*.md like a reader, on a development server: TypeScript in one Node process for all
 * of them, curl in a shell. A comment after `console.log(...)` is the expected output. An example that begins with `// app.mts`
 * is an app: it runs while the later examples of its page run, which send requests to it.
 */
import { type ChildProcess, execFile, type ForkOptions, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { startDevelopmentServer } from '../support/development-server.ts';
import type { Done, Task } from './reader.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const [{ token: TOKEN, signingKeys: SIGNING_KEYS }] = DEVELOPMENT_ACCOUNTS;
/** Only the published package has it under its own name. */
const TEST_KIT = new URL('../../src/testing/waypost.ts', import.meta.url).href;
/** What the official client says of itself when it takes the development server. */
const OF_DEV_MODE = '[QStash Dev]';
/** How an app begins to listen; here on a free port, which it tells. */
const LISTENS = "app.listen(3000, '127.0.0.1');";
const IS_TOLD =
  "export const listening = app.listen(0, '127.0.0.1');\nawait new Promise((resolve) => listening.once('listening', resolve));";

interface Example {
  page: string;
  language: 'ts' | 'sh';
  code: string;
  isApp: boolean;
}

interface App {
  page: string;
  port: number;
}

const examples = await findExamples();
let server: RunningServer;
let reader: ChildProcess;
/** What apps print is none of the examples' output. */
let host: ChildProcess;
let endpoint: Server;
let folder: string;
let app: App | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waypost-docs-'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  endpoint = createServer((request, response) => {
    request.resume();
    response.writeHead(request.url === '/fails' ? 500 : 200).end();
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  server = await startDevelopmentServer('--metrics-address', '0');
  const options: ForkOptions = { execArgv: ['--no-warnings'], env: environment(), stdio: 'ignore' };
  const begin = () => fork(new URL('reader.ts', import.meta.url), options);
  [reader, host] = [begin(), begin()];
});

afterAll(async () => {
  reader?.kill();
  host?.kill();
  await server?.stop(0);
  endpoint?.closeAllConnections();
  await new Promise((resolve) => endpoint?.close(resolve));
  await rm(folder, { recursive: true });
});

describe('every example in the documentation works as it stands', () => {
  it.each(examples.map((example, index) => ({ name: `${example.page}, example ${index + 1}`, example })))(
    '$name',
    async ({ example }) => {
      if (example.page !== app?.page || example.isApp) await endApp();
      if (example.isApp) {
        app = await startApp(example);
        return;
      }
      if (example.language === 'ts') {
        const { printed } = await runScript(reader, pointed(example.code));
        expect(printed.filter((line) => !line.includes(OF_DEV_MODE))).toEqual(expectedOutput(example.code));
        return;
      }
      const { stdout } = await runShell(example);
      if (example.page === 'docs/metrics.md') expect(stdout).toMatch(/^waypost_(workers 1|project_\w+ [\d.]+)$/m);
      else expect(JSON.parse(stdout)).not.toHaveProperty('error');
    },
  );

  it('and ends by itself: none keeps anything open', async () => {
    await endApp();
    const exits = [reader, host].map((process) => once(process, 'exit'));
    for (const process of [reader, host]) process.disconnect();
    expect(await Promise.all(exits)).toEqual(exits.map(() => [0, null]));
  });
});

async function runScript(process: ChildProcess, code: string): Promise<Done> {
  return await give(process, { file: await saved(code) });
}

async function startApp({ page, code }: Example): Promise<App> {
  expect(code).toContain(LISTENS);
  const { port } = await runScript(host, pointed(code).replace(LISTENS, IS_TOLD));
  if (port === undefined) throw new Error(`the app of ${page} does not listen`);
  return { page, port };
}

async function endApp(): Promise<void> {
  if (app === undefined) return;
  app = undefined;
  await give(host, 'close app');
}

async function give(process: ChildProcess, task: Task): Promise<Done> {
  const answer = once(process, 'message') as Promise<[Done]>;
  process.send(task);
  const [done] = await answer;
  if (done.error !== undefined) throw new Error(done.error);
  return done;
}

async function saved(code: string): Promise<string> {
  const file = join(folder, `example-${Math.abs(hash(code))}.mts`);
  await writeFile(file, code);
  return file;
}

async function runShell({ code }: Example): Promise<{ stdout: string }> {
  return await run('bash', ['-euc', pointed(code)], { env: environment(), timeout: 30_000 });
}

/** The example with the addresses of this test in place of the usual ones. */
function pointed(code: string): string {
  const port = app?.port ?? (endpoint.address() as AddressInfo).port;
  return code
    .replaceAll("'waypost/testing'", `'${TEST_KIT}'`)
    .replaceAll('http://127.0.0.1:8080', server.url)
    .replaceAll('http://127.0.0.1:9464/metrics', server.metricsUrl ?? '')
    .replaceAll('http://127.0.0.1:3000', `http://127.0.0.1:${port}`);
}

function environment(): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    HOME: folder,
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
    QSTASH_URL: server.url,
    QSTASH_DEV_PORT: new URL(server.url).port,
    QSTASH_TOKEN: TOKEN,
    QSTASH_CURRENT_SIGNING_KEY: SIGNING_KEYS.current,
    QSTASH_NEXT_SIGNING_KEY: SIGNING_KEYS.next,
  };
}

function expectedOutput(code: string): string[] {
  const printed = [...code.matchAll(/^\s*console\.log\(.*\); \/\/ (.*)$/gm)].map((match) => match[1] ?? '');
  expect(printed, 'an example shows what it prints').not.toEqual([]);
  return printed;
}

function hash(text: string): number {
  let value = 0;
  for (let at = 0; at < text.length; at += 1) value = (value * 31 + text.charCodeAt(at)) | 0;
  return value;
}

async function findExamples(): Promise<Example[]> {
  const docs = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`);
  const found: Example[] = [];
  for (const page of ['README.md', ...docs]) {
    const text = await readFile(join(ROOT, page), 'utf8');
    for (const [, language, code] of text.matchAll(/^```(ts|sh)\n(.*?)^```$/gms)) {
      const isApp = code?.startsWith('// app.mts\n') ?? false;
      if (language === 'ts') found.push({ page, language, code: code ?? '', isApp });
      else if (language === 'sh' && code?.includes('curl')) found.push({ page, language, code, isApp });
    }
  }
  return found;
}
