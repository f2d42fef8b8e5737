/** The verbs that send requests to a running server. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EXIT } from '../../../src/cli/command.ts';
import { DEVELOPMENT_ACCOUNTS } from '../../../src/config/development.ts';
import { eventually } from '../../support/eventually.ts';
import { listen } from '../../support/listen.ts';
import { type CommandResult, giveCommand } from '../../support/waypost-command.ts';
import { askedServer, NOBODY, wordsOf } from './support.ts';

let arrived: { url: string; headers: IncomingMessage['headers']; body: string }[] = [];
const endpoint = createServer((request, response) => {
  void text(request).then((body) => {
    arrived.push({ url: request.url ?? '', headers: request.headers, body });
    response.end('fine');
  });
});
const server = askedServer();
const { waypost, done, asJson } = server;
let folder: string;
let there: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waypost-asking-'));
  there = await listen(endpoint);
});
afterAll(async () => {
  endpoint.closeAllConnections();
  endpoint.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  arrived = [];
});

const answering = (reply: string, ...args: string[]): Promise<CommandResult> => giveCommand(args, server.env, reply);

const later = { destination: `${NOBODY}/later`, headers: { 'Upstash-Delay': '1h' } };
const delayed = (...args: string[]) => done('publish', there, '--delay', '1h', ...args).then((id) => id.trim());
async function bury(path: string): Promise<string> {
  const id = (await done('publish', `${NOBODY}/${path}`, '--retries', '0', '--body', path)).trim();
  const found = async () =>
    (await asJson<{ dlqId: string; messageId: string }[]>('dlq', 'list')).find(({ messageId }) => messageId === id);
  return (await eventually(() => `${id} in the DLQ`, found)).dlqId;
}

describe('publish', () => {
  it('delivers body and headers, and prints the id', async () => {
    expect(await done('publish', `${there}/orders?a=b`, '--body', '{"order":42}', '-H', 'X-Shop: eu')).toMatch(
      /^msg_\w+\n$/,
    );
    const [got] = await eventually('the delivery', () => arrived.length > 0 && arrived);
    expect(got).toMatchObject({
      url: '/orders?a=b',
      body: '{"order":42}',
      headers: { 'x-shop': 'eu', 'content-type': 'application/json' },
    });
  });

  it('takes the options of a message as options, in either spelling, and as headers', async () => {
    const first = await delayed('--label', 'a', '--flowControlKey=crm', '--flow-control-value', 'rate=3');
    const second = await delayed('-H', 'Upstash-Label: b');
    const [{ label, flowControlKey }, other] = (await Promise.all(
      [first, second].map((id) => asJson<{ label: string; flowControlKey?: string }>('messages', 'show', id)),
    )) as [{ label: string; flowControlKey?: string }, { label: string }];
    expect([label, flowControlKey, other.label]).toEqual(['a', 'crm', 'b']);
    await done('messages', 'cancel', first, second, '--yes');
  });

  it('sends a file as it is, and many messages in one request', async () => {
    const file = join(folder, 'body');
    writeFileSync(file, Buffer.from([0, 255, 10]));
    const id = (await done('publish', there, '-f', file, '--delay', '1h')).trim();
    expect(await asJson('messages', 'show', id)).toMatchObject({ bodyBase64: 'AP8K' });
    writeFileSync(file, JSON.stringify([{ destination: `${there}/1` }, { destination: 'nowhere' }]));
    const sent = await waypost('batch', '-f', file);
    expect(sent).toMatchObject({ code: 1, stderr: 'waypost: 1 of 2 messages were refused\n' });
    expect(sent.stdout).toMatch(/^msg_\w+\nrefused: .*\n$/);
    await done('messages', 'cancel', id, '--yes');
  });

  it('sends a file of any length in requests of 500 messages, and shows how far it is', async () => {
    server.account = 3;
    const file = join(folder, 'many.json');
    writeFileSync(file, JSON.stringify(Array.from({ length: 1_200 }, () => later)));
    const { code, stdout, stderr } = await answering('', 'batch', '-f', file);
    expect([code, new Set(stdout.trimEnd().split('\n')).size]).toEqual([0, 1_200]);
    expect(stderr.match(/\d+ of 1200 messages/g)).toEqual(
      [500, 1_000, 1_200].map((sent) => `${sent} of 1200 messages`),
    );
    expect(await done('messages', 'cancel', '--all', '--yes')).toBe('Cancelled 1200 messages.\n');
    server.account = 0;
  });

  it('says which messages of a file were sent when the server refuses a later request', async () => {
    server.account = 3;
    const file = join(folder, 'broken.json');
    writeFileSync(file, JSON.stringify([...Array.from({ length: 500 }, () => later), 7]));
    const { code, stdout, stderr } = await waypost('batch', '-f', file);
    expect([code, stdout.trimEnd().split('\n').length]).toEqual([1, 500]);
    expect(stderr).toMatch(/^waypost: .+; only the first 500 of 501 messages were sent\n$/);
    expect(await done('messages', 'cancel', '--all', '--yes')).toBe('Cancelled 500 messages.\n');
    server.account = 0;
  });

  it.each([
    ['{', 'the file is not JSON'],
    ['{}', 'the file must be an array of messages'],
  ])('refuses a file of messages that holds %s', async (text, reason) => {
    const file = join(folder, 'no.json');
    writeFileSync(file, text);
    expect(await waypost('batch', '-f', file)).toMatchObject({ code: 2, stderr: expect.stringContaining(reason) });
  });

  it('goes through queues and starts runs too', async () => {
    const id = (await done('enqueue', 'invoices', there, '--body', 'a')).trim();
    expect(id).toMatch(/^msg_/);
    expect(await done('queues')).toMatch(/^QUEUE .*\ninvoices .* running\n$/);
    expect(await done('trigger', `${NOBODY}/wf`, '--workflow-run-id', 'mine', '--delay', '1h')).toBe('mine\n');
    expect(await done('explain', 'mine')).toMatch(/^.+\n$/);
    expect(await done('runs', 'cancel', 'mine', '--yes')).toBe('Cancelled 1 run.\n');
    expect(await done('notify', 'unknown-event', '--body', '{}')).toBe('No run waits for this event.\n');
  });
});

describe('messages', () => {
  it('are listed with why they wait, and explained in the words of the server', async () => {
    const id = await delayed('--label', 'listed');
    const { explanation } = await asJson<{ explanation: string }>('explain', id);
    expect(await done('explain', id)).toBe(`${explanation}\n`);
    const [headings, row] = (await done('messages', '--label', 'listed')).split('\n');
    expect(headings).toMatch(/^MESSAGE +STATE +CREATED \(UTC\) +URL +WHY$/);
    expect(row).toContain(id);
    expect(row).toContain(explanation.slice(0, 10));
    await done('messages', 'cancel', id, '--yes');
  });

  it('that failed are explained with why', async () => {
    const id = (await done('publish', `${NOBODY}/refused`)).trim();
    const retry = /^Waits for retry 1 at \S+Z: connection refused\.\n$/;
    await eventually('the reason', async () => retry.test(await done('explain', id)));
    await waypost('messages', 'cancel', id, '--yes');
  });

  it('says that there are more than it shows', async () => {
    for (let n = 0; n < 21; n += 1) await delayed('--label', 'many');
    expect(await waypost('messages', '--label', 'many')).toMatchObject({
      stdout: expect.stringMatching(/^(.*\n){21}$/),
      stderr: 'Showing the first 20; use --count for more.\n',
    });
    expect((await asJson<unknown[]>('messages', '--label', 'many', '--count', '21')).length).toBe(21);
    expect(await done('messages', 'cancel', '--label', 'many', '--yes')).toBe('Cancelled 21 messages.\n');
  });

  it('are delivered now when they are retried before their time', async () => {
    const id = await delayed('--body', 'early');
    expect(await done('messages', 'retry', id)).toBe(`Due now: ${id}\n`);
    await eventually('the delivery', () => arrived.some(({ body }) => body === 'early'));
  });

  it('are cancelled only when somebody agrees, who is told how many and where', async () => {
    const id = await delayed('--label', 'kept');
    await delayed('--label', 'kept');
    const cancel = ['messages', 'cancel', '--label', 'kept'];
    expect(await done(...cancel, '--dry-run')).toBe(`Would cancel 2 messages at ${server.url}.\n`);
    expect(await waypost(...cancel)).toEqual({
      code: 2,
      stdout: '',
      stderr: `waypost: this would cancel 2 messages at ${server.url}: without an interactive terminal, --yes is required\n`,
    });
    expect(await answering('', ...cancel)).toEqual({
      code: 1,
      stdout: '',
      stderr: `Cancel 2 messages at ${server.url}? [y/N] waypost: nothing was done\n`,
    });
    expect(await asJson('messages', 'show', id)).toMatchObject({ messageId: id });
    expect(await answering('y', ...cancel)).toMatchObject({ code: 0, stdout: 'Cancelled 2 messages.\n' });
    expect(await waypost('messages', 'show', id)).toMatchObject({ code: 3 });
  });

  it.each([
    [['cancel'], 'which messages? Give ids, filters, or --all'],
    [['cancel', '--label', 'a', '--count', '9'], '--count: there is no such option'],
    [['cancel', '--all', '--label', 'a'], '--all: cannot be combined with ids or filters'],
    [['cancel', 'msg_a', '--label', 'a'], 'ids and filters cannot be combined'],
    [['list', '--from-date', 'soon'], '--from-date: must be a time such as 2026-01-31T13:05Z, not "soon"'],
    [['show'], 'messages show: <message id> is missing'],
  ])('are left alone by %j', async (args, complaint) => {
    expect(await waypost('messages', ...args)).toEqual({ code: 2, stdout: '', stderr: `waypost: ${complaint}\n` });
  });
});

describe('the DLQ', () => {
  it('is listed, retried and deleted, all of it or what filters match', async () => {
    server.account = 1;
    const first = await bury('a');
    await bury('b');
    expect(await done('dlq')).toMatch(/^DLQ ID .*\n(.*http:\/\/127\.0\.0\.1:9\/[ab]\n){2}$/);
    expect(await asJson('dlq', 'show', first)).toMatchObject({ url: `${NOBODY}/a`, body: 'a' });
    expect(await done('explain', first)).toMatch(/^.+\n$/);
    expect(await done('dlq', 'retry', '--url', `${NOBODY}/a`, '--dry-run')).toBe(
      `Would retry 1 entry of the DLQ at ${server.url}.\n`,
    );
    expect(await done('dlq', 'retry', first, '--yes')).toBe('Retried 1 entry of the DLQ.\n');
    expect(await waypost('dlq', 'retry', first, '--yes')).toMatchObject({ code: 3 });
    const id = (await asJson<{ messageId: string }[]>('dlq', '--url', `${NOBODY}/b`))[0]?.messageId ?? '';
    expect(await waypost('messages', 'retry', id)).toMatchObject({
      code: 2,
      stderr: `waypost: this would retry 1 entry of the DLQ at ${server.url}: without an interactive terminal, --yes is required\n`,
    });
    expect(await waypost('messages', 'retry', 'msg_unknown', '--yes')).toMatchObject({
      code: 3,
      stderr: 'waypost: none of them is unfinished or in the DLQ\n',
    });
    expect(await asJson('dlq', 'delete', '--url', `${NOBODY}/b`, '--yes')).toEqual({ count: 1, isDryRun: false });
    expect(await waypost('dlq', 'delete', '--url', `${NOBODY}/b`, '--yes')).toEqual({
      code: 3,
      stdout: '',
      stderr: 'waypost: no entries of the DLQ match\n',
    });
    server.account = 0;
  });

  it('is emptied page after page', async () => {
    server.account = 2;
    const items = Array.from({ length: 130 }, () => ({
      destination: `${NOBODY}/p`,
      headers: { 'Upstash-Retries': '0' },
    }));
    const file = join(folder, 'batch.json');
    writeFileSync(file, JSON.stringify(items));
    await done('batch', '-f', file);
    const all = `Would delete 130 entries of the DLQ at ${server.url}.\n`;
    await eventually('130 entries', async () => (await done('dlq', 'delete', '--all', '--dry-run')) === all);
    expect(await answering('yes', 'dlq', 'delete', '--all')).toEqual({
      code: 0,
      stdout: 'Deleted 130 entries of the DLQ.\n',
      stderr:
        '\r130 entries of the DLQ counted\n' +
        `Delete 130 entries of the DLQ at ${server.url}? [y/N] ` +
        `\r[${'#'.repeat(18)}      ] 100 of 130\r[${'#'.repeat(24)}] 130 of 130\n`,
    });
    server.account = 0;
  });
});

it('JSON cannot control the terminal, whatever is in a message', async () => {
  const body = 'a\u009b31mRED\u009d0;title\u009c \u202Egnp\u2069 \u007f \u{E0041} é😀';
  const id = await delayed('--body', body);
  for (const args of [
    ['messages', 'show', id],
    ['messages', 'show', id, '--json'],
  ]) {
    const shown = await done(...args);
    expect(shown).not.toMatch(/[\u007f-\u009f\p{Cf}]/u);
    expect(shown).toContain('é😀');
    expect(JSON.parse(shown)).toMatchObject({ body });
  }
  const noted = await delayed('-H', 'X-Note: a\u009b31m');
  const logged = await done('logs', '--message-id', noted, '--json');
  expect(logged).not.toMatch(/[\u007f-\u009f]/);
  expect(logged).toContain('\\u009b31m');
});

describe('logs', () => {
  it('show the newest last, as text or as a line of JSON each', async () => {
    const id = await delayed('--label', 'logged');
    await done('messages', 'cancel', id, '--yes');
    const lines = (await done('logs', '--message-id', id)).trimEnd().split('\n');
    expect(lines.map((line) => line.split(/ {2,}/)[1])).toEqual(expect.arrayContaining(['CREATED', 'CANCELED']));
    expect(lines[0]).toContain('CREATED');
    const entries = (await done('logs', '--message-id', id, '--json')).trimEnd().split('\n');
    expect(entries.map((line) => (JSON.parse(line) as { messageId: string }).messageId)).toEqual(lines.map(() => id));
  });

  it('end without a word when nobody reads on', async () => {
    const command = join(import.meta.dirname, '../../../bin/waypost.js');
    const child = spawn(process.execPath, [command, 'logs', '-f'], { env: { ...process.env, ...server.env } });
    let stderr = '';
    child.stderr.on('data', (bytes: Buffer) => {
      stderr += bytes.toString();
    });
    const closed = once(child, 'close');
    await eventually('the stream to be open', () => stderr !== '');
    child.stdout.destroy();
    await delayed('--label', 'unread');
    expect(await closed).toEqual([0, null]);
    expect(stderr).toBe(`Following the log at ${server.url}.\n`);
    await done('messages', 'cancel', '--label', 'unread', '--yes');
  });

  it('cannot follow by a time', async () => {
    expect(await waypost('logs', '-f', '--from-date', '2026-01-31')).toMatchObject({
      code: 2,
      stderr: 'waypost: --follow: cannot be combined with the filter fromDate\n',
    });
  });
});

it('errors say URL group, as the commands do, where the interface says topic', async () => {
  for (const args of [
    ['groups', 'show', 'nobodys'],
    ['publish', 'nobodys'],
  ]) {
    const { code, stderr } = await waypost(...args);
    expect([code, stderr]).toEqual([EXIT.notFound, 'waypost: URL group nobodys not found\n']);
  }
  expect((await waypost('groups', 'show', 'a b')).stderr).toContain('invalid URL group name a b');
});

it('names that URL parsers remove from a path reach the server as they are', async () => {
  expect(await done('queues', 'delete', '..', '--yes')).toBe('Deleted ...\n');
  await waypost('queues', 'delete', '..', '--yes', '--server', there);
  await waypost('schedules', 'delete', '.', '--yes', '--server', `${there}/behind/a/proxy`);
  expect(arrived.map(({ url }) => url)).toEqual(['/v2/queues/..', '/behind/a/proxy/v2/schedules/.']);
});

it('queues, keys, schedules and groups are shown and changed', async () => {
  expect(await done('queues', 'save', 'q', '--parallelism', '3')).toBe('Saved q.\n');
  expect(await done('queues', 'pause', 'q')).toBe('Paused q.\n');
  expect(await asJson('queues', 'show', 'q')).toMatchObject({ parallelism: 3, paused: true });
  expect(await waypost('queues', 'delete', 'q')).toMatchObject({
    code: 2,
    stderr: `waypost: this would delete q at ${server.url}: without an interactive terminal, --yes is required\n`,
  });
  expect(await done('queues', 'delete', 'q', '--yes')).toBe('Deleted q.\n');

  await done('keys', 'pin', 'crm.eu', '--rate', '10', '--period', '60');
  expect(await done('keys', '--search', 'crm.eu')).toMatch(/\ncrm\.eu +0 +- +0 of 10 in 60s +running\n$/);
  await done('keys', 'pause', 'crm.eu');
  expect(await asJson('keys', 'show', 'crm.eu')).toMatchObject({ isPaused: true, rateMax: 10 });

  expect(await done('schedules', 'create', there, '--cron', '0 0 1 1 *', '--schedule-id', 'yearly')).toBe('yearly\n');
  expect(await done('schedules')).toMatch(/\nyearly +0 0 1 1 \* +\d{4}-01-01 00:00 +http/);
  await done('schedules', 'pause', 'yearly');
  expect(await done('schedules')).toMatch(/\nyearly +0 0 1 1 \* +paused/);
  await done('schedules', 'delete', 'yearly', '--yes');

  await done('groups', 'add', 'g', `${there}/a`, `${there}/b`);
  await done('groups', 'remove', 'g', `${there}/b`);
  expect(await done('groups')).toBe(`GROUP  ENDPOINTS  URLS\ng      1          ${there}/a\n`);
  await done('groups', 'delete', 'g', '--yes');
});

it('signing keys are shown and rotated, and say what is wrong with a signature', async () => {
  server.account = 3;
  const [current, next] = (await done('signing-keys')).match(/(?<==).+/g) ?? [];
  await done('publish', there, '--body', 'signed');
  const [got] = await eventually('the delivery', () => arrived.length > 0 && arrived);
  const signature = String(got?.headers['upstash-signature']);
  expect(await done('verify', '--signature', signature, '--body', 'signed')).toBe('The signature is valid.\n');
  const file = join(folder, 'request.http');
  writeFileSync(file, `POST / HTTP/1.1\r\nUpstash-Signature: ${signature}\r\n\r\nforged`);
  expect(await waypost('verify', '--request', '-f', file)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^body: .+\n$/),
  });
  const headers = `-H 'Upstash-Signature: ${signature}' -H 'X-Shop: eu'`;
  writeFileSync(file, `curl '${there}' -X POST \\\n  ${headers} --data-raw 'signed' --compressed`);
  expect(await done('verify', '--request', '-f', file)).toBe('The signature is valid.\n');
  expect(await waypost('verify', '--request', '-f', file, '--url', `${there}/other`)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^sub: .+\n$/),
  });
  const rotated = (await done('signing-keys', 'rotate', '--yes')).match(/(?<==).+/g) ?? [];
  expect([rotated[0], rotated[1] === next || rotated[1] === current]).toEqual([next, false]);
  server.account = 0;
});

it('status says which server answers, and to whom', async () => {
  const lines = (await done('status')).split('\n');
  expect(lines.slice(0, 3)).toEqual([
    `server      ${server.url}`,
    'project     defaultUser, with a full token',
    'ready       yes',
  ]);
});

it('status says that a server is not ready, and why', async () => {
  const none = { count: 0, isAtLeast: false };
  const counted = { unfinished: none, waiting: none, active: 0, held: none };
  const about = { project: 'shop', scope: 'full', ...counted, dlq: { messages: none, workflowRuns: none } };
  const full = createServer(({ url }, response) => {
    const isReadiness = url === '/readyz';
    response.writeHead(isReadiness ? 503 : 200);
    response.end(JSON.stringify(isReadiness ? { error: 'the store does not save' } : about));
  });
  const url = await listen(full);
  const { code, stdout } = await giveCommand(['status'], { QSTASH_URL: url });
  full.closeAllConnections();
  full.close();
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^ready +no: the store does not save$/m)]);
});

describe('what no header can hold', () => {
  const secret = 'eyJhIjoi\nYiJ9';

  it.each([
    ['QSTASH_TOKEN', { QSTASH_TOKEN: secret }, []],
    ['QSTASH_TOKEN', { QSTASH_TOKEN: '“eyJhIjoiYiJ9”' }, []],
    ['--token', {}, ['--token', secret]],
  ])('is named and not shown when it is the token: %s', async (origin, env, options) => {
    expect(await giveCommand(['status', '--server', server.url, ...options], env)).toEqual({
      ...{ code: 2, stdout: '' },
      stderr: `waypost: ${origin}: has a line break or another character that tokens never have; copy it again\n`,
    });
  });

  it.each([
    [['--label', '日本'], '--label: characters beyond Latin-1 cannot be sent in a header'],
    [['--label', 'a\nb'], '--label: line breaks and control characters cannot be sent in a header'],
    [['-H', 'X: ✓'], '--header: characters beyond Latin-1 cannot be sent in a header'],
  ])('is a wrong option: %j', async (options, complaint) => {
    const answer = await waypost('publish', there, ...options);
    expect(answer).toEqual({ code: 2, stdout: '', stderr: `waypost: ${complaint}\n` });
  });

  it('goes without the white space around it', async () => {
    const env = { ...server.env, QSTASH_TOKEN: `${server.env.QSTASH_TOKEN}\r\n` };
    expect(await giveCommand(['status'], env)).toMatchObject({ code: 0 });
  });
});

it('says how it went by its exit code, and what is missing where nothing is named', async () => {
  const token = DEVELOPMENT_ACCOUNTS[0].token;
  const gave = await Promise.all([
    waypost('messages', 'show', 'msg_unknown'),
    waypost('explain', 'nothing'),
    waypost('publish', 'nowhere', '--body', 'a'),
    giveCommand(['status'], { QSTASH_URL: NOBODY, QSTASH_TOKEN: token }),
    giveCommand(['status'], { QSTASH_URL: server.url, QSTASH_TOKEN: 'nobody' }),
    giveCommand(['status'], { QSTASH_URL: 'nowhere' }),
    waypost('publish'),
    waypost('publish', there, '--body'),
    waypost('schedules', 'create', there),
    giveCommand(['verify', '--request', '-f', '-'], server.env, undefined, 'X-Other: 1\n\nbody'),
    waypost('logs', '--message-id', 'msg_unknown'),
  ]);
  expect(gave.map(({ code, stderr }) => `${code} ${stderr}`)).toEqual([
    '3 waypost: message msg_unknown not found\n',
    `3 waypost: "nothing" is unknown at ${server.url}: it belongs to another server or project, or its logs have expired\n`,
    expect.stringMatching(/^[13] waypost: .+\n$/),
    expect.stringMatching(/^4 waypost: no server responds at http:\/\/127\.0\.0\.1:9: .+\n$/),
    `5 waypost: unable to authenticate: invalid token at ${server.url}: QSTASH_TOKEN belongs to another server, is revoked, or has quotes around it\n`,
    '2 waypost: QSTASH_URL: must be an http or https address, not "nowhere"\n',
    '2 waypost: publish: <destination> is missing\n',
    '2 waypost: --body: needs a value\n',
    '2 waypost: schedules create: --cron <expression> is missing\n',
    '2 waypost: verify: the request has no header Upstash-Signature\n',
    '0 No entries.\n',
  ]);
});

it('the commands of docs/command-line.md work as they stand', async () => {
  server.account = 1;
  const ids: Record<string, string> = { msg_42: await delayed() };
  const page = readFileSync(new URL('../../../docs/command-line.md', import.meta.url), 'utf8');
  const lines = [...page.matchAll(/^waypost ([^#<>\n]*)/gm)].map(([, line = '']) => line);
  expect(lines.length).toBeGreaterThan(20);
  for (const line of lines) {
    const words = wordsOf(line);
    if (words.includes('1795257963176-1142')) ids['1795257963176-1142'] ??= await bury('orders');
    const args = words.map(
      (word) =>
        ids[word] ?? word.replace('http://127.0.0.1:3000', there).replace('https://waypost.example.com', server.url),
    );
    const env = { ...server.env, HOME: folder };
    const { code, stderr } = await giveCommand(args, env, undefined, env.QSTASH_TOKEN);
    expect([line, code], stderr).toEqual([line, 0]);
  }
  server.account = 0;
});

it('the commands of docs/troubleshooting.md are understood', async () => {
  const page = readFileSync(new URL('../../../docs/troubleshooting.md', import.meta.url), 'utf8');
  const inBlocks = [...page.matchAll(/^waypost ([^#\n]*)/gm)];
  const inLines = [...page.matchAll(/`waypost ([^`]*)`/g)];
  const lines = [...inBlocks, ...inLines].map(([, line = '']) => line.trim());
  expect(lines.length).toBeGreaterThan(15);
  // Those that work on the machine of the server have tests of their own.
  const asking = lines.filter((line) => !/^(doctor|init|serve|tokens|version)\b/.test(line));
  for (const line of asking) {
    const { stderr } = await giveCommand(wordsOf(line), { QSTASH_URL: NOBODY, QSTASH_TOKEN: 'token' });
    expect(stderr, line).toMatch(/no server responds|--file: ENOENT/);
  }
});
