/**
 * Secrets are not leaked: every secret value is a random word, a server process has every kind of error, and the test searches
 * everything that it printed and saved.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { listen } from '../support/listen.ts';
import { giveCommand } from '../support/waypost-command.ts';
import { runWaypost, WaypostProcess } from '../support/waypost-process.ts';

const newCanary = (): string => `canary${randomBytes(12).toString('hex')}`;

/** What callers put into their requests. */
const OF_CALLERS = {
  header: newCanary(),
  body: newCanary(),
  query: newCanary(),
  deduplicationId: newCanary(),
  ownAuthorization: newCanary(),
  wrongToken: newCanary(),
  answer: newCanary(),
};

const OTHER_KEY = randomBytes(32).toString('base64');

let folder: string;
let endpoint: Server;
let endpointUrl: string;
/** Full, then read-only. */
const tokens: string[] = [];
const signingKeys: string[] = [];
let encryptionKey: string;
const servers: WaypostProcess[] = [];
/** What the server processes said, and what callers were refused with. */
let said = '';
const refusals: string[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waypost-secrets-'));
  endpoint = createServer((request, response) => {
    request.resume();
    response.writeHead(request.url?.startsWith('/ok') ? 200 : 500, { 'x-answer': OF_CALLERS.answer });
    response.end(OF_CALLERS.answer);
  });
  endpointUrl = await listen(endpoint);
  await makeTrouble();
});

afterAll(async () => {
  for (const server of servers) await server.kill();
  endpoint.closeAllConnections();
  await new Promise((resolve) => endpoint.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

it('tells nothing secret to its log', () => {
  expect(said).toContain('"event":"listening"');
  expect(found(said, secrets())).toEqual([]);
});

it('tells nothing secret in a refusal, apart from the URL that its caller sent', () => {
  expect(refusals.length).toBeGreaterThan(25);
  const { query: _own, ...others } = OF_CALLERS;
  expect(found(refusals.join('\n'), [...credentials(), ...Object.values(others)])).toEqual([]);
});

it('keeps no credential readable in the database', () => {
  const database = readdirSync(folder)
    .filter((name) => name.startsWith('waypost.db') && statSync(join(folder, name)).isFile())
    .map((name) => readFileSync(join(folder, name), 'latin1'))
    .join('');
  expect(database).toContain(OF_CALLERS.body); // it is the database that messages are in
  expect(found(database, [...credentials(), OF_CALLERS.wrongToken])).toEqual([]);
});

function credentials(): string[] {
  const passwords = tokens.map((token) => JSON.parse(Buffer.from(token, 'base64').toString('utf8')).Password as string);
  return [...tokens, ...tokens.map(encodeURIComponent), ...passwords, ...signingKeys, encryptionKey, OTHER_KEY];
}

function secrets(): string[] {
  return [...credentials(), ...Object.values(OF_CALLERS)];
}

function found(text: string, words: readonly string[]): string[] {
  return words.filter((word) => text.includes(word));
}

/** A life of a server in which everything happens that it has something to say about. */
async function makeTrouble(): Promise<void> {
  for (const args of [[], ['--add-token', '--read-only']]) {
    const { stdout } = await giveCommand(['init', '--data-dir', folder, ...args]);
    tokens.push(/^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '');
    for (const [, key = ''] of stdout.matchAll(/SIGNING_KEY=(.*)$/gm)) signingKeys.push(key);
  }
  encryptionKey = readFileSync(join(folder, 'encryption.key'), 'utf8').trim();
  expect([tokens.length, signingKeys.length, encryptionKey.length]).toEqual([2, 2, 44]);

  const first = startServer('--requests-per-second-max', '1000', '--message-bytes-max', '2000');
  const url = await first.url();
  await call(url);
  await makeToken(url);
  await sendGarbage(new URL(url));
  await deliver(url);
  await giveCommand(['tokens', 'create', '--project', 'default', '--scope', 'full', '--data-dir', folder]);
  await first.kill();
  said += first.stdout + first.stderr;

  // What was in flight is recovered, and drained with requests still coming.
  const second = startServer('--messages-per-day-max', '1');
  await publish(await second.url(), `${endpointUrl}/ok`);
  await publish(await second.url(), `${endpointUrl}/ok`);
  second.signal('SIGTERM');
  const { stdout, stderr } = await second.waitForExit();
  said += stdout + stderr;

  // A key that is not the one of this database, and one that cannot be a key.
  for (const [key, code] of [
    [OTHER_KEY, 1],
    [`${OTHER_KEY}x`, 2],
  ] as const) {
    const env = { WAYPOST_ENCRYPTION_KEY: key };
    const ended = await runWaypost(['serve', '--port', '0', '--data-dir', folder], env);
    expect(ended.code).toBe(code);
    said += ended.stdout + ended.stderr;
  }
}

/** Whatever goes wrong, it is ended with the tests. */
function startServer(...args: string[]): WaypostProcess {
  const common = ['--port', '0', '--data-dir', folder, '--log-format', 'json', '--allow-destinations', 'loopback'];
  const server = new WaypostProcess(['serve', ...common, ...args]);
  servers.push(server);
  return server;
}

/** Over HTTP, and uses it. */
async function makeToken(url: string): Promise<void> {
  const asOwner = (token = '') => ({ authorization: `Bearer ${token}` });
  const made = await fetch(`${url}/v2/waypost/tokens`, {
    method: 'POST',
    headers: asOwner(tokens[0]),
    body: '{"scope":"full"}',
  });
  const { token } = (await made.json()) as { token: string };
  tokens.push(token);
  expect((await fetch(`${url}/v2/waypost/tokens`, { headers: asOwner(token) })).status).toBe(200);
}

/** Requests that are refused for every reason there is. */
async function call(url: string): Promise<void> {
  const [full = '', readOnly = ''] = tokens;
  const destination = `${endpointUrl}/ok?secret=${OF_CALLERS.query}`;
  const paths = [
    ...['GET /v2/logs', 'GET /v2/keys', 'DELETE /v2/messages', 'PUT /v2/logs', 'GET /v2/nothing'],
    ...['GET /v2/waypost/tokens', 'POST /v2/waypost/tokens', 'DELETE /v2/waypost/tokens/x'],
    ...['GET /v2/messages/msg_x', 'POST /v2/dlq/retry/x', 'GET /v2/topics/none', 'POST /v2/batch'],
    `POST /v2/publish/${destination}`,
    'POST /v2/publish/none',
    `POST /v2/publish/example.com?secret=${OF_CALLERS.query}`,
    `POST /v2/publish/http://10.0.0.1/?secret=${OF_CALLERS.query}`,
    `POST /v2/publish/http://nothing.invalid/?secret=${OF_CALLERS.query}`,
  ];
  for (const path of paths) {
    const [method = '', target = ''] = path.split(' ');
    const inQuery = (token: string): string =>
      `${target}${target.includes('?') ? '&' : '?'}qstash_token=${encodeURIComponent(token)}`;
    await ask(url, method, target, {});
    await ask(url, method, target, { authorization: `Bearer ${OF_CALLERS.wrongToken}` });
    await ask(url, method, target, { authorization: `Basic ${full}` });
    await ask(url, method, inQuery(OF_CALLERS.wrongToken), {});
    await ask(url, method, inQuery(readOnly), { authorization: `Bearer ${OF_CALLERS.ownAuthorization}` });
    await ask(url, method, inQuery(full), { 'upstash-retries': OF_CALLERS.header.length.toString() });
  }
  const asOwner = { authorization: `Bearer ${full}` };
  const target = `/v2/publish/${destination}`;
  await ask(url, 'POST', target, asOwner, OF_CALLERS.body.repeat(100));
  await ask(url, 'POST', target, { ...asOwner, 'upstash-forward-connection': OF_CALLERS.header });
  await ask(url, 'POST', target, { ...asOwner, 'upstash-method': 'NONE' });
  await ask(url, 'POST', '/v2/batch', asOwner, `[{"destination":"x","body":"${OF_CALLERS.body}"`);
  await ask(url, 'POST', '/v2/batch', asOwner, JSON.stringify([{ destination: 'x:', body: OF_CALLERS.body }]));
  await ask(url, 'PATCH', '/v2/topics/none', asOwner, `{"headers":{"X":"${OF_CALLERS.header}"}}`);
}

async function ask(
  url: string,
  method: string,
  target: string,
  headers: Record<string, string>,
  body = OF_CALLERS.body,
): Promise<void> {
  const forwarded = { 'upstash-forward-x-secret': OF_CALLERS.header, cookie: OF_CALLERS.header };
  const answer = await fetch(`${url}${target}`, {
    method,
    headers: { ...forwarded, ...headers },
    ...(method === 'GET' ? {} : { body }),
  });
  const text = await answer.text();
  if (answer.status >= 400) refusals.push(text);
}

/** What is no HTTP is answered by the edge itself. */
async function sendGarbage({ hostname, port }: URL): Promise<void> {
  const [full = ''] = tokens;
  for (const text of [
    `${full}\r\n\r\n`,
    `GET /v2/logs?qstash_token=${full} HTTP/9.9\r\n\r\n`,
    `POST /v2/publish/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${full}\r\nContent-Length: x\r\n\r\n`,
    `GET /v2/logs HTTP/1.1\r\nAuthorization: Bearer ${full}\r\nX: ${OF_CALLERS.header.repeat(10_000)}\r\n\r\n`,
  ]) {
    refusals.push(
      await new Promise<string>((resolve) => {
        let answer = '';
        const socket = connect(Number(port), hostname, () => socket.end(text));
        socket.on('data', (chunk) => {
          answer += chunk.toString();
        });
        socket.on('error', () => socket.destroy()); // reset while it still sends
        socket.on('close', () => resolve(answer));
      }),
    );
  }
}

/** Deliveries that succeed, fail and are refused. */
async function deliver(url: string): Promise<void> {
  for (const target of [`${endpointUrl}/ok`, `${endpointUrl}/broken`, 'http://127.0.0.1:9/']) {
    await publish(url, `${target}?secret=${OF_CALLERS.query}`);
    // A webhook's way: the token in the query, credentials of its own in Authorization.
    const inQuery = `${target}?qstash_token=${encodeURIComponent(tokens[0] ?? '')}&secret=${OF_CALLERS.query}`;
    await publish(url, inQuery, { authorization: `Bearer ${OF_CALLERS.ownAuthorization}` });
  }
  const once = { 'upstash-deduplication-id': OF_CALLERS.deduplicationId };
  for (let time = 0; time < 2; time += 1) await publish(url, `${endpointUrl}/ok`, once);
  const headers = { authorization: `Bearer ${tokens[0]}` };
  await eventually('the failures', async () => {
    const { messages } = (await (await fetch(`${url}/v2/dlq`, { headers })).json()) as { messages: unknown[] };
    return messages.length === 4;
  });
}

async function publish(url: string, destination: string, headers: Record<string, string> = {}): Promise<void> {
  const own = {
    authorization: `Bearer ${tokens[0]}`,
    'upstash-retries': '0',
    'upstash-forward-x-secret': OF_CALLERS.header,
    'upstash-forward-authorization': OF_CALLERS.ownAuthorization,
    'upstash-header-forward': 'true',
  };
  const answer = await fetch(`${url}/v2/publish/${destination}`, {
    method: 'POST',
    headers: { ...own, ...headers },
    body: OF_CALLERS.body,
  });
  if (answer.status >= 400) refusals.push(await answer.text());
}
