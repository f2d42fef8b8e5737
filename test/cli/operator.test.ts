/** The commands for projects and tokens, with and without a running server. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { testFolder } from '../support/folder.ts';
import { type InProcessServer, serveInProcess } from '../support/in-process-server.ts';
import { type CommandResult, giveCommand } from '../support/waypost-command.ts';
import { runWaypost, WaypostProcess } from '../support/waypost-process.ts';

let folder: string;
let server: InProcessServer | undefined;

beforeEach(() => {
  folder = testFolder();
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

const operate = (...args: string[]): Promise<CommandResult> => giveCommand([...args, '--data-dir', folder]);

/** The output of a command with `--json`. */
async function asked<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await operate(...args, '--json');
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as T;
}

interface TokenView {
  id: string;
  project: string;
  scope: string;
  name?: string;
  createdAt: string;
  lastUsedAt?: string;
  token: string;
}

async function serve(command: 'serve' | 'dev' = 'serve'): Promise<string> {
  server = await serveInProcess([command, '--data-dir', folder]);
  return server.url;
}

async function statusOf(url: string, token: string, method: string, path: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'upstash-delay': '1h' };
  return (await fetch(`${url}${path}`, { method, headers })).status;
}

describe.each(['a stopped', 'a running'])('on %s server', (state) => {
  beforeEach(async () => {
    await operate('init');
    if (state === 'a running') await serve();
  });

  it('a project is made once, with signing keys of its own', async () => {
    const created = await operate('projects', 'create', 'shop');
    expect(created).toMatchObject({ code: 0, stderr: expect.stringContaining('Created the project "shop"') });
    expect(created.stdout).toMatch(/^QSTASH_CURRENT_SIGNING_KEY=sig_\w{28}\nQSTASH_NEXT_SIGNING_KEY=sig_\w{28}\n$/);
    expect(await operate('projects', 'create', 'shop')).toMatchObject({
      code: 1,
      stderr: 'waypost: there is a project "shop" already\n',
    });
    const { stdout } = await operate('projects');
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['PROJECT', 'CREATED (UTC)', 'TOKENS'],
      ['default', expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d$/), '1'],
      ['shop', expect.any(String), '0'],
      [''],
    ]);
  });

  it('tokens are made, listed without their secret, and revoked', async () => {
    await asked('projects', 'create', 'shop');
    const made = await asked<TokenView>(
      ...['tokens', 'create', '--project', 'shop', '--scope', 'publish-only', '--name', 'till in Ulm'],
    );
    expect(made).toMatchObject({ project: 'shop', scope: 'publish-only', name: 'till in Ulm' });
    const secret = JSON.parse(Buffer.from(made.token, 'base64').toString('utf8')) as Record<string, string>;
    expect(secret['UserID']).toBe('shop');
    expect(Buffer.from(secret['Password'] ?? '', 'base64url')).toHaveLength(32);

    const { token: _secret, ...shown } = made;
    expect(await asked('tokens', '--project', 'shop')).toEqual([shown]);
    const table = await operate('tokens', 'list');
    expect(table.stdout).toMatch(new RegExp(`^${made.id}  shop +publish-only  [\\d :-]+  never +till in Ulm$`, 'm'));
    expect(table.stdout).not.toContain(made.token);

    const revoked = await operate('tokens', 'revoke', made.id);
    expect(revoked).toMatchObject({
      code: 0,
      stdout: `Revoked ${made.id}, a publish-only token of the project "shop".\n`,
    });
    expect(await asked('tokens', 'list', '--project=shop')).toEqual([]);
    expect(await operate('tokens', 'revoke', made.id)).toMatchObject({
      code: 1,
      stderr: `waypost: there is no token "${made.id}"; "waypost tokens" lists them\n`,
    });
  });
});

it('what a token of each scope may do counts from the next request', async () => {
  await operate('init');
  const url = await serve();
  const tokens = new Map<string, TokenView>();
  for (const scope of ['full', 'publish-only', 'read-only']) {
    tokens.set(scope, await asked('tokens', 'create', '--project', 'default', '--scope', scope));
  }
  const statuses: Record<string, number[]> = {};
  for (const [scope, { token }] of tokens) {
    statuses[scope] = [
      await statusOf(url, token, 'POST', '/v2/publish/https://192.0.2.1/'), // reserved, so refused once it is looked at
      await statusOf(url, token, 'GET', '/v2/logs'),
      await statusOf(url, token, 'GET', '/v2/keys'),
      await statusOf(url, token, 'DELETE', '/v2/messages'),
    ];
  }
  expect(statuses).toEqual({
    full: [400, 200, 200, 200],
    'publish-only': [400, 403, 403, 403],
    'read-only': [403, 200, 403, 403],
  });
  for (const { id, token } of tokens.values()) {
    await asked('tokens', 'revoke', id);
    expect(await statusOf(url, token, 'GET', '/v2/logs')).toBe(401);
  }
});

describe('a wrong command', () => {
  let shared: string;
  beforeAll(async () => {
    shared = mkdtempSync(join(tmpdir(), 'waypost-op-'));
    await giveCommand(['init', '--data-dir', shared]);
  });
  afterAll(() => rmSync(shared, { recursive: true, force: true }));

  it.each([
    [['tokens', 'create', '--project', 'nobody', '--scope', 'full'], 1, 'there is no project "nobody"'],
    [['tokens', 'create', '--scope', 'full'], 2, '--project <name> is missing'],
    [['tokens', 'create', '--project', 'default'], 2, '--scope <scope> is missing'],
    [['tokens', 'create', '--project', 'default', '--scope', 'admin'], 2, 'must be full, publish-only, read-only'],
    [['tokens', 'create', '--project', 'default', '--scope', 'full', '--name', '\u001b[2J'], 1, 'printable'],
    [['tokens', 'revoke', 'tok_nothing'], 1, 'there is no token "tok_nothing"'],
    [['tokens', 'revoke'], 2, "the token's id is missing"],
    [['tokens', 'delete', 'x'], 2, 'there is no "delete"'],
    [['projects', 'create'], 2, "the project's name is missing"],
    [['projects', 'create', 'a b'], 1, 'cannot be the name of a project'],
    [['projects', 'create', 'defaultUser'], 1, 'the name of a development account'],
    [['projects', '--memory'], 2, '--memory has no data folder'],
    [['projects', '--colour'], 2, '--colour: there is no such option'],
  ])('%j is refused in one line', async (args, code, complaint) => {
    const ended = await giveCommand([...args, '--data-dir', shared]);
    expect([ended.code, ended.stdout]).toEqual([code, '']);
    expect(ended.stderr).toContain(complaint);
    expect(ended.stderr.trimEnd().split('\n')).toHaveLength(1);
  });
});

it('a new project works in the running server, and sees nothing of another', async () => {
  const { stdout } = await operate('init');
  const owner = /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
  const url = await serve();
  const { signingKeys } = await asked<{ signingKeys: unknown }>('projects', 'create', 'shop');
  const { token } = await asked<TokenView>('tokens', 'create', '--project', 'shop', '--scope', 'full');
  const keys = await fetch(`${url}/v2/keys`, { headers: { authorization: `Bearer ${token}` } });
  expect(await keys.json()).toEqual(signingKeys);
  const group = { method: 'POST', body: '{"endpoints":[{"url":"https://9.9.9.9/"}]}' };
  await fetch(`${url}/v2/topics/mine/endpoints`, { ...group, headers: { authorization: `Bearer ${owner}` } });
  expect(await statusOf(url, owner, 'GET', '/v2/topics/mine')).toBe(200);
  expect(await statusOf(url, token, 'GET', '/v2/topics/mine')).toBe(404);
});

it('how large the database is, is told to a project that has it for itself', async () => {
  const { stdout } = await operate('init');
  const token = /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
  const url = await serve();
  const overview = async () => {
    const answer = await fetch(`${url}/v2/waypost/overview`, { headers: { authorization: `Bearer ${token}` } });
    return (await answer.json()) as { retention: object; storage?: { bytes: number } };
  };
  const { bytes = 0 } = (await overview()).storage ?? {};
  expect(bytes % 4096).toBe(0);
  expect(bytes).toBeGreaterThan(0);
  await operate('projects', 'create', 'shop');
  expect(await overview()).toHaveProperty('retention');
  expect(await overview()).not.toHaveProperty('storage');
});

it('when a token was last used is known, after a restart too', async () => {
  const { stdout } = await operate('init');
  const token = /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
  const url = await serve();
  await statusOf(url, token, 'GET', '/v2/logs');
  const [used] = await asked<TokenView[]>('tokens');
  expect(used?.lastUsedAt).toMatch(/^\d{4}-.*Z$/);
  await server?.stop();
  expect(await asked('tokens')).toEqual([used]);
});

it('a server whose tokens are all revoked starts and says so', async () => {
  await operate('init');
  const [only] = await asked<TokenView[]>('tokens');
  await asked('tokens', 'revoke', only?.id ?? '');
  await serve();
  expect(server?.events.map(({ event }) => event)).toContain('no_tokens');
  expect(await asked('tokens', 'create', '--project', 'default', '--scope', 'full')).toHaveProperty('token');
});

it('the socket is for the owner of the data folder alone, whatever lay there before', async () => {
  await operate('init');
  const socketFolder = join(folder, 'waypost.db.operator');
  mkdirSync(socketFolder, { mode: 0o777 });
  writeFileSync(join(socketFolder, 'socket'), 'left behind');
  await serve();
  expect(statSync(socketFolder).mode & 0o777).toBe(0o700);
  expect(statSync(join(socketFolder, 'socket')).mode & 0o777).toBe(0o600);
  expect(await asked('projects')).toHaveLength(1);
});

it('a server that was killed leaves nothing in the way', async () => {
  await operate('init');
  const killed = new WaypostProcess(['serve', '--port', '0', '--data-dir', folder, '--log-format', 'json']);
  await killed.url();
  await killed.kill();
  expect(await asked('projects')).toHaveLength(1);
});

it('commands that run at the same time wait for each other', async () => {
  await operate('init');
  const names = ['a', 'b'];
  // In processes of their own: who comes second finds the folder locked by another.
  const made = await Promise.all(names.map((name) => runWaypost(['projects', 'create', name, '--data-dir', folder])));
  expect(made.map(({ code, signal }) => [code, signal])).toEqual(names.map(() => [0, null]));
  expect((await asked<{ name: string }[]>('projects')).map(({ name }) => name).toSorted()).toEqual([
    ...names,
    'default',
  ]);
});

it('a development server keeps its accounts as they are', async () => {
  await serve('dev');
  const { code, stderr } = await operate('projects', 'create', 'shop');
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /is in use by process \d+.*; it accepts no commands, for example because it is "waypost dev"\n$/,
  );
});

it('the commands of docs/projects.md work as they stand', async () => {
  await operate('init');
  await serve();
  const page = readFileSync(new URL('../../docs/projects.md', import.meta.url), 'utf8');
  const lines = [...page.matchAll(/^waypost (.*)$/gm)].map(([, line = '']) => line);
  expect(lines.length).toBeGreaterThan(4);
  for (const line of lines) {
    const [first] = await asked<TokenView[]>('tokens');
    const args = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');
    const { code, stderr } = await operate(...args.map((arg) => (arg.startsWith('tok_') ? (first?.id ?? '') : arg)));
    expect([line, code], stderr).toEqual([line, 0]);
  }
});

it('there is nothing to work on before init', async () => {
  expect(await operate('tokens')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('"waypost init" creates a new one'),
  });
});
