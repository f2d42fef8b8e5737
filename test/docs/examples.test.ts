/**
 * Runs the examples of README.md and docs/*.md as a reader would: TypeScript with Node, curl with a shell, against a
 * development server. A comment behind `console.log(...)` is what it must print.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';
import { WaypostProcess } from '../support/waypost-process.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const TOKEN = DEVELOPMENT_ACCOUNTS[0].token;

interface Example {
  page: string;
  language: 'ts' | 'sh';
  code: string;
}

const examples = await findExamples();
let server: WaypostProcess;
let serverUrl: string;
let endpoint: Server;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waypost-docs-'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  endpoint = createServer((request, response) => {
    request.resume();
    response.writeHead(request.url === '/fails' ? 500 : 200).end();
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  server = new WaypostProcess(['dev', '--memory', '--log-format', 'json'], { PORT: '0' });
  serverUrl = await server.url();
});

afterAll(async () => {
  await server?.kill();
  endpoint?.closeAllConnections();
  await new Promise((resolve) => endpoint?.close(resolve));
  await rm(folder, { recursive: true });
});

describe('every example in the documentation works as it stands', () => {
  it.each(examples.map((example, index) => ({ name: `${example.page}, example ${index + 1}`, example })))(
    '$name',
    async ({ example }) => {
      const { stdout } = example.language === 'ts' ? await runScript(example) : await runShell(example);
      if (example.language === 'ts') expect(stdout.trimEnd().split('\n')).toEqual(expectedOutput(example.code));
      else expect(JSON.parse(stdout)).not.toHaveProperty('error');
    },
  );
});

async function runScript({ code }: Example): Promise<{ stdout: string }> {
  const file = join(folder, `example-${Math.abs(hash(code))}.mts`);
  await writeFile(file, pointed(code));
  return await run(process.execPath, ['--no-warnings', file], { env: environment(), timeout: 30_000 });
}

async function runShell({ code }: Example): Promise<{ stdout: string }> {
  return await run('bash', ['-euc', pointed(code)], { env: environment(), timeout: 30_000 });
}

/** The example with the addresses of this test in place of the usual ones. */
function pointed(code: string): string {
  const { port } = endpoint.address() as AddressInfo;
  return code
    .replaceAll('http://127.0.0.1:8080', serverUrl)
    .replaceAll('http://127.0.0.1:3000', `http://127.0.0.1:${port}`);
}

function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], HOME: folder, QSTASH_TOKEN: TOKEN };
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
      if (language === 'ts') found.push({ page, language, code: code ?? '' });
      else if (language === 'sh' && code?.includes('curl')) found.push({ page, language, code });
    }
  }
  return found;
}
