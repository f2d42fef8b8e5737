/**
 * Backups and restores, by calling the commands. As processes, with servers that start with the result, and moves between
 * databases: move.full.test.ts.
 */
import fs, {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, vi } from 'vitest';
import { serveInProcess } from '../support/in-process-server.ts';
import { giveCommand } from '../support/waypost-command.ts';
import {
  bodiesIn,
  database,
  folderOf,
  init,
  isSound,
  keyFile,
  publish,
  scribble,
  succeeded,
} from './support/stores.ts';

describe('waypost backup', () => {
  it('is never half there, and replaces nothing', async () => {
    await init('first');
    const to = folderOf('backup.db');
    writeFileSync(to, 'precious');
    const args = ['backup', '--data-dir', folderOf('first'), '--to', to];
    expect(await giveCommand(args)).toMatchObject({ code: 1, stderr: expect.stringContaining('exists already') });
    rmSync(to);
    writeFileSync(`${to}.part`, 'of a backup that was killed');
    await succeeded(giveCommand(args));
    expect(readdirSync(folderOf('')).toSorted()).toEqual(['backup.db', 'first']);
    const missing = await giveCommand(['backup', '--data-dir', folderOf('nothing'), '--to', folderOf('b.db')]);
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('there is no database') });
    expect(existsSync(folderOf('nothing'))).toBe(false);
  });

  it('says what to do where this user may not write', async () => {
    await init('first');
    vi.spyOn(fs, 'statSync').mockImplementation((path) => {
      throw Object.assign(new Error(`EACCES: permission denied, stat '${path}'`), { code: 'EACCES' });
    });
    syncBuiltinESMExports();
    try {
      const answer = await giveCommand(['backup', '--data-dir', folderOf('first'), '--to', '/backups']);
      expect(answer).toMatchObject({
        code: 1,
        stderr:
          "waypost: no backup: EACCES: permission denied, stat '/backups': run this as a user that may write there\n",
      });
    } finally {
      vi.restoreAllMocks();
      syncBuiltinESMExports();
    }
  });

  it('shows whoever looks on how far it is', async () => {
    await init('first');
    const args = ['backup', '--data-dir', folderOf('first'), '--to', folderOf('backup.db')];
    const { stderr } = await giveCommand(args, {}, 'somebody is there');
    expect(stderr.split('\r').map((line) => line.replace(/^\[.*\] /, '').trim())).toEqual([
      '',
      '0 of 3 steps done, next: copy',
      '1 of 3 steps done, next: count',
      '2 of 3 steps done, next: check',
    ]);
  });

  it.each(['backups', 'backups/', 'backups.d/', 'backups/today.db'])(
    'makes no file in place of a folder: %s',
    async (to) => {
      await init('first');
      const { code, stderr } = await giveCommand(['backup', '--data-dir', folderOf('first'), '--to', folderOf(to)]);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^waypost: there is no folder \S+\/backups(\.d)?\b.*\n$/),
      ]);
      expect(readdirSync(folderOf(''))).toEqual(['first']);
    },
  );
});

describe('waypost restore', () => {
  it('replaces a store only when told to, and none that a server has', async () => {
    const token = await init('first');
    const server = await serveInProcess(['serve', '--data-dir', folderOf('first'), '--allow-destinations', 'loopback']);
    await publish(server.url, token, 'kept', { 'upstash-delay': '1h' });
    const backup = folderOf('backup.db');
    await succeeded(giveCommand(['backup', '--data-dir', folderOf('first'), '--to', backup]));
    await publish(server.url, token, 'later', { 'upstash-delay': '1h' });

    const restore = ['restore', '--data-dir', folderOf('first'), '--from', backup];
    const running = await giveCommand([...restore, '--overwrite']);
    expect(running).toMatchObject({ code: 1, stderr: expect.stringContaining('is in use by process') });
    await server.stop();
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
    const server = await serveInProcess(['serve', '--data-dir', folderOf('first'), '--allow-destinations', 'loopback']);
    for (let index = 0; index < 30; index += 1)
      await publish(server.url, token, 'x'.repeat(5_000), { 'upstash-delay': '1h' });
    await server.stop();
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
    const unreleased = folderOf('unreleased.db');
    copyFileSync(backup, unreleased);
    const first = new DatabaseSync(unreleased);
    first.exec("update migrations set name = 'messages' where number = 1");
    first.close();
    const other = folderOf('other.db');
    const foreign = new DatabaseSync(other);
    foreign.exec('create table things (a)');
    foreign.close();
    const text = folderOf('text.db');
    writeFileSync(text, 'This is no database. '.repeat(1_000));

    const reasons: string[] = [];
    for (const from of [damaged, tooNew, unreleased, other, text]) {
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
      expect.stringContaining('made before Waypost 0.1.0'),
      expect.stringContaining('is no store of Waypost'),
      expect.stringContaining('not a database'),
    ]);
    expect(bodiesIn('first')).toEqual(before);
    expect(readdirSync(folderOf('first')).filter((name) => name.includes('restoring'))).toEqual([]);
  });

  it('refuses the file that it would write itself, and leaves it there', async () => {
    await init('first');
    const from = `${database('first')}.restoring`;
    await succeeded(giveCommand(['backup', '--data-dir', folderOf('first'), '--to', from]));
    const before = readFileSync(from);
    const link = folderOf('link.db');
    symlinkSync(from, link);
    for (const name of [from, link]) {
      const restore = ['restore', '--data-dir', folderOf('first'), '--from', name, '--overwrite'];
      expect(await giveCommand(restore)).toMatchObject({ code: 1, stderr: expect.stringContaining('move it away') });
      expect(readFileSync(from)).toEqual(before);
    }
    await isSound('first');
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
      expect.stringContaining('are encrypted with another encryption key'),
      '',
    ]);
  });
});
