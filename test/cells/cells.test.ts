/** Several cells from the outside: workers with one directory, and projects in several databases. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { testFolder } from '../support/folder.ts';
import { type InProcessServer, serveInProcess } from '../support/in-process-server.ts';
import { listen, originOf } from '../support/listen.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { type CommandResult, giveCommand, outputOf, projectWithToken } from '../support/waypost-command.ts';
import { parseExposition, sampleOf } from '../telemetry/metrics/exposition.ts';

let folder: string;
let databaseUrl: string;
let env: Record<string, string>;
let receiver: Server;
let received: string[];
const servers: InProcessServer[] = [];

beforeEach(async () => {
  folder = testFolder();
  databaseUrl = await freshDatabase();
  env = { WAYPOST_DATABASE_URL: databaseUrl, WAYPOST_DATA_DIR: folder, WAYPOST_ALLOW_DESTINATIONS: '127.0.0.1' };
  received = [];
  receiver = createServer(async (request, response) => {
    received.push(await bodyOf(request));
    response.end();
  });
  await listen(receiver);
  await done('init');
});

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  receiver.close();
});

async function bodyOf(request: IncomingMessage): Promise<string> {
  return Buffer.concat(await request.toArray()).toString();
}

const give = (...args: string[]): Promise<CommandResult> => giveCommand(args, env);

const done = (...args: string[]): Promise<string> => outputOf(args, env);

async function serve(): Promise<InProcessServer> {
  const server = await serveInProcess(['serve'], env);
  servers.push(server);
  return server;
}

async function publish(
  { url }: InProcessServer,
  token: string,
  body: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${url}/v2/publish/${originOf(receiver)}/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, ...headers },
    body,
  });
}

async function execute<Row extends object>(text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query<Row>(text);
  await client.end();
  return rows;
}

async function countIn(table: string): Promise<number> {
  const [row] = await execute<{ count: number }>(`select count(*)::int as count from ${table}`);
  return row?.count ?? 0;
}

const opened = (server: InProcessServer, name: string) =>
  eventually(`the worker opens ${name}`, () =>
    server.events.some((line) => line.event === 'cell_opened' && line['cell'] === name),
  );
const isReceived = (...bodies: string[]) =>
  eventually(`${bodies} are received`, () => bodies.every((body) => received.includes(body)));

it('serves a cell that is added while workers run, and places new projects there', async () => {
  const [one, two] = await Promise.all([serve(), serve()]);
  await done('cells', 'add', 'second', '--schema', 'second');
  const token = await projectWithToken('shop', env);
  await Promise.all([opened(one, 'second'), opened(two, 'second')]);
  expect((await publish(one, token, 'by one')).status).toBe(200);
  expect((await publish(two, token, 'by two')).status).toBe(200);
  await isReceived('by one', 'by two');
  expect(await countIn('second.contents')).toBe(2);
  expect(await countIn('contents')).toBe(0);
});

it('finds a message of any cell through any worker, by an id that is unique among cells', async () => {
  await done('cells', 'add', 'second', '--schema', 'second');
  const [one, two] = await Promise.all([serve(), serve()]);
  const token = await projectWithToken('shop', env);
  await Promise.all([opened(one, 'second'), opened(two, 'second')]);
  const { messageId } = (await (await publish(one, token, 'hello')).json()) as { messageId: string };
  const found = await fetch(`${two.url}/v2/logs?messageId=${messageId}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(await found.json()).toMatchObject({
    events: expect.arrayContaining([expect.objectContaining({ messageId })]),
  });
  const headers = { authorization: `Bearer ${token}` };
  const explained = await fetch(`${two.url}/v2/messages/${messageId}/explain`, { headers });
  expect(await explained.json()).toMatchObject({ cell: 'second' });
});

it('moves a project to another cell and back while it is in use, and delivers everything once', async () => {
  const token = await projectWithToken('shop', env);
  await done('cells', 'add', 'second', '--schema', 'second');
  const [one, two] = await Promise.all([serve(), serve()]);
  await Promise.all([opened(one, 'second'), opened(two, 'second')]);
  const accepted: string[] = [];
  const refusals = new Set<number>();
  let isMoving = true;
  const publishing = (async () => {
    for (let count = 0; isMoving || accepted.length < 20; count += 1) {
      const { status, headers } = await publish(count % 2 === 0 ? one : two, token, `message ${count}`);
      if (status === 200) accepted.push(`message ${count}`);
      else refusals.add(headers.has('retry-after') ? status : 0);
    }
  })();
  const { stderr } = await give('projects', 'move', 'shop', '--to', 'second');
  expect(stderr).toMatch(/The project "shop" is now in the cell "second"\. It was unavailable for \d+ ms/);
  expect((await give('projects', 'move', 'shop', '--to', 'second')).stderr).toContain(
    'lives in the cell "second" already',
  );
  const counted = await countIn('second.contents');
  expect(await countIn('contents')).toBe(0);
  await done('projects', 'move', 'shop', '--to', 'first');
  isMoving = false;
  await publishing;
  expect(counted).toBeGreaterThan(0);
  expect([...refusals].filter((status) => status !== 503)).toEqual([]);
  await isReceived(...accepted);
  expect(received.toSorted()).toEqual([...new Set(received)].toSorted());
  expect(await countIn('second.contents')).toBe(0);
});

it('reports why a project cannot be moved', async () => {
  await done('cells', 'add', 'second', '--schema', 'second');
  const said = async (...args: string[]) => (await give('projects', 'move', ...args)).stderr;
  expect(await said('nobody', '--to', 'second')).toContain('there is no project "nobody"');
  expect(await said('default', '--to', 'nowhere')).toContain('there is no cell "nowhere"');
  expect(await said('default', '--cancel')).toContain('the project "default" is not being moved');
  expect(await said('default')).toContain('give --to or --cancel');
});

it('lists cells with their contents', async () => {
  await done('cells', 'add', 'second', '--schema', 'second');
  await done('projects', 'create', 'shop');
  expect(JSON.parse(await done('cells', '--json'))).toEqual([
    expect.objectContaining({ name: 'first', projects: 1, unfinished: 0, isDraining: false }),
    expect.objectContaining({ name: 'second', projects: 1, unfinished: 0, isDraining: false }),
  ]);
  await done('cells', 'drain', 'second');
  expect(await done('cells')).toMatch(/^second .*schema second.* draining$/m);
});

it('is examined by the doctor with all of its cells', async () => {
  await done('cells', 'add', 'second', '--schema', 'second');
  await done('projects', 'create', 'shop');
  const examined = JSON.parse(await done('doctor', '--json'));
  expect(examined).toMatchObject({ isSound: true, cell: 'first', cells: [{ name: 'second', isSound: true }] });
  expect((await done('doctor')).match(/^cell \w+: 0 unfinished messages/gm)).toEqual([
    'cell first: 0 unfinished messages',
    'cell second: 0 unfinished messages',
  ]);
});

it('is unsound while a cell has rows of a project that is placed in another cell', async () => {
  await done('cells', 'add', 'second', '--schema', 'second');
  await execute("insert into second.projects select id, name, '', '', 0 from projects limit 1");
  const { code, stdout } = await give('doctor');
  expect([code, stdout]).toEqual([
    1,
    expect.stringContaining('FAIL  Every project is written to in the cell that the directory names'),
  ]);
});

describe('a cell is added', () => {
  it('again after an interruption, and never under two names', async () => {
    await done('cells', 'add', 'second', '--schema', 'second');
    await done('cells', 'add', 'second', '--schema', 'second');
    expect(await give('cells', 'add', 'third', '--schema', 'second')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('this database is a cell already'),
    });
    expect(await give('cells', 'add', 'second', '--schema', 'third')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is a cell "second" already'),
    });
  });

  it('only if it is empty', async () => {
    const other = await freshDatabase();
    env['WAYPOST_DATABASE_URL'] = other;
    await done('init');
    env['WAYPOST_DATABASE_URL'] = databaseUrl;
    expect(await give('cells', 'add', 'other', '--url', other)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('a new cell is empty'),
    });
  });

  it.each([
    ['without a location', []],
    ['with two locations', ['--url', 'postgres://localhost/x', '--schema', 'x']],
  ])('not %s', async (_, args) => {
    expect(await give('cells', 'add', 'second', ...args)).toMatchObject({ code: 2 });
  });
});

describe('while a cell is unavailable', () => {
  let proxy: TcpProxy;
  let port: number;
  let tokens: { first: string; second: string };

  beforeEach(async () => {
    const second = await freshDatabase();
    port = Number(new URL(second).port);
    proxy = await TcpProxy.open(port);
    const first = await projectWithToken('in-first', env);
    await done('cells', 'add', 'second', '--url', proxy.through(second));
    tokens = { first, second: await projectWithToken('in-second', env) };
  });
  afterEach(() => proxy.close());

  const takeAway = (): void => {
    proxy.pointTo(1); // a port without a listener
    proxy.cutAll();
  };

  it('rejects requests of its projects with 503, serves all others, and names the cell in /readyz', async () => {
    const server = await serve();
    await opened(server, 'second');
    takeAway();
    expect((await publish(server, tokens.first, 'accepted meanwhile')).status).toBe(200);
    const ready = await fetch(`${server.url}/readyz`);
    const reported = {
      status: 'ready',
      away: ['second'],
      reasons: { second: expect.stringContaining('cannot be reached') },
    };
    expect([ready.status, await ready.json()]).toEqual([200, reported]);
    await isReceived('accepted meanwhile');
    const refused = await publish(server, tokens.second, 'refused');
    expect([refused.status, refused.headers.has('retry-after')]).toEqual([503, true]);
  });

  it('/metrics reports it as unavailable, reports the other cells, and reports its backlog after recovery', async () => {
    env['WAYPOST_METRICS_ADDRESS'] = '0';
    const server = await serve();
    await opened(server, 'second');
    for (const token of [tokens.first, tokens.second, tokens.second]) {
      expect((await publish(server, token, 'later', { 'upstash-delay': '1h' })).status).toBe(200);
    }
    const reported = async (sample: string) =>
      sampleOf(parseExposition(await (await fetch(server.metricsUrl ?? '')).text()), sample);
    takeAway();
    expect(await reported('waypost_cell_away{cell="second"}')).toBe(1);
    expect(await reported('waypost_backlog_messages{cell="first",state="scheduled"}')).toBe(1);
    proxy.pointTo(port);
    await eventually('/metrics reports the cell', async () => {
      const scheduled = await reported('waypost_backlog_messages{cell="second",state="scheduled"}');
      return scheduled === 2;
    });
    expect(await reported('waypost_cell_away{cell="second"}')).toBe(0);
  });

  it('a worker starts nevertheless, and serves the cell after its recovery', async () => {
    takeAway();
    const server = await serve();
    expect((await publish(server, tokens.first, 'first')).status).toBe(200);
    expect((await publish(server, tokens.second, 'too early')).status).toBe(503);
    proxy.pointTo(port);
    await opened(server, 'second');
    expect((await publish(server, tokens.second, 'second')).status).toBe(200);
  });
});

describe('while the directory is unavailable', () => {
  it('known projects of other cells are served', async () => {
    const proxy = await TcpProxy.open(Number(new URL(databaseUrl).port));
    const first = await projectWithToken('in-first', env);
    await done('cells', 'add', 'second', '--url', await freshDatabase());
    const second = await projectWithToken('in-second', env);
    env['WAYPOST_DATABASE_URL'] = proxy.through(databaseUrl);
    env['WAYPOST_WORKER_TIMEOUT'] = '3s';
    const server = await serve();
    await opened(server, 'second');
    proxy.pointTo(1); // a port without a listener
    proxy.cutAll();
    await eventually('the worker does not know whether its accounts are current', () =>
      server.events.some(({ event }) => event === 'fence_closed'),
    );
    expect((await publish(server, second, 'accepted meanwhile')).status).toBe(200);
    expect((await publish(server, first, 'refused')).status).toBe(503);
    await isReceived('accepted meanwhile');
    expect(await (await fetch(`${server.url}/readyz`)).json()).toMatchObject({ status: 'ready', away: ['first'] });
    await proxy.close();
  });
});
