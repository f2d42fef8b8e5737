/** Completion in the shells that not every machine has. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEBIAN_ENV, obstacleTo } from '../../support/debian.ts';
import { COMPLETIONS, scriptFor } from './completions.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'waypost-completion-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** What is printed between `LINE`s, sorted, without what follows a tab or a colon. */
function listsIn(said: string): string[][] {
  const lists = said.split('LINE\n').slice(1);
  return lists.map((list) =>
    list
      .split('\n')
      .flatMap((line) => /^[^\t:]+/.exec(line)?.[0] ?? [])
      .toSorted(),
  );
}
const wanted = COMPLETIONS.map(([, words]) => words);

describe('fish', () => {
  const obstacle = obstacleTo('fish');
  const title = `completes commands, verbs and options, with what they mean${obstacle ? ` (skipped: ${obstacle})` : ''}`;

  it.skipIf(obstacle !== undefined)(title, async () => {
    const lines = COMPLETIONS.map(([typed]) => `echo LINE; complete -C 'waypost ${typed.join(' ')}'`);
    const env = { ...DEBIAN_ENV, HOME: folder, XDG_CONFIG_HOME: folder };
    // From a file: it is too long for an argument.
    const file = join(folder, 'waypost.fish');
    writeFileSync(file, await scriptFor('fish'));
    const said = execFileSync('fish', ['--no-config', '-c', [`source ${file}`, ...lines].join('\n')], {
      env,
      cwd: folder,
      encoding: 'utf8',
    });
    expect(listsIn(said)).toEqual(wanted);
    expect(said).toContain('retry\tPublishes the entries again and removes them from the DLQ\n');
  });
});

describe('zsh', () => {
  const obstacle = obstacleTo('zsh');
  const title = `completes commands, verbs and options, with what they mean${obstacle ? ` (skipped: ${obstacle})` : ''}`;

  it.skipIf(obstacle !== undefined)(title, async () => {
    writeFileSync(join(folder, '_waypost'), await scriptFor('zsh'));
    // What zsh does with the words that it is given, and how it chooses among them, is left to it: here they are printed.
    const stubs = `
      compdef() { compdefs=$*; }
      _files() { return 1; }
      _describe() { local each; for each in "\${(@P)2}"; do [[ $each == "$words[CURRENT]"* ]] && print -r -- "$each"; done; true; }`;
    const lines = COMPLETIONS.map(([typed]) => {
      const quoted = ['waypost', ...typed].map((word) => `'${word}'`).join(' ');
      return `words=(${quoted}); CURRENT=${typed.length + 1}; print LINE; _waypost`;
    });
    const script = [stubs, `source ${join(folder, '_waypost')}`, 'print -- $compdefs', ...lines].join('\n');
    const said = execFileSync('zsh', ['-f', '-c', script], { env: DEBIAN_ENV, cwd: folder, encoding: 'utf8' });
    expect(said).toMatch(/^_waypost waypost\n/);
    expect(listsIn(said)).toEqual(wanted);
    expect(said).toContain('retry:Publishes the entries again and removes them from the DLQ\n');
  });
});
