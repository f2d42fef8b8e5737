/** On a shared database, all servers have applied a revocation when the command of the operator ends. */
import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { testFolder } from '../support/folder.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { type CommandResult, giveCommand } from '../support/waypost-command.ts';
import { WaypostProcess } from '../support/waypost-process.ts';

let folder: string;
let url: string;
let servers: WaypostProcess[];

beforeEach(async () => {
  folder = testFolder();
  url = await freshDatabase();
  servers = [];
  expect(await operate('init')).toMatchObject({ code: 0 });
});
afterEach(async () => {
  for (const server of servers) server.signal('SIGCONT');
  await Promise.all(servers.map((server) => server.kill()));
});

function operate(...args: string[]): Promise<CommandResult> {
  return giveCommand([...args, '--data-dir', folder, '--database-url', url], { WAYPOST_WORKER_TIMEOUT: '3s' });
}

async function makeToken(): Promise<{ id: string; token: string }> {
  const { stdout } = await operate('tokens', 'create', '--project', 'default', '--scope', 'full', '--json');
  return JSON.parse(stdout) as { id: string; token: string };
}

/** Heartbeats are rare, so a worker that knows of a change sooner was notified. */
async function serve(workerTimeout: string): Promise<string> {
  const server = new WaypostProcess(
    ['serve', '--port', '0', '--data-dir', folder, '--database-url', url, '--log-format', 'json'],
    { WAYPOST_WORKER_TIMEOUT: workerTimeout },
  );
  servers.push(server);
  return server.url();
}

async function publish(at: string, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'upstash-delay': '1h' };
  return (await fetch(`${at}/v2/publish/https://93.184.216.34/`, { method: 'POST', headers })).status;
}

it('all live workers reject a token once the command that revokes it has ended, and sign with the keys that a rotation returned', async () => {
  const urls = await Promise.all([serve('60s'), serve('60s')]);
  const { id, token } = await makeToken();
  for (const at of urls) expect(await publish(at, token)).toBe(200);
  expect(await operate('tokens', 'revoke', id)).toMatchObject({ code: 0 });
  for (const at of urls) expect(await publish(at, token)).toBe(401);
  const other = await makeToken();
  // A worker that has just looked up an unknown token, such as the revoked one, looks again after a second or when notified.
  for (const at of urls) await eventually('the new token', async () => (await publish(at, other.token)) === 200);
  const [first = '', second = ''] = urls;
  const headers = { authorization: `Bearer ${other.token}` };
  const rotated = await (await fetch(`${first}/v2/keys/rotate`, { method: 'POST', headers })).json();
  expect(await (await fetch(`${second}/v2/keys`, { headers })).json()).toEqual(rotated);
});

it('a worker that was stopped meanwhile rejects the token when it continues, before any notification', async () => {
  const at = await serve('3s');
  const { id, token } = await makeToken();
  expect(await publish(at, token)).toBe(200);
  servers[0]?.signal('SIGSTOP');
  expect(await operate('tokens', 'revoke', id)).toMatchObject({ code: 0 });
  const answer = publish(at, token); // waits in the socket's backlog
  servers[0]?.signal('SIGCONT');
  expect(await answer).toBe(401);
});

it('a live worker that has not confirmed a revocation is named, and the token is revoked nevertheless', async () => {
  const { id } = await makeToken();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    `insert into workers (id, started_at_ms, beat_at_ms, timeout_ms, leaving, accounts_version)
     values ('late', 0, (extract(epoch from clock_timestamp()) * 1000)::bigint, 600000, 0, 0)`,
  );
  await client.end();
  expect(await operate('tokens', 'revoke', id)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /is revoked in the database, but these workers have not confirmed it, and may accept the token until they do: late\n$/,
    ),
  });
  await eventually('the token to be gone', async () => !(await operate('tokens', '--json')).stdout.includes(id));
});
