/** The files that commands leave in a data folder inside a repository. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEVELOPMENT_TOKEN } from '../../bench/waypost-process.ts';
import { serveInProcess } from '../support/in-process-server.ts';
import { Servers } from '../support/servers.ts';
import { giveCommand } from '../support/waypost-command.ts';

describe('a data folder', () => {
  let servers: Servers;
  let dataDir: string;
  let ignoreFile: string;

  beforeEach(() => {
    servers = new Servers();
    dataDir = servers.dataDir;
    ignoreFile = join(dataDir, '.gitignore');
  });
  afterEach(() => servers.close());

  const init = async () => expect((await giveCommand(['init', '--data-dir', dataDir])).code).toBe(0);

  it('of a development server is none of the repository’s business', async () => {
    await servers.startInProcess(['dev']);
    expect(readFileSync(ignoreFile, 'utf8')).toBe('*\n');
  });

  it('hides the encryption key from git', async () => {
    await init();
    const folder = join(dataDir, '..');
    execFileSync('git', ['init', '--quiet', folder]);
    expect(execFileSync('git', ['-C', folder, 'status', '--porcelain'], { encoding: 'utf8' })).toBe('');
  });

  it.each([
    ['a schedule', '/v2/schedules/http://127.0.0.1:9/', { 'upstash-cron': '* * * * *' }],
    ['a message', '/v2/publish/http://127.0.0.1:9/', { 'upstash-delay': '1h' }],
  ])('with %s of a development server is none for production', async (_, path, headers) => {
    const dev = await serveInProcess(['dev', '--data-dir', dataDir]);
    const authorization = `Bearer ${DEVELOPMENT_TOKEN}`;
    const made = await fetch(`${dev.url}${path}`, { method: 'POST', headers: { authorization, ...headers } });
    expect(made.ok).toBe(true);
    await dev.stop();
    expect(await giveCommand(['init', '--data-dir', dataDir])).toEqual({
      ...{ code: 1, stdout: '' },
      stderr:
        'waypost: this folder has messages or schedules of "waypost dev", which would continue: choose another --data-dir\n',
    });
  });

  it('of a development server that has nothing left can be used for production', async () => {
    await (await serveInProcess(['dev', '--data-dir', dataDir])).stop();
    await init();
  });

  it('gets the rules at the next start where they are missing', async () => {
    await init();
    rmSync(ignoreFile);
    await giveCommand(['init', '--data-dir', dataDir, '--add-token']);
    expect(existsSync(ignoreFile)).toBe(true);
  });

  it('is hidden too when a power cut left a part of a key there', async () => {
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, 'encryption.key.new-0123456789abcdef'), '');
    await init();
    expect(existsSync(ignoreFile)).toBe(true);
  });

  it('that holds somebody else’s files hides none of them', async () => {
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, 'README.md'), 'of a project');
    await init();
    expect(existsSync(ignoreFile)).toBe(false);
  });

  it('keeps the rules that are there', async () => {
    mkdirSync(dataDir);
    writeFileSync(ignoreFile, '*.db\n');
    await init();
    expect(readFileSync(ignoreFile, 'utf8')).toBe('*.db\n');
  });
});
