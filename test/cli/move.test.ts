/**
 * Backups, restores and moves as an operator meets them, and servers that go on from there. Each of the commands is a process
 * of its own once; the other times it is only called.
 */
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { MIGRATIONS, migrate } from '../../src/store/migrations/index.ts';
import { eventually } from '../support/eventually.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { type Answer, giveCommand } from '../support/waypost-command.ts';
import { type Ended, runWaypost, WaypostProcess } from '../support/waypost-process.ts';

let folder: string;
let receiver: Server;
let received: string[];
let answer: number;
const servers: WaypostProcess[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waypost-move-'));
  received = [];
  answer = 200;
  receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      received.push(body);
      response.writeHead(answer).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill();
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

const folderOf = (name: string) => join(folder, name);
const database = (name: string) => join(folder, name, 'waypost.db');
const keyFile = (name: string) => join(folder, name, 'encryption.key');

/** Makes a data folder with a project; answers its token. */
async function init(name: string): Promise<string> {
  const { code, stdout } = await giveCommand(['init', '--data-dir', folderOf(name)]);
  expect(code).toBe(0);
  return /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
}

async function serve(name: string, env: Record<string, string> = {}): Promise<{ server: WaypostProcess; url: string }> {
  const args = ['serve', '--port', '0', '--data-dir', folderOf(name), '--log-format', 'json'];
  const server = new WaypostProcess(args, { WAYPOST_ALLOW_DESTINATIONS: '127.0.0.1/32', ...env });
  servers.push(server);
  return { server, url: await server.url() };
}

async function stop(server: WaypostProcess): Promise<void> {
  server.signal('SIGTERM');
  expect((await server.ended()).code).toBe(0);
}

async function publish(url: string, token: string, body: string, headers: Record<string, string> = {}): Promise<void> {
  const { port } = receiver.address() as AddressInfo;
  const response = await fetch(`${url}/v2/publish/http://127.0.0.1:${port}/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, ...headers },
    body,
  });
  expect(response.status).toBe(200);
}

async function succeeded<T extends Answer | Ended>(running: Promise<T>): Promise<T> {
  const ended = await running;
  expect(ended).toMatchObject({ code: 0 });
  return ended;
}

async function isSound(name: string, env: Record<string, string> = {}): Promise<void> {
  await succeeded(giveCommand(['doctor', '--data-dir', folderOf(name)], env));
}

describe('waypost backup', () => {
  it('of a running server has all that was accepted before, and a server goes on from it', async () => {
    const token = await init('first');
    const { server, url } = await serve('first');
    for (let index = 0; index < 20; index += 1) await publish(url, token, `before ${index}`, { 'upstash-delay': '3s' });
    let isOver = false;
    let during = 0;
    const publishing = (async () => {
      while (!isOver) await publish(url, token, `during ${during++}`, { 'upstash-delay': '1h' });
    })();
    const { stdout } = await succeeded(
      runWaypost(['backup', '--data-dir', folderOf('first'), '--to', folder, '--json']),
    );
    isOver = true;
    await publishing;
    await server.kill();

    const { file, bytes, census } = JSON.parse(stdout) as {
      file: string;
      bytes: number;
      census: { unfinished: number };
    };
    expect(file).toMatch(/\/waypost-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.db$/);
    expect(statSync(file)).toMatchObject({ size: bytes });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(census.unfinished).toBeGreaterThanOrEqual(20);
    expect(during).toBeGreaterThan(0);

    await succeeded(runWaypost(['restore', '--data-dir', folderOf('second'), '--from', file]));
    copyFileSync(keyFile('first'), keyFile('second'));
    await isSound('second');
    await serve('second');
    const wanted = Array.from({ length: 20 }, (_, index) => `before ${index}`);
    await eventually('the messages of the backup', () => wanted.every((body) => received.includes(body)), 20_000);
  });

  it('is never half there, and replaces nothing', async () => {
    await init('first');
    const to = folderOf('backup.db');
    writeFileSync(to, 'precious');
    const args = ['backup', '--data-dir', folderOf('first'), '--to', to];
    expect(await giveCommand(args)).toMatchObject({ code: 1, stderr: expect.stringContaining('is there already') });
    rmSync(to);
    writeFileSync(`${to}.part`, 'of a backup that was killed');
    await succeeded(giveCommand(args));
    expect(readdirSync(folder).toSorted()).toEqual(['backup.db', 'first']);
    const missing = await giveCommand(['backup', '--data-dir', folderOf('nothing'), '--to', folderOf('b.db')]);
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('there is no database') });
    expect(existsSync(folderOf('nothing'))).toBe(false);
  });

  it.each(['backups', 'backups/', 'backups.d/', 'backups/today.db'])(
    'makes no file in place of a folder: %s',
    async (to) => {
      await init('first');
      const { code, stderr } = await giveCommand([
        'backup',
        '--data-dir',
        folderOf('first'),
        '--to',
        `${folder}/${to}`,
      ]);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^waypost: there is no folder \S+\/backups(\.d)?\b.*\n$/),
      ]);
      expect(readdirSync(folder)).toEqual(['first']);
    },
  );
});

describe('waypost restore', () => {
  it('replaces a store only when told to, and none that a server has', async () => {
    const token = await init('first');
    const { server, url } = await serve('first');
    await publish(url, token, 'kept', { 'upstash-delay': '1h' });
    const backup = folderOf('backup.db');
    await succeeded(giveCommand(['backup', '--data-dir', folderOf('first'), '--to', backup]));
    await publish(url, token, 'later', { 'upstash-delay': '1h' });

    const restore = ['restore', '--data-dir', folderOf('first'), '--from', backup];
    const running = await giveCommand([...restore, '--overwrite']);
    expect(running).toMatchObject({ code: 1, stderr: expect.stringContaining('is in use by process') });
    await stop(server);
    const refused = await giveCommand(restore);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('is not empty; --overwrite') });
    expect(bodiesIn('first')).toEqual(['kept', 'later']);
    await succeeded(giveCommand([...restore, '--overwrite']));
    expect(bodiesIn('first')).toEqual(['kept']);
    expect(readdirSync(folderOf('first')).toSorted()).toEqual(
      expect.not.arrayContaining(['waypost.db.restoring', 'waypost.db-wal']),
    );
    await isSound('first');
  });

  it('leaves the store as it was when the backup is damaged, too new, or no backup', async () => {
    const token = await init('first');
    const { server, url } = await serve('first');
    for (let index = 0; index < 30; index += 1) await publish(url, token, 'x'.repeat(5_000), { 'upstash-delay': '1h' });
    await stop(server);
    const before = bodiesIn('first');
    const backup = folderOf('backup.db');
    await succeeded(giveCommand(['backup', '--data-dir', folderOf('first'), '--to', backup]));

    const damaged = folderOf('damaged.db');
    copyFileSync(backup, damaged);
    const pages = new DatabaseSync(backup).prepare("select rootpage from sqlite_schema where name = 'contents'").get();
    scribble(damaged, (Number(pages?.['rootpage']) - 1) * 4096);
    const tooNew = folderOf('too-new.db');
    copyFileSync(backup, tooNew);
    const newer = new DatabaseSync(tooNew);
    newer.exec("insert into migrations (number, name, breaking) values (9999, 'later', 1)");
    newer.close();
    const other = folderOf('other.db');
    const foreign = new DatabaseSync(other);
    foreign.exec('create table things (a)');
    foreign.close();
    const text = folderOf('text.db');
    writeFileSync(text, 'This is no database. '.repeat(1_000));

    const reasons: string[] = [];
    for (const from of [damaged, tooNew, other, text]) {
      const { code, stderr } = await giveCommand([
        'restore',
        '--data-dir',
        folderOf('first'),
        '--from',
        from,
        '--overwrite',
      ]);
      expect(code).toBe(1);
      reasons.push(stderr);
    }
    expect(reasons).toEqual([
      expect.stringContaining('not restored: '),
      expect.stringContaining('newer Waypost (migration "later")'),
      expect.stringContaining('is no store of Waypost'),
      expect.stringContaining('not a database'),
    ]);
    expect(bodiesIn('first')).toEqual(before);
    expect(readdirSync(folderOf('first')).filter((name) => name.includes('restoring'))).toEqual([]);
  });

  it('replaces a store that cannot be read any more', async () => {
    await init('first');
    const backup = folderOf('backup.db');
    await succeeded(giveCommand(['backup', '--data-dir', folderOf('first'), '--to', backup]));
    writeFileSync(database('first'), 'This was a database. '.repeat(1_000));
    writeFileSync(`${database('first')}-wal`, 'and this its log');
    const restore = ['restore', '--data-dir', folderOf('first'), '--from', backup];
    expect(await giveCommand(restore)).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be read') });
    await succeeded(giveCommand([...restore, '--overwrite']));
    await isSound('first');
  });

  it('says when the encryption key is missing, or another one', async () => {
    await init('first');
    await init('other');
    const backup = folderOf('backup.db');
    await succeeded(giveCommand(['backup', '--data-dir', folderOf('first'), '--to', backup]));
    const said: string[] = [];
    for (const key of [undefined, keyFile('other'), keyFile('first')]) {
      rmSync(folderOf('second'), { recursive: true, force: true });
      mkdirSync(folderOf('second'));
      if (key !== undefined) copyFileSync(key, keyFile('second'));
      const { stderr } = await succeeded(giveCommand(['restore', '--data-dir', folderOf('second'), '--from', backup]));
      said.push(stderr);
    }
    expect(said).toEqual([
      expect.stringContaining('there is no encryption key yet'),
      expect.stringContaining('the encryption key is not the one'),
      '',
    ]);
  });

  it('takes a backup of an older version, into a file and into PostgreSQL', async () => {
    const backup = folderOf('old.db');
    const driver = new SqliteDriver({ path: backup });
    await migrate(driver, MIGRATIONS.slice(0, 5));
    await driver.transaction((tx) =>
      tx.insertMany('tokens', ['hash', 'project_id', 'scope', 'created_at_ms'], [['a', 1, 'full', 1]]),
    );
    await driver.close();
    const intoFile = await succeeded(giveCommand(['restore', '--data-dir', folderOf('first'), '--from', backup]));
    expect(intoFile.stdout).toContain('a store of an older version');
    const url = await freshDatabase();
    const intoServer = await succeeded(giveCommand(['restore', '--from', backup], { DATABASE_URL: url }));
    expect(intoServer.stdout).toContain('Restored: 0 unfinished messages');
    const old = new DatabaseSync(backup, { readOnly: true });
    expect(old.prepare('select max(number) as last from migrations').get()).toEqual({ last: 5 });
    old.close();
  });
});

describe('waypost migrate-store', () => {
  it('moves to PostgreSQL and back; servers go on delivering on both', async () => {
    const token = await init('first');
    const first = await serve('first');
    answer = 500; // what is in flight stays unfinished
    await publish(first.url, token, 'retried', { 'upstash-retry-delay': '1000' });
    await publish(first.url, token, 'soon', { 'upstash-delay': '2s' });
    await publish(first.url, token, 'at last', { 'upstash-delay': '1h' });
    await eventually('the first attempt', () => received.includes('retried'));
    const from = `sqlite:${database('first')}`;
    const to = await freshDatabase();
    const move = ['migrate-store', '--from', from, '--to', to];
    expect(await giveCommand(move)).toMatchObject({ code: 1, stderr: expect.stringContaining('is in use by process') });
    await stop(first.server);
    const { stdout } = await succeeded(giveCommand(move));
    expect(stdout).toMatch(/^messages +3 +[0-9a-f]{32}$/m);
    expect(stdout).toMatch(/encryption key/);
    const again = await giveCommand(move);
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('the target is not empty') });

    answer = 200;
    received = [];
    const second = await serve('first', { DATABASE_URL: to });
    await eventually('both messages', () => ['retried', 'soon'].every((body) => received.includes(body)), 20_000);
    await publish(second.url, token, 'new');
    await eventually('the new message', () => received.includes('new'));
    const back = ['migrate-store', '--from', to, '--to', `sqlite:${database('third')}`];
    expect(await giveCommand(back)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is in use by 1 worker'),
    });
    await stop(second.server);

    await succeeded(giveCommand(back));
    copyFileSync(keyFile('first'), keyFile('third'));
    await isSound('third');
    expect(bodiesIn('third')).toEqual(['at last']);
    const third = await serve('third');
    await publish(third.url, token, 'newest');
    await eventually('the newest message', () => received.includes('newest'));
  });

  it('that was killed keeps servers out, and goes on where it stopped', async () => {
    const token = await init('first');
    const { server, url } = await serve('first');
    for (let index = 0; index < 40; index += 1) {
      await publish(url, token, String(index).repeat(500_000), { 'upstash-delay': '1h' });
    }
    await stop(server);
    const target = database('second');
    const move = ['migrate-store', '--from', `sqlite:${database('first')}`, '--to', `sqlite:${target}`];
    const killed = new WaypostProcess(move);
    await eventually('some of the contents to be there', () => countIn(target, 'contents') > 0, 20_000);
    killed.signal('SIGKILL');
    expect((await killed.ended()).signal).toBe('SIGKILL');
    copyFileSync(keyFile('first'), keyFile('second'));
    const refused = await runWaypost(['serve', '--port', '0', '--data-dir', folderOf('second')]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('a move that is not complete') });
    await succeeded(runWaypost(move));
    expect(countIn(target, 'contents')).toBe(40);
    await isSound('second');
  });

  it('and restore wait for the workers of a PostgreSQL to be gone', async () => {
    await init('first');
    const backup = folderOf('backup.db');
    await succeeded(giveCommand(['backup', '--data-dir', folderOf('first'), '--to', backup]));
    const url = await freshDatabase();
    await succeeded(giveCommand(['init', '--data-dir', folderOf('second')], { DATABASE_URL: url }));
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    // As a server that works on it does.
    await client.query(
      `insert into workers (id, started_at_ms, beat_at_ms, timeout_ms, leaving)
       select 'w', 1, extract(epoch from clock_timestamp()) * 1000, 60000, 0`,
    );
    const commands = [
      ['migrate-store', '--overwrite', '--from', `sqlite:${database('first')}`, '--to', url],
      ['migrate-store', '--from', url, '--to', `sqlite:${database('third')}`],
      ['restore', '--overwrite', '--from', backup],
    ];
    for (const command of commands) {
      const refused = await giveCommand(command, { DATABASE_URL: url });
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('is in use by 1 worker: stop') });
    }
    await client.query('update workers set timeout_ms = -1');
    await client.end();
    for (const command of commands) await succeeded(giveCommand(command, { DATABASE_URL: url }));
  });

  it('shows no password', async () => {
    const { code, stdout, stderr } = await giveCommand([
      ...['migrate-store', '--from', 'postgres://user:hunter2@127.0.0.1:1/x?password=hunter2'],
      ...['--to', `sqlite:${folderOf('x.db')}`],
    ]);
    expect(code).toBe(1);
    expect(stdout + stderr).toContain('cannot open x on 127.0.0.1:1');
    expect(stdout + stderr).not.toContain('hunter2');
  });
});

describe('on PostgreSQL', () => {
  it('a backup beside running servers becomes a file, and a store of either kind again', async () => {
    await init('first');
    const key = { WAYPOST_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64') };
    const env = { ...key, DATABASE_URL: await freshDatabase() };
    const made = await succeeded(giveCommand(['init', '--data-dir', folderOf('second')], env));
    const token = /^QSTASH_TOKEN=(.*)$/m.exec(made.stdout)?.[1] ?? '';
    const { server, url } = await serve('second', env);
    for (let index = 0; index < 20; index += 1) await publish(url, token, `${index}`, { 'upstash-delay': '1h' });
    let isOver = false;
    const publishing = (async () => {
      while (!isOver) await publish(url, token, 'during', { 'upstash-delay': '1h' });
    })();
    const backup = folderOf('backup.db');
    await succeeded(giveCommand(['backup', '--to', backup], env));
    isOver = true;
    await publishing;
    await stop(server);
    expect(readdirSync(folder).filter((name) => name.startsWith('backup'))).toEqual(['backup.db']);

    await succeeded(giveCommand(['restore', '--data-dir', folderOf('third'), '--from', backup], key));
    await isSound('third', key);
    expect(bodiesIn('third').filter((body) => body !== 'during')).toHaveLength(20);
    const fresh = { ...key, DATABASE_URL: await freshDatabase() };
    await succeeded(giveCommand(['restore', '--from', backup], fresh));
    const refused = await giveCommand(['restore', '--from', backup], fresh);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('the target is not empty') });
    await isSound('third', fresh);
  });
});

/** Bodies of all messages that a stopped store has, sorted. */
function bodiesIn(name: string): string[] {
  const opened = new DatabaseSync(database(name), { readOnly: true });
  const rows = opened.prepare('select c.body from messages m join contents c on c.key = m.key').all();
  opened.close();
  return rows.map(({ body }) => Buffer.from(body as Uint8Array).toString('utf8')).toSorted();
}

/** Rows of a table of a database that another process may be about to make. */
function countIn(path: string, table: string): number {
  if (!existsSync(path)) return 0;
  const opened = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    const found = opened.prepare('select 1 from sqlite_schema where name = ?').get(table);
    return found === undefined ? 0 : Number(opened.prepare(`select count(*) as count from ${table}`).get()?.['count']);
  } finally {
    opened.close();
  }
}

/** Destroys a page, as a failing disk would. */
function scribble(path: string, offset: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(4096, 0xaa), 0, 4096, offset);
  closeSync(file);
}
