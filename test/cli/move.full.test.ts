/** Backups and moves between databases as an operator runs them, and servers that start with the result. */
import { copyFileSync, readdirSync, statSync } from 'node:fs';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { giveCommand } from '../support/waypost-command.ts';
import { runWaypost, WaypostProcess } from '../support/waypost-process.ts';
import {
  bodiesIn,
  countIn,
  database,
  endpoint,
  folderOf,
  init,
  isSound,
  keyFile,
  publish,
  serve,
  stop,
  succeeded,
} from './support/stores.ts';

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
      runWaypost(['backup', '--data-dir', folderOf('first'), '--to', folderOf(''), '--json']),
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
    await eventually(
      'the messages of the backup',
      () => wanted.every((body) => endpoint.received.includes(body)),
      20_000,
    );
  });
});

describe('waypost migrate-store', () => {
  it('moves to PostgreSQL and back; servers go on delivering on both', async () => {
    const token = await init('first');
    const first = await serve('first');
    endpoint.answer = 500; // what is in flight stays unfinished
    await publish(first.url, token, 'retried', { 'upstash-retry-delay': '1000', 'upstash-retries': '99' });
    await publish(first.url, token, 'soon', {
      'upstash-delay': '2s',
      'upstash-retry-delay': '1000',
      'upstash-retries': '99',
    });
    await publish(first.url, token, 'at last', { 'upstash-delay': '1h' });
    await eventually('the first attempt', () => endpoint.received.includes('retried'));
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

    endpoint.answer = 200;
    endpoint.received = [];
    const second = await serve('first', { DATABASE_URL: to });
    await eventually(
      'both messages',
      () => ['retried', 'soon'].every((body) => endpoint.received.includes(body)),
      20_000,
    );
    await publish(second.url, token, 'new');
    await eventually('the new message', () => endpoint.received.includes('new'));
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
    await eventually('the newest message', () => endpoint.received.includes('newest'));
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
    expect((await killed.waitForExit()).signal).toBe('SIGKILL');
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
      `insert into workers (id, started_at_ms, beat_at_ms, timeout_ms, leaving, accounts_version)
       select 'w', 1, extract(epoch from clock_timestamp()) * 1000, 60000, 0, 0`,
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
    expect(readdirSync(folderOf('')).filter((name) => name.startsWith('backup'))).toEqual(['backup.db']);

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
