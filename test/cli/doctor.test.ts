/** The reports of `waypost doctor` on a store that does not fit this version or the current key. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, expect, it } from 'vitest';
import { testFolder } from '../support/folder.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { type CommandResult, giveCommand } from '../support/waypost-command.ts';

let folder: string;
const doctor = (): Promise<CommandResult> => giveCommand(['doctor', '--data-dir', folder]);

beforeEach(async () => {
  folder = testFolder();
  await giveCommand(['init', '--project', 'shop', '--data-dir', folder]);
});

function alter(statement: string): void {
  const database = new DatabaseSync(join(folder, 'waypost.db'));
  database.exec(statement);
  database.close();
}

it('names the store that it reads', async () => {
  expect((await doctor()).stdout).toMatch(`store: ${folder}\n`);
  const { stdout } = await giveCommand(['doctor', '--json', '--data-dir', folder]);
  expect(JSON.parse(stdout)).toMatchObject({ store: folder });
});

it('names a store of an older version, and what to do', async () => {
  alter('delete from migrations where number = (select max(number) from migrations)');
  expect(await doctor()).toEqual({
    ...{ code: 1, stdout: '' },
    stderr:
      'waypost: the store has the schema of an older version: start a server of this version first, which migrates it; then run "waypost doctor"\n',
  });
});

it('names a store that no release has made', async () => {
  alter("update migrations set name = 'messages' where number = 1");
  expect(await doctor()).toMatchObject({ code: 1, stderr: expect.stringContaining('made before Waypost 0.1.0') });
});

it('finds that a newer version has changed the store too much', async () => {
  alter("insert into migrations (number, name, breaking) values (999, 'future', 1)");
  const { code, stdout } = await doctor();
  expect(code).toBe(1);
  expect(stdout).toMatch(/^FAIL {2}This version may work with the store\.\n {8}.*migration "future"/m);
});

it('says that a database is no store', async () => {
  rmSync(join(folder, 'waypost.db'));
  alter('create table another (id integer)');
  expect((await doctor()).stderr).toBe(
    'waypost: there is no store of Waypost in this file: "waypost init" creates one\n',
  );
  const env = { WAYPOST_DATABASE_URL: await freshDatabase() };
  expect(await giveCommand(['doctor', '--data-dir', folder], env)).toMatchObject({
    ...{ code: 1, stderr: 'waypost: there is no store of Waypost in this database: "waypost init" creates one\n' },
  });
});

it('finds that the encryption key is another one, or missing', async () => {
  const statement = 'The encryption key opens the signing keys of every project.';
  expect((await doctor()).stdout).toContain(`ok    ${statement}\n`);
  writeFileSync(join(folder, 'encryption.key'), Buffer.alloc(32, 1).toString('base64'));
  const other = await doctor();
  expect([other.code, other.stdout]).toEqual([
    1,
    expect.stringContaining(`FAIL  ${statement}\n        project shop\n`),
  ]);
  rmSync(join(folder, 'encryption.key'));
  const missing = await doctor();
  expect(missing.code).toBe(1);
  expect(missing.stdout).toContain(`FAIL  ${statement}\n        there is no encryption key in ${folder}`);
});
