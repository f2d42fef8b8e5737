/** Completion in bash. In zsh and fish: completion.full.test.ts. */
import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { COMMANDS } from '../../../src/cli/commands.ts';
import { giveCommand } from '../../support/waypost-command.ts';
import { COMPLETIONS, scriptFor } from './completions.ts';

/** Of each of `lines` what bash offers for its last word, sorted. */
async function offered(lines: readonly (readonly string[])[]): Promise<string[][]> {
  const asked = lines.map((words) => {
    const quoted = ['waypost', ...words].map((word) => `'${word}'`).join(' ');
    return `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}; _waypost; echo "\${COMPREPLY[*]}"`;
  });
  // No command but those of bash itself: completion starts nothing, and asks nobody.
  const options = {
    env: { PATH: '' },
    encoding: 'utf8',
    input: [await scriptFor('bash'), ...asked].join('\n'),
  } as const;
  const said = execFileSync('/bin/bash', ['--norc', '--noprofile', '-s'], options);
  return said
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' ').filter(Boolean).toSorted());
}

it('bash completes commands, verbs and options, and starts nothing for it', async () => {
  expect(await offered(COMPLETIONS.map(([typed]) => typed))).toEqual(COMPLETIONS.map(([, words]) => words));
});

it('bash offers every option that a help names, and leaves values to whoever types', async () => {
  const places = await Promise.all(
    Object.entries(COMMANDS).map(async ([name, [, load]]) => {
      const verbs = Object.keys((await load()).verbs ?? {});
      return verbs.length === 0 ? [[name]] : verbs.map((verb) => [name, verb]);
    }),
  ).then((found) => found.flat());
  const options = await Promise.all(
    places.map(async (words) => {
      const { stdout } = await giveCommand([...words, '--help']);
      const named = [...stdout.matchAll(/^ {2}(-.*)$/gm)].flatMap(
        ([, usage = '']) => usage.match(/(?<=^|, )--?[\w-]+/g) ?? [],
      );
      return [...new Set([...named, '--help'])].toSorted();
    }),
  );
  expect(await offered(places.map((words) => [...words, '-']))).toEqual(options);
  expect(await offered([['publish', '--body', '']])).toEqual([[]]);
});
