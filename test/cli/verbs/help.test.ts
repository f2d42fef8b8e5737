/** Rules for every command and every verb: its help, its example, and the error for a mistyped name. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { EXIT } from '../../../src/cli/command.ts';
import { COMMANDS } from '../../../src/cli/commands.ts';
import { giveCommand } from '../../support/waypost-command.ts';
import { NOBODY, wordsOf } from './support.ts';

/** Each command, or each of its verbs, as the words of a command line, with its help. */
const places = await Promise.all(
  Object.entries(COMMANDS).map(async ([name, [, load]]) => {
    const verbs = Object.keys((await load()).verbs ?? {});
    const named = verbs.length === 0 ? [[name]] : verbs.map((verb) => [name, verb]);
    return Promise.all(named.map(async (words) => ({ words, help: await helpOf(words) })));
  }),
).then((found) => found.flat());

async function helpOf(words: string[]): Promise<string> {
  const { code, stdout } = await giveCommand([...words, '--help']);
  expect([words, code]).toEqual([words, 0]);
  return stdout;
}
const exampleIn = (help: string): string => /^Example: waypost (.*)$/m.exec(help)?.[1] ?? '';
/** The options that a help says something of, without dashes. */
const optionsIn = (help: string): string[] =>
  [...help.matchAll(/^ {2}(?:-\w, )?--([\w-]+)/gm)].map(([, name = '']) => name);

it('every help says how the command is used, and has an example of it that knows its own options', () => {
  for (const { words, help } of places) {
    expect(help).toMatch(new RegExp(`(Usage:|^ {6}) waypost ${words[0]}\\b`, 'm'));
    const example = wordsOf(exampleIn(help));
    expect(example.slice(0, 1), help).toEqual(words.slice(0, 1));
    const given = example.flatMap((word) => /^--([\w-]+)/.exec(word)?.[1] ?? []);
    expect(optionsIn(help), words.join(' ')).toEqual(expect.arrayContaining(given));
  }
  expect(places.length).toBeGreaterThan(50);
});

it('every example of a verb that asks a server is understood', async () => {
  const home = mkdtempSync(join(tmpdir(), 'waypost-help-'));
  const asking = places.filter(({ help }) => help.includes('--server <address>'));
  expect(asking.length).toBeGreaterThan(40);
  for (const { words, help } of asking) {
    const example = wordsOf(
      exampleIn(help)
        .replace(/ <.*/, '')
        .replace(/(?<=--server )\S+/, NOBODY),
    );
    expect(example.slice(0, words.length)).toEqual(words);
    const { code, stderr } = await giveCommand(example, { QSTASH_URL: NOBODY, HOME: home }, undefined, 'token');
    // It gets as far as the server, or as the file that is not there.
    if (code !== EXIT.unavailable) expect(stderr, example.join(' ')).toContain('--file: ENOENT');
  }
  rmSync(home, { recursive: true });
});

it('every command names the option that was meant', async () => {
  for (const { words, help } of places) {
    const meant = optionsIn(help).find((name) => name.length > 3);
    if (meant === undefined) continue;
    const mistyped = `--${meant.slice(0, -2)}${meant.at(-1)}${meant.at(-2)}`;
    const { code, stderr } = await giveCommand([...words, mistyped, 'x']);
    expect([words, code, stderr]).toEqual([
      words,
      2,
      expect.stringContaining(`${mistyped}: there is no such option; did you mean --${meant}?`),
    ]);
  }
});

it('every command with verbs names the verb that was meant', async () => {
  for (const { words } of places) {
    const [name = '', verb] = words;
    if (verb === undefined) continue;
    const mistyped = `${verb}${verb.at(-1)}`;
    const { code, stderr } = await giveCommand([name, mistyped]);
    expect([name, code, stderr]).toEqual([
      name,
      2,
      expect.stringContaining(`there is no "${mistyped}"; did you mean "${verb}"?`),
    ]);
  }
});

it('what ends with each exit code is said in the help and in the docs', async () => {
  const { stdout } = await giveCommand(['--help']);
  const page = readFileSync(new URL('../../../docs/command-line.md', import.meta.url), 'utf8');
  for (const code of Object.values(EXIT)) {
    expect(stdout.replace(/\s+/g, ' ')).toMatch(new RegExp(`Exit codes: .*\\b${code} [a-z]`));
    expect(page).toMatch(new RegExp(`^\\| ${code} \\|`, 'm'));
  }
});
