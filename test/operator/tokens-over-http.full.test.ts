/** Two workers on one PostgreSQL: a token that one of them creates or revokes over HTTP is valid or invalid on the other, too. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { testFolder } from '../support/folder.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { giveCommand } from '../support/waypost-command.ts';
import { WaypostProcess } from '../support/waypost-process.ts';

interface Made {
  token: string;
  tokenId: string;
}

let folder: string;
let url: string;
let servers: WaypostProcess[];
let token: string;
let workers: [string, string];

beforeEach(async () => {
  folder = testFolder();
  url = await freshDatabase();
  const { stdout } = await giveCommand(['init', '--data-dir', folder, '--database-url', url]);
  token = /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
  servers = [];
  workers = await Promise.all([serve(), serve()]);
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.kill()));
});

/** Heartbeats are rare, so a worker that knows of a change sooner was notified. */
function serve(): Promise<string> {
  const at = ['--port', '0', '--data-dir', folder, '--database-url', url, '--log-format', 'json'];
  const server = new WaypostProcess(['serve', ...at], { WAYPOST_WORKER_TIMEOUT: '60s' });
  servers.push(server);
  return server.url();
}

function ask(at: string, method: string, path: string, as: string, body?: string): Promise<Response> {
  const headers = { authorization: `Bearer ${as}`, 'upstash-delay': '1h' };
  return fetch(`${at}/v2/${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
}

async function make(at: string, as = token): Promise<Made> {
  const reply = await ask(at, 'POST', 'waypost/tokens', as, '{"scope":"full"}');
  expect(reply.status).toBe(201);
  return (await reply.json()) as Made;
}

const revoke = async (at: string, { tokenId }: Made, as = token) =>
  (await ask(at, 'DELETE', `waypost/tokens/${tokenId}`, as)).status;
const publish = async (at: string, as: string) => (await ask(at, 'POST', 'publish/https://93.184.216.34/', as)).status;

it('accepts a new token at the other worker, and rejects it there once its revocation has a response', async () => {
  const [first, second] = workers;
  const made = await make(first);
  expect([await publish(second, made.token), await publish(first, made.token)]).toEqual([200, 200]);
  expect(await revoke(second, made)).toBe(200);
  expect([await publish(first, made.token), await publish(second, made.token)]).toEqual([401, 401]);
});

it('creates nothing with a token that was revoked at the other worker while the request was in flight', async () => {
  const [first, second] = workers;
  const stolen = await make(first);
  const late: Promise<Response>[] = [];
  const revocation = revoke(second, stolen);
  for (let count = 0; count < 8; count += 1) {
    late.push(ask(first, 'POST', 'waypost/tokens', stolen.token, '{"scope":"full"}'));
  }
  expect(await revocation).toBe(200);
  const listed = async () =>
    ((await (await ask(second, 'GET', 'waypost/tokens', token)).json()) as { tokens: unknown[] }).tokens;
  const whenAnswered = await listed();
  const statuses = new Set((await Promise.all(late)).map(({ status }) => status));
  expect([...statuses].filter((status) => status !== 201 && status !== 401)).toEqual([]);
  expect(await listed()).toEqual(whenAnswered);
});

it('keeps one full token when two revoke each other through two workers', async () => {
  const [first, second] = workers;
  for (let round = 0; round < 5; round += 1) {
    const other = await make(first);
    const [own = { tokenId: '' }] = await ownOf(first);
    const statuses = await Promise.all([
      revoke(first, other, token),
      revoke(second, { ...other, tokenId: own.tokenId }, other.token),
    ]);
    expect(statuses.toSorted()).toEqual([200, 401]);
    if (statuses[0] !== 200) ({ token } = other);
    expect(await publish(first, token)).toBe(200);
  }
});

async function ownOf(at: string): Promise<{ tokenId: string; isOwn: boolean }[]> {
  const { tokens } = (await (await ask(at, 'GET', 'waypost/tokens', token)).json()) as {
    tokens: { tokenId: string; isOwn: boolean }[];
  };
  return tokens.filter(({ isOwn }) => isOwn);
}
