/** The command line as a process, and as functions where a test checks only the texts. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { deriveOperations } from '../../src/cli/http/derived-operations.ts';
import { testFolder } from '../support/folder.ts';
import { serveInProcess } from '../support/in-process-server.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { giveCommand } from '../support/waypost-command.ts';
import { runWaypost } from '../support/waypost-process.ts';

describe('waypost', () => {
  let folder: string;

  beforeEach(() => {
    folder = testFolder();
  });

  it('lists its commands', async () => {
    const { code, stdout } = await runWaypost(['--help']);
    expect(code).toBe(0);
    for (const name of ['dev', 'serve', 'init', 'config', 'version']) expect(stdout).toContain(`\n  ${name} `);
  });

  it('answers no help by loading a server, or a package', async () => {
    // The package has the operations in a file; a checkout would load the routes to derive them.
    const built = `export const deriveOperations = () => (${JSON.stringify(deriveOperations())})`;
    const script = `
      import { registerHooks } from 'node:module';
      const loaded = new Set();
      const built = { url: ${JSON.stringify(`data:text/javascript,${encodeURIComponent(built)}`)}, shortCircuit: true };
      registerHooks({ resolve(name, context, next) {
        if (name === './derived-operations.ts') return built;
        const found = next(name, context); loaded.add(found.url); return found;
      } });
      const { runCommandLine } = await import(${JSON.stringify(new URL('../../src/cli/command-line.ts', import.meta.url))});
      let names = '';
      const terminal = { env: {}, print: (text) => void (names += text), printError() {}, isInteractive: false, color: false };
      await runCommandLine(['--help'], terminal);
      for (const [, name] of names.matchAll(/^ {2}(\\S+) /gm)) await runCommandLine([name, '--help'], terminal);
      console.log([...loaded].join('\\n'));`;
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--no-warnings',
      '--input-type=module',
      '-e',
      script,
    ]);
    const loaded = stdout.trimEnd().split('\n');
    for (const file of ['cli/verbs/dlq.ts', 'cli/run/serve.ts', 'cli/operate/backup.ts'])
      expect(stdout).toContain(`/src/${file}\n`);
    expect(loaded.filter((url) => !/^node:|\/src\/(cli|config|protocol|engine|system)\//.test(url))).toEqual([]);
  });

  it('explains itself and fails when no command is given', async () => {
    const { code, stdout } = await giveCommand([]);
    expect(code).toBe(2);
    expect(stdout).toContain('Usage: waypost <command>');
  });

  it.each(['20.20.2', '22.18.0'])('says in one line that Node %s is too old for it', async (version) => {
    const pretend = `Object.defineProperty(process,'versions',{value:{node:'${version}'}})`;
    const { code, stdout, stderr } = await runWaypost(['--version'], {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(pretend)}`,
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(new RegExp(`^waypost: Node ${version} is too old; 22.19 or newer is required.*\\n$`));
  });

  it('prints its version', async () => {
    expect((await giveCommand(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it.each([
    [['sevre'], 'there is no command "sevre"; did you mean "serve"? See waypost --help'],
    [['help', 'sevre'], 'there is no command "sevre"; did you mean "serve"? See waypost --help'],
    [['shout'], 'there is no command "shout"; see waypost --help'],
    [['constructor'], 'there is no command "constructor"; see waypost --help'],
    [['tokens', 'constructor'], 'tokens: there is no "constructor"; see waypost tokens --help'],
    [['runs', 'constructor'], 'runs: there is no "constructor"; see waypost runs --help'],
    [['dlq', 'list', '--queeName', 'a'], '--queeName: there is no such option; did you mean --queue-name?'],
    [['tokens', 'lsit'], 'tokens: there is no "lsit"; did you mean "list"? See waypost tokens --help'],
    [['runs', 'explain'], 'runs: there is no "explain"; see waypost runs --help'],
    [['dev', '--prot', '9000'], '--prot: there is no such option; did you mean --port?'],
    [['serve', '--no-verfy-tls'], '--no-verfy-tls: there is no such option; did you mean --no-verify-tls?'],
    [['dev', '--forec'], '--forec: there is no such option; did you mean --force?'],
    [['backup', '--too=/backups'], '--too: there is no such option; did you mean --to?'],
    [['runs', '--stae', 'failed'], '--stae: there is no such option; did you mean --state?'],
    [['serve', '--colour'], '--colour: there is no such option'],
  ])('names what %j was probably meant to be', async (args, complaint) => {
    expect(await giveCommand(args)).toEqual({ code: 2, stdout: '', stderr: `waypost: ${complaint}\n` });
  });

  it('shows the help of a command instead of running it', async () => {
    const { code, stdout } = await giveCommand(['dev', '--port', 'x', '--help']);
    expect(code).toBe(0);
    expect(stdout).toContain('--in-flight-max <number>');
    expect((await giveCommand(['help', 'dev'])).stdout).toBe(stdout);
  });

  it.each(['init', 'projects', 'tokens', 'doctor'])(
    'shows in the help of %s only what it can make use of',
    async (name) => {
      const { stdout } = await giveCommand([name, '--help']);
      expect(stdout).toContain('--data-dir <text>');
      expect(stdout).not.toContain('--in-flight-max');
      expect(stdout.split('\n').length).toBeLessThan(40);
    },
  );

  it('prints the settings in force without secrets', async () => {
    const key = Buffer.alloc(32).toString('base64');
    const { code, stdout } = await giveCommand(['config', '--dev', '--port', '1234'], { WAYPOST_ENCRYPTION_KEY: key });
    expect(code).toBe(0);
    expect(stdout).toContain('WAYPOST_PORT=1234\n');
    expect(stdout).toContain('WAYPOST_ALLOW_DESTINATIONS=loopback\n');
    expect(stdout).toContain('WAYPOST_ENCRYPTION_KEY=(secret, set)\n');
    expect(stdout).not.toContain(key);
  });

  it('finds nothing wrong in the store of a running server, nor in that of a stopped one', async () => {
    const server = await serveInProcess(['dev', '--data-dir', folder]);
    const live = await runWaypost(['doctor', '--data-dir', folder]);
    expect([live.code, live.stderr]).toEqual([0, '']);
    expect(live.stdout).toContain('ok    Every unfinished message has its content.\n');
    await server.stop();
    const stopped = await giveCommand(['doctor', '--json', '--data-dir', folder]);
    expect(stopped.code).toBe(0);
    expect(JSON.parse(stopped.stdout)).toMatchObject({ isSound: true, census: { unfinished: 0, queues: 0 } });
  });

  it('says that there is no store to examine', async () => {
    const { code, stderr } = await giveCommand(['doctor', '--data-dir', join(folder, 'none')]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^waypost: there is no database .*\n$/);
  });

  it('reports every wrong setting, one line each', async () => {
    const { code, stderr } = await giveCommand(['serve', '--workers', '0'], { PORT: 'http' });
    expect(code).toBe(2);
    expect(stderr.split('\n')).toEqual([
      'waypost: PORT: must be a whole number from 0 to 65535, not "http"',
      'waypost: --workers: must be a whole number from 1 to 64, not "0"',
      '',
    ]);
  });

  it.each(['0.0.0.0', '::', '192.168.1.5', '127.0.0.1.example.com'])(
    'refuses to offer the published credentials on %s',
    async (host) => {
      const { code, stderr } = await giveCommand(['dev', '--memory', '--port', '0', '--host', host]);
      expect(code).toBe(2);
      expect(stderr).toContain(`dev listens on loopback addresses only, not on ${host}`);
    },
  );

  it.each([
    ['--allow-destinations=10.0.0.0/99', 'WAYPOST_ALLOW_DESTINATIONS'],
    ['--trusted-proxies=proxy', 'WAYPOST_TRUSTED_PROXIES'],
    ['--host=256.1.1.1', 'dev listens on loopback addresses only'],
  ])('says in one line what is wrong with %s', async (flag, complaint) => {
    const { code, stderr } = await giveCommand(['dev', '--memory', '--port', '0', flag]);
    expect(code).toBeGreaterThan(0);
    expect(stderr).toContain(complaint);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  });

  it.each([
    ['dev', runWaypost],
    ['init', giveCommand],
  ])('says that %s can make no data folder where the system has none', async (name, give) => {
    const { code, stdout, stderr } = await give([name, '--data-dir', '/proc/waypost/data']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^waypost: cannot open the database \/proc\/waypost\/data\/waypost.db: E[A-Z]+: .*\n$/);
  });

  it('refuses to serve before init', async () => {
    const { code, stdout, stderr } = await runWaypost(['serve', '--port', '0', '--data-dir', folder]);
    expect(code).toBe(1);
    expect(stderr).toBe(
      `waypost: there is no database ${join(folder, 'waypost.db')}: set its location with --data-dir or DATABASE_URL; "waypost init" creates a new one\n`,
    );
    expect(stdout).toBe('');
  });

  it.each([
    ['doctor'],
    ['init'],
    ['backup', '--to', '/tmp'],
    ['migrate-store', '--from', 'sqlite:/x', '--to', 'DATABASE_URL'],
  ])('refuses a parameter of the URL that cannot be followed, by its name: %s', async (...words) => {
    const url = 'postgres://somebody:hunter2@127.0.0.1:1/waypost?sslmode=bogus';
    const args = words.map((word) => (word === 'DATABASE_URL' ? url : word));
    const { code, stderr } = await giveCommand(args, { DATABASE_URL: url });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^waypost: .*sslmode must be one of .* not "bogus"\n$/)]);
    expect(stderr).not.toContain('hunter2');
  });

  it.each([['serve'], ['doctor'], ['projects'], ['backup', '--to', '/tmp'], ['restore', '--from', '/tmp/backup.db']])(
    'does not call missing what this user may not read: %s',
    async (...args) => {
      vi.spyOn(fs, 'accessSync').mockImplementation((path) => {
        throw Object.assign(new Error(`EACCES: permission denied, access '${path}'`), { code: 'EACCES' });
      });
      syncBuiltinESMExports();
      try {
        const { code, stderr } = await giveCommand([...args, '--data-dir', folder]);
        expect(code).toBe(1);
        expect(stderr).toMatch(
          /^waypost: \S+\.db cannot be read \(EACCES\): run this as the user that the server runs as\n$/,
        );
      } finally {
        vi.restoreAllMocks();
        syncBuiltinESMExports();
      }
    },
  );

  it.each([['serve', '--port', '0'], ['projects'], ['tokens']])(
    'makes no store of a PostgreSQL database that it was given by mistake: %s',
    async (...args) => {
      const url = await freshDatabase();
      const { code, stderr } = await giveCommand([...args, '--data-dir', folder], {
        ...{ DATABASE_URL: url, WAYPOST_ENCRYPTION_KEY: Buffer.alloc(32).toString('base64') },
      });
      const { host, pathname } = new URL(url);
      expect([code, stderr]).toEqual([
        1,
        `waypost: there is no store of Waypost in ${pathname.slice(1)} on ${host}: "waypost init" creates one\n`,
      ]);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const { rows } = await client.query("select 1 from pg_tables where schemaname = 'public'");
      await client.end();
      expect(rows).toEqual([]);
    },
  );

  it('names a way out of a PostgreSQL database that has tables of another program', async () => {
    const url = await freshDatabase();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('create table messages (id integer)');
    await client.end();
    const { code, stderr } = await giveCommand(['init', '--data-dir', folder], { DATABASE_URL: url });
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /already exists: this database has tables of another program; use another database, or add \?schema=waypost\n$/,
      ),
    ]);
  });

  it('says who must make a folder that "waypost init" may not make', async () => {
    const denied = Object.assign(new Error("EACCES: permission denied, mkdir '/var/lib/waypost'"), { code: 'EACCES' });
    vi.spyOn(fs, 'mkdirSync').mockImplementation(() => {
      throw denied;
    });
    syncBuiltinESMExports();
    try {
      const { code, stderr } = await giveCommand(['init', '--data-dir', join(folder, 'waypost')]);
      expect([code, stderr]).toEqual([
        1,
        `waypost: cannot open the database ${join(folder, 'waypost', 'waypost.db')}: ${denied.message}: create the folder first, owned by the user that Waypost runs as\n`,
      ]);
    } finally {
      vi.restoreAllMocks();
      syncBuiltinESMExports();
    }
  });

  it('refuses to serve from memory', async () => {
    expect((await giveCommand(['serve', '--port', '0', '--memory'])).code).toBe(2);
  });

  it('makes a token once, and another only when asked to', async () => {
    const first = await giveCommand(['init', '--data-dir', folder]);
    expect(first.code).toBe(0);
    expect(first.stdout).toMatch(
      /^QSTASH_TOKEN=\S+\nQSTASH_CURRENT_SIGNING_KEY=sig_\w{28}\nQSTASH_NEXT_SIGNING_KEY=sig_\w{28}\n$/,
    );
    const again = await giveCommand(['init', '--data-dir', folder]);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('has a token already');
    const added = await giveCommand(['init', '--data-dir', folder, '--add-token']);
    expect(added.code).toBe(0);
    const [firstToken, ...firstKeys] = first.stdout.split('\n');
    const [addedToken, ...addedKeys] = added.stdout.split('\n');
    expect(addedToken).not.toBe(firstToken);
    expect(addedKeys).toEqual(firstKeys);
  });

  it('makes a token that only reads, and shows no signing keys with it (contract M 2.2)', async () => {
    const full = await giveCommand(['init', '--data-dir', folder]);
    const { code, stdout } = await giveCommand(['init', '--data-dir', folder, '--add-token', '--read-only']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^QSTASH_TOKEN=\S+\n$/);
    const server = await serveInProcess(['serve', '--data-dir', folder]);
    try {
      const ask = (output: string, method: string, path: string) => {
        const token = /^QSTASH_TOKEN=(.*)$/m.exec(output)?.[1];
        return fetch(`${server.url}${path}`, { method, headers: { authorization: `Bearer ${token}` } });
      };
      expect((await ask(stdout, 'GET', '/v2/logs')).status).toBe(200);
      expect((await ask(stdout, 'GET', '/v2/keys')).status).toBe(403);
      expect((await ask(stdout, 'DELETE', '/v2/messages')).status).toBe(403);
      expect((await ask(full.stdout, 'DELETE', '/v2/messages')).status).toBe(200);
    } finally {
      await server.stop();
    }
  });

  it('puts the project into the token, as clients decode it', async () => {
    const { stdout } = await giveCommand(['init', '--data-dir', folder, '--project', 'shop']);
    const token = /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
    const { UserID, Password } = JSON.parse(Buffer.from(token, 'base64').toString('utf8'));
    expect(UserID).toBe('shop');
    expect(Buffer.from(Password, 'base64url')).toHaveLength(32);
  });

  it.each(['defaultUser', 'a b', ''])('refuses the project name %j', async (project) => {
    expect((await giveCommand(['init', '--data-dir', folder, '--project', project])).code).toBe(1);
  });
});
