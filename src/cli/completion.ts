/** `waypost completion`: what makes a shell complete commands, verbs and options. From the same definitions as the help. */
import { type Command, type Entry, EXIT } from './command.ts';
import { bashScript } from './completion/bash.ts';
import { fishScript } from './completion/fish.ts';
import type { Place, Word } from './completion/places.ts';
import { zshScript } from './completion/zsh.ts';
import { commandOf, type Verb } from './http/verb.ts';
import { namesOf, type Options } from './options.ts';

/** `commands`: the table that this command is in. */
export function completionOf(commands: Readonly<Record<string, Entry>>): Command {
  const verb = (shell: string, file: string, scriptOf: (places: readonly Place[]) => string): Verb => ({
    meaning: `Prints a script for ${shell}, such as for ${file}. Completing a word starts no Waypost and asks no server. Print it anew after an update.`,
    isLocal: true,
    example: `completion ${shell}`,
    async run({ terminal }) {
      terminal.print(scriptOf(await placesIn(commands)));
      return EXIT.ok;
    },
  });
  return commandOf('completion', {
    bash: verb('bash', '~/.local/share/bash-completion/completions/waypost', bashScript),
    zsh: verb('zsh', 'a file _waypost in a folder of $fpath', zshScript),
    fish: verb('fish', '~/.config/fish/completions/waypost.fish', fishScript),
  });
}

async function placesIn(commands: Readonly<Record<string, Entry>>): Promise<Place[]> {
  const places: Place[] = [
    { patterns: [''], words: Object.entries(commands).map(([text, [meaning]]) => ({ text, meaning })) },
  ];
  for (const [name, [, load]] of Object.entries(commands)) {
    const command = await load();
    const verbs = Object.entries(command.verbs ?? {});
    if (verbs.length === 0) {
      places.push({ patterns: [name, `${name} *`], words: wordsOf(command.options([])) });
      continue;
    }
    // As when it is run: without a word a command is its list, or its first verb.
    const own = verbs.some(([word]) => word === 'list') ? 'list' : verbs[0]?.[0];
    const optionsOf = (word: string) => wordsOf(command.options([word]));
    const words = verbs.map(([text, meaning]) => ({ text, meaning }));
    places.push({ patterns: [name], words: [...words, ...optionsOf(own ?? '')] });
    for (const [word] of verbs)
      places.push({ patterns: [`${name} ${word}`, ...(word === own ? [`${name} -*`] : [])], words: optionsOf(word) });
  }
  return places;
}

/** Each name of each option. */
function wordsOf(options: Options): Word[] {
  const named = namesOf(options).map(
    ({ name, ...about }): Word => ({ text: name.length === 1 ? `-${name}` : `--${name}`, ...about }),
  );
  return [...named, { text: '--help', meaning: 'Say more.' }];
}
