/** The output on a real terminal, which `script` of util-linux creates for a process. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { askedServer } from './verbs/support.ts';

const MAIN = join(import.meta.dirname, '../../bin/waypost.js');
const hasTerminals = spawnSync('script', ['--version']).status === 0;
const server = askedServer();
let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'waypost-terminal-'));
});
afterAll(() => rmSync(home, { recursive: true }));

/** `answers`: what is typed after each text that is waited for. */
async function inTerminal(command: string, answers: readonly (readonly [string, string])[], env = {}) {
  const child = spawn('script', ['-qec', `${process.execPath} ${MAIN} ${command}`, '/dev/null'], {
    env: { PATH: process.env['PATH'], HOME: home, TERM: 'xterm', ...env },
  });
  let shown = '';
  child.stdout.on('data', (bytes: Buffer) => {
    shown += bytes.toString();
  });
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  for (const [question, answer] of answers) {
    await eventually(
      () => `${question} in ${shown}`,
      () => shown.includes(question),
    );
    child.stdin.write(answer);
  }
  return { code: await closed, shown };
}

it.skipIf(!hasTerminals)('login shows nothing of the token that is typed', async () => {
  const { QSTASH_URL: url, QSTASH_TOKEN: token } = server.env;
  const { code, shown } = await inTerminal('login', [
    ['Address', `${url}\r`],
    ['Token: ', `${token}\r`],
  ]);
  expect([code, shown]).toEqual([0, expect.stringContaining('Logged in to')]);
  expect(shown).not.toContain(token.slice(0, 8));
  expect(readFileSync(join(home, '.config/waypost/profiles.json'), 'utf8')).toContain(token);
});

it.skipIf(!hasTerminals)('Ctrl-C at the token leaves the terminal, and keeps nothing', async () => {
  const { code, shown } = await inTerminal(`login --profile other --server ${server.url}`, [['Token: ', 'secret\x03']]);
  expect([code, shown]).toEqual([130, expect.not.stringContaining('secret')]);
  expect(readFileSync(join(home, '.config/waypost/profiles.json'), 'utf8')).not.toContain('other');
});

it.skipIf(!hasTerminals)('a terminal has colours, unless NO_COLOR is set', async () => {
  const id = (await server.done('publish', 'http://127.0.0.1:9', '--delay', '1h')).trim();
  await server.done('messages', 'cancel', id, '--yes');
  const coloured = '\u001B[90mCANCELED';
  expect((await inTerminal('logs', [], server.env)).shown).toContain(coloured);
  expect((await inTerminal('logs', [], { ...server.env, NO_COLOR: '' })).shown).not.toContain('\u001B[90m');
});
