/** Operators' commands on a store when the current encryption key is wrong or missing. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { testFolder } from '../support/folder.ts';
import { type InProcessServer, serveInProcess } from '../support/in-process-server.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { type CommandResult, giveCommand } from '../support/waypost-command.ts';

let folder: string;
let keyFile: string;

beforeEach(() => {
  folder = testFolder();
  keyFile = join(folder, 'encryption.key');
});

const wrongKey = () =>
  `waypost: cannot decrypt the signing keys of the project "shop": it was encrypted with another encryption key. Put the encryption.key of this store into ${folder}, or set WAYPOST_ENCRYPTION_KEY\n`;
const noKey = () =>
  `waypost: there is no encryption key in ${folder}: put the encryption.key of this store there, or set WAYPOST_ENCRYPTION_KEY. "waypost init" makes one for a new store only\n`;
const another = () => Buffer.alloc(32, 1).toString('base64');

describe.each(['an embedded database', 'PostgreSQL'])('on %s', (kind) => {
  let env: Record<string, string>;
  let server: InProcessServer | undefined;

  beforeEach(async () => {
    env = { WAYPOST_DATA_DIR: folder };
    if (kind === 'PostgreSQL') env['WAYPOST_DATABASE_URL'] = await freshDatabase();
    expect(await give('init', '--project', 'shop')).toMatchObject({ code: 0 });
  });
  afterEach(async () => {
    await server?.stop();
    server = undefined;
  });

  const give = (...args: string[]): Promise<CommandResult> => giveCommand(args, env);

  it.each([
    ['init', '--project', 'other'],
    ['projects', 'create', 'other'],
    ['init', '--project', 'shop', '--add-token'],
  ])('the wrong key is refused, and nothing is sealed with it: %s %s %s', async (...args) => {
    expect(await giveCommand(args, { ...env, WAYPOST_ENCRYPTION_KEY: another() })).toMatchObject({
      ...{ code: 1, stdout: '', stderr: wrongKey() },
    });
    expect((await give('projects')).stdout).not.toContain('other');
    server = await serveInProcess(['serve'], env); // the store is as it was
  });

  it('no second key is made for a store that has projects', async () => {
    rmSync(keyFile);
    for (const args of [['init'], ['init', '--project', 'shop', '--add-token'], ['projects', 'create', 'other']]) {
      expect(await give(...args)).toMatchObject({ code: 1, stdout: '', stderr: noKey() });
    }
    expect(existsSync(keyFile)).toBe(false);
  });
});

describe('commands for cells', () => {
  it.each([['cells'], ['cells', 'add', 'third', '--schema', 'third'], ['projects', 'move', 'shop', '--to', 'second']])(
    'refuse the wrong key: %s %s %s',
    async (...args) => {
      const env = { WAYPOST_DATA_DIR: folder, WAYPOST_DATABASE_URL: await freshDatabase() };
      await giveCommand(['init', '--project', 'shop'], env);
      await giveCommand(['cells', 'add', 'second', '--schema', 'second'], env);
      writeFileSync(keyFile, another());
      expect(await giveCommand(args, env)).toMatchObject({ code: 1, stdout: '', stderr: wrongKey() });
    },
  );
});
