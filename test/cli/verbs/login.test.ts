/** Profiles: how they are created, which one applies, and who may read them. */
import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { testFolder } from '../../support/folder.ts';
import { type CommandResult, giveCommand } from '../../support/waypost-command.ts';
import { askedServer, NOBODY, tokenOf } from './support.ts';

const [first, second, third, fourth] = [tokenOf(0), tokenOf(1), tokenOf(2), tokenOf(3)];
const server = askedServer();
let home: string;
let file: string;

beforeEach(() => {
  home = testFolder();
  file = join(home, '.config', 'waypost', 'profiles.json');
});

const waypost = (...args: string[]): Promise<CommandResult> => giveCommand(args, { HOME: home });
const login = (...args: string[]): Promise<CommandResult> =>
  giveCommand(['login', '--server', server.url, '--token', '-', ...args], { HOME: home }, undefined, `${first}\n`);
/** The project whose messages a verb would see, and where. */
async function asked(args: string[], env: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await giveCommand(['status', ...args], { HOME: home, ...env });
  return code === 0 ? stdout.split('\n').slice(0, 2).join(' ').replaceAll(/ +/g, ' ') : `${code} ${stderr}`;
}

describe('login', () => {
  it('keeps an address and a token that the server takes, where their owner alone can read them', async () => {
    expect(await login()).toEqual({
      code: 0,
      stdout: `Logged in to ${server.url}: the project "defaultUser", with a full token. Saved as the profile default in ${file}\n`,
      stderr: '',
    });
    expect([statSync(file).mode & 0o777, statSync(join(file, '..')).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(readdirSync(join(file, '..'))).toEqual(['profiles.json']);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ default: { url: server.url, token: first } });
  });

  it('asks for what no option names, and for the token unseen', async () => {
    const asking = await giveCommand(['login', '--server', server.url], { HOME: home }, first);
    expect(asking).toMatchObject({ code: 0, stderr: 'Token: (unseen)' });
    const nobody = await giveCommand(['login', '--server', server.url], { HOME: home });
    expect(nobody).toEqual({ code: 2, stdout: '', stderr: 'waypost: login: --token <token> is missing\n' });
    expect((await waypost('login')).stderr).toBe('waypost: login: --server <address> is missing\n');
  });

  it('says what to do where it can keep nothing', async () => {
    const env = { XDG_CONFIG_HOME: '/proc/waypost' };
    const { code, stderr } = await giveCommand(['login', '--server', server.url, '--token', first], env);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^waypost: cannot save the profile: E[A-Z]+: .*; set XDG_CONFIG_HOME to a folder of yours, or use QSTASH_URL and QSTASH_TOKEN\n$/,
      ),
    ]);
  });

  it('keeps nothing that the server does not take', async () => {
    expect((await waypost('login', '--server', server.url, '--token', 'nobody')).code).toBe(5);
    expect((await waypost('login', '--server', NOBODY, '--token', first)).code).toBe(4);
    expect((await login('--profile', 'a/b')).code).toBe(2);
    expect((await waypost('login', '--server', server.url, '--token', 'a\nb')).code).toBe(2);
    expect(readdirSync(home)).toEqual([]);
    expect((await giveCommand(['login', '--server', server.url, '--token', first])).stderr).toContain('set HOME');
  });
});

it('options win over the environment, and that over the default profile', async () => {
  await login();
  await login('--profile', 'shop', '--token', second);
  const env = { QSTASH_URL: server.url, QSTASH_TOKEN: third };
  const of = (account: number, title: string) =>
    `server ${server.url}${title} project ${['defaultUser', 'testUser1', 'testUser2', 'testUser3'][account]}, with a full token`;
  expect(await asked([])).toBe(of(0, ' (profile default)'));
  expect(await asked(['--profile', 'shop'])).toBe(of(1, ' (profile shop)'));
  expect(await asked([], env)).toBe(of(2, ''));
  expect(await asked(['--profile', 'shop'], env)).toBe(of(1, ' (profile shop)'));
  expect(await asked(['--token', fourth], env)).toBe(of(3, ''));
  expect(await asked(['--profile', 'shpo'])).toBe('3 waypost: there is no profile "shpo"; see waypost profiles\n');
});

it('sends the token of a profile nowhere else', async () => {
  await login();
  // The environment or an option names another server: then the profile has no say in the token.
  expect(await asked([], { QSTASH_URL: NOBODY })).toMatch(/^4 waypost: no server responds/);
  expect(await asked(['--profile', 'default', '--server', NOBODY])).toBe(
    '2 waypost: --profile: cannot be combined with --server or --token\n',
  );
});

it('a question names the profile and the server', async () => {
  await login('--profile', 'shop');
  const { stderr } = await giveCommand(['signing-keys', 'rotate', '--profile', 'shop'], { HOME: home }, 'n');
  expect(stderr).toBe(`Rotate the signing keys at ${server.url} (profile shop)? [y/N] waypost: nothing was done\n`);
});

it('lists profiles without their tokens, and forgets them', async () => {
  await login();
  await login('--profile', 'shop');
  const { stdout } = await waypost('profiles');
  expect(stdout).toBe(`PROFILE  SERVER\ndefault  ${server.url}\nshop     ${server.url}\n`);
  expect((await waypost('logout')).code).toBe(0);
  expect((await waypost('logout')).code).toBe(3);
  expect(JSON.parse((await waypost('profiles', '--json')).stdout)).toEqual([{ profile: 'shop', server: server.url }]);
  expect(readFileSync(file, 'utf8')).not.toContain('default');
});

it.each([0o640, 0o604, 0o660])('refuses a file that others can read or write: %o', async (mode) => {
  await login();
  chmodSync(file, mode);
  expect(await asked([])).toBe(`5 waypost: ${file} has tokens and is readable by others: chmod 600 ${file}\n`);
  // Who names a server needs no profile.
  expect(await asked(['--server', server.url, '--token', first])).toContain('defaultUser');
});
