/** `waypost projects`: lists and makes projects, also while a server runs. */
import { parseConfig } from '../../config/parse.ts';
import { columns, inZone, isoOf, minuteOf } from '../columns.ts';
import { CommandFailed, EXIT, printJson, type Terminal } from '../command.ts';
import { configured, type Given } from '../configured.ts';
import { progressOf } from '../progress.ts';
import { operate } from './operate.ts';

export const projects = configured(
  'projects',
  {
    about: `Usage: waypost projects [list] [--json] [options]
       waypost projects create <name> [--json] [options]
       waypost projects move <name> --to <cell> [--json] [options]
       waypost projects move <name> --cancel [options]

Messages, names, logs, limits and signing keys belong to a project: its tokens see nothing of another. Works on the data
folder, or on the database of DATABASE_URL, whether a server runs on it or not.

  list
      Every project with its number of tokens.
  create <name>
      Makes a project and prints its signing keys, which its endpoints verify deliveries with. "waypost tokens create"
      makes the token to publish with.
  move <name>
      Copies what the project has while servers run, then lets it wait for a moment: what is sent to it is refused with 503. What
      was interrupted goes on when it is called again; until the project lives there, it can be cancelled.`,
    options: {
      '--to <cell>': 'The name of the cell; "waypost cells" lists them.',
      '--cancel': 'End a move that was interrupted, and remove what was copied.',
      '--json': 'Print JSON.',
    },
    settings: 'store',
    example: 'projects create shop',
  },
  {
    list: ['Every project.', list],
    create: ['Makes a project and prints its signing keys.', create, "the project's name"],
    move: ['Moves a project to another cell, while servers run.', move, "the project's name"],
  },
);

async function list(given: Given, terminal: Terminal): Promise<number> {
  const entries = await operate(given.settings, terminal, (on) => on.listProjects());
  if (given.has('json')) {
    printJson(
      terminal,
      entries.map(({ name, createdAtMs, tokens }) => ({ name, createdAt: isoOf(createdAtMs), tokens })),
    );
  } else {
    const rows = entries.map(({ name, createdAtMs, tokens }) => [name, minuteOf(createdAtMs), String(tokens)]);
    terminal.print(columns([['PROJECT', inZone('CREATED'), 'TOKENS'], ...rows]));
  }
  return EXIT.ok;
}

async function create(given: Given, terminal: Terminal): Promise<number> {
  const name = given.word;
  const { signingKeys } = await operate(given.settings, terminal, (on) => on.createProject({ name }));
  if (given.has('json')) {
    printJson(terminal, { name, signingKeys });
  } else {
    terminal.complain(`The project "${name}" is made. Its endpoints verify deliveries with these keys:\n\n`);
    terminal.print(`QSTASH_CURRENT_SIGNING_KEY=${signingKeys.current}\nQSTASH_NEXT_SIGNING_KEY=${signingKeys.next}\n`);
  }
  return EXIT.ok;
}

async function move(given: Given, terminal: Terminal): Promise<number> {
  const project = given.word;
  const to = given.value('to');
  if ((to === undefined) !== given.has('cancel'))
    throw new CommandFailed('projects move: give --to or --cancel', EXIT.usage);
  const config = parseConfig(terminal.env, given.settings);
  const { cancelMoveOf, moveProjectTo } = await import('../../cells/operate/move-command.ts');
  if (to === undefined) {
    await cancelMoveOf(config, { project });
    terminal.complain(`The project "${project}" stays where it is.\n`);
    return EXIT.ok;
  }
  const progress = progressOf(terminal);
  let rows = 0;
  const { tables, pausedMs } = await moveProjectTo(config, {
    ...{ project, to },
    onProgress: (told) => {
      if ('step' in told) {
        progress.end();
        terminal.complain(`${told.step}\n`);
        return;
      }
      rows += told.rows;
      progress.tell(rows, undefined, 'rows');
    },
  }).finally(progress.end);
  if (given.has('json'))
    printJson(terminal, { project, cell: to, ...(pausedMs !== undefined && { pausedMs }), tables });
  else {
    const lines = tables
      .filter(({ rows: count }) => count > 0)
      .map(({ table, rows: count, checksum }) => [table, String(count), checksum]);
    if (lines.length > 0) terminal.print(columns([['TABLE', 'ROWS', 'CHECKSUM ON BOTH SIDES'], ...lines]));
    const paused = pausedMs === undefined ? '' : ` It was refused for ${Math.round(pausedMs)} ms.`;
    terminal.complain(`The project "${project}" lives in the cell "${to}" now.${paused}\n`);
  }
  return EXIT.ok;
}
