/** `waypost completion`: prints completion scripts for shells, from the same definitions as the help. */
import { type Command, type CommandEntry, EXIT } from './command.ts';
import { bashScript } from './completion/bash.ts';
import type { Candidate, CompletionContext } from './completion/contexts.ts';
import { fishScript } from './completion/fish.ts';
import { zshScript } from './completion/zsh.ts';
import { commandOf, type Verb } from './http/verb.ts';
import { namesOf, type Options } from './options.ts';

/** `commands`: the table of all commands. */
export function completionOf(commands: Readonly<Record<string, CommandEntry>>): Command {
  const verb = (shell: string, file: string, scriptOf: (contexts: readonly CompletionContext[]) => string): Verb => ({
    meaning: `Prints a script for ${shell}, such as for ${file}. The script runs without Waypost or a server. Print it again after an update.`,
    isLocal: true,
    example: `completion ${shell}`,
    async run({ terminal }) {
      terminal.print(scriptOf(await contextsOf(commands)));
      return EXIT.ok;
    },
  });
  return commandOf('completion', {
    bash: verb('bash', '~/.local/share/bash-completion/completions/waypost', bashScript),
    zsh: verb('zsh', 'a file _waypost in a folder of $fpath', zshScript),
    fish: verb('fish', '~/.config/fish/completions/waypost.fish', fishScript),
  });
}

async function contextsOf(commands: Readonly<Record<string, CommandEntry>>): Promise<CompletionContext[]> {
  const contexts: CompletionContext[] = [
    { patterns: [''], words: Object.entries(commands).map(([text, [meaning]]) => ({ text, meaning })) },
  ];
  for (const [name, [, load]] of Object.entries(commands)) {
    const command = await load();
    const verbs = Object.entries(command.verbs ?? {});
    if (verbs.length === 0) {
      contexts.push({ patterns: [name, `${name} *`], words: wordsOf(command.options([])) });
      continue;
    }
    // Without a verb, a command runs `list`, or else its first verb.
    const defaultVerb = verbs.some(([word]) => word === 'list') ? 'list' : verbs[0]?.[0];
    const optionsOf = (word: string) => wordsOf(command.options([word]));
    const words = verbs.map(([text, meaning]) => ({ text, meaning }));
    contexts.push({ patterns: [name], words: [...words, ...optionsOf(defaultVerb ?? '')] });
    for (const [word] of verbs)
      contexts.push({
        patterns: [`${name} ${word}`, ...(word === defaultVerb ? [`${name} -*`] : [])],
        words: optionsOf(word),
      });
  }
  return contexts;
}

/** All names of the options, with their dashes, as candidates. */
function wordsOf(options: Options): Candidate[] {
  const candidates = namesOf(options).map(
    ({ name, ...about }): Candidate => ({ text: name.length === 1 ? `-${name}` : `--${name}`, ...about }),
  );
  return [...candidates, { text: '--help', meaning: 'Print the help.' }];
}
