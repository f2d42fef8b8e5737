/**
 * Creates the fixtures of a version: `node test/upgrades/make-fixture.ts <folder of its checkout> <name>`, for example `001`,
 * its last migration. Needs `pg_dump` for PostgreSQL. Run it by hand, once, before the next version changes the schema.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import type { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { startCluster } from '../support/postgres/cluster.ts';
import { DATABASE_FILE, ENCRYPTION_KEY, fixturePath } from './fixture.ts';
import { Outside } from './outside.ts';
import { STORY_SETTINGS, tell } from './story.ts';

const [program = '.', name = ''] = process.argv.slice(2);
if (!/^\d{3}$/.test(name))
  throw new Error('usage: make-fixture.ts <folder of a checkout> <number of its last migration>');

await makeSqlite();
await makePostgres();

async function makeSqlite(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-fixture-'));
  await told('sqlite', ['--data-dir', folder], {});
  const path = join(folder, DATABASE_FILE);
  const database = new DatabaseSync(path);
  database.exec('pragma wal_checkpoint(truncate)'); // the file alone has it all
  database.close();
  writeFileSync(fixturePath(name, 'db.gz'), gzipSync(readFileSync(path), { level: 9 }));
  rmSync(folder, { recursive: true });
}

/** On the oldest PostgreSQL, whose dump all later ones read. */
async function makePostgres(): Promise<void> {
  const cluster = await startCluster({ version: 14 });
  try {
    const url = await cluster.createDatabase();
    await told('postgres', [], { DATABASE_URL: url });
    const dump = execFileSync('pg_dump', ['--inserts', '--no-owner', '--no-privileges', url], {
      encoding: 'utf8',
      maxBuffer: 1e8,
    });
    // What begins with a backslash is for psql.
    const statements = dump
      .replace(/^\\.*$/gm, '')
      .replace(/^--.*\n/gm, '')
      .replace(/\n{2,}/g, '\n');
    writeFileSync(fixturePath(name, 'sql.gz'), gzipSync(statements, { level: 9 }));
  } finally {
    await cluster.dispose();
  }
}

/** The program is killed once it has heard the story: what it had in flight is still claimed. */
async function told(database: string, flags: string[], env: Record<string, string>): Promise<void> {
  const outside = new Outside({ ails: true });
  await outside.open();
  const args = [
    join(program, 'bin/waypost.js'),
    'dev',
    '--port',
    '0',
    '--log-format',
    'json',
    ...STORY_SETTINGS,
    ...flags,
  ];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], WAYPOST_ENCRYPTION_KEY: ENCRYPTION_KEY, ...env },
  });
  try {
    const url = await urlOf(child);
    outside.servedBy(url);
    const story = await tell(url, outside);
    writeFileSync(fixturePath(name, `${database}.json`), `${JSON.stringify(story, null, 2)}\n`);
  } finally {
    child.kill('SIGKILL');
    await once(child, 'close');
    await outside.close();
  }
}

async function urlOf(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout as Readable })) {
    if (line.includes('"listening"')) {
      child.stdout?.resume();
      return (JSON.parse(line) as { url: string }).url;
    }
  }
  throw new Error('the program ended instead of listening');
}
