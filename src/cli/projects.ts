/** `waypost projects`: lists and makes projects, also while a server runs. */
import { storeSettingsHelp } from '../config/page.ts';
import { columns, minuteOf, timeOf } from './columns.ts';
import {
  type Command,
  EXIT,
  printJson,
  required,
  type Terminal,
  takeSwitch,
  takeWord,
  unknownAction,
} from './command.ts';
import { operate } from './operate.ts';

const VERBS = { list: 'Every project.', create: 'Makes a project and prints its signing keys.' };

export const projects: Command = {
  verbs: VERBS,
  help: () =>
    `Usage: waypost projects [list] [--json] [options]
       waypost projects create <name> [--json] [options]

Messages, names, logs, limits and signing keys belong to a project: its tokens see nothing of another. Works on the data
folder, whether a server runs on it or not.

  list
      Every project with its number of tokens.
  create <name>
      Makes a project and prints its signing keys, which its endpoints verify deliveries with. "waypost tokens create"
      makes the token to publish with.
  --json
      Print JSON.
${storeSettingsHelp()}
Example: waypost projects create shop
`,
  async run(args, terminal) {
    const { given: json, rest: afterJson } = takeSwitch(args, '--json');
    const { word: action = 'list', rest } = takeWord(afterJson);
    switch (action) {
      case 'list':
        return list(rest, terminal, json);
      case 'create':
        return create(rest, terminal, json);
      default:
        return unknownAction('projects', action, Object.keys(VERBS));
    }
  },
};

async function list(settings: readonly string[], terminal: Terminal, json: boolean): Promise<number> {
  const entries = await operate(settings, terminal, (on) => on.listProjects());
  if (json) {
    printJson(
      terminal,
      entries.map(({ name, createdAtMs, tokens }) => ({ name, createdAt: timeOf(createdAtMs), tokens })),
    );
  } else {
    const rows = entries.map(({ name, createdAtMs, tokens }) => [name, minuteOf(createdAtMs), String(tokens)]);
    terminal.print(columns([['PROJECT', 'CREATED (UTC)', 'TOKENS'], ...rows]));
  }
  return EXIT.ok;
}

async function create(args: readonly string[], terminal: Terminal, json: boolean): Promise<number> {
  const { word, rest } = takeWord(args);
  const name = required(word, "projects create: the project's name");
  const { signingKeys } = await operate(rest, terminal, (on) => on.createProject({ name }));
  if (json) {
    printJson(terminal, { name, signingKeys });
  } else {
    terminal.complain(`The project "${name}" is made. Its endpoints verify deliveries with these keys:\n\n`);
    terminal.print(`QSTASH_CURRENT_SIGNING_KEY=${signingKeys.current}\nQSTASH_NEXT_SIGNING_KEY=${signingKeys.next}\n`);
  }
  return EXIT.ok;
}
