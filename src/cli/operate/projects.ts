/** `waypost projects`: lists, creates and moves projects, also while a server runs. */
import { parseConfig } from '../../config/parse.ts';
import { columns, inZone, isoOf, minuteOf } from '../columns.ts';
import { CommandFailed, EXIT, printJson, type Terminal } from '../command.ts';
import { commandWithSettings, type ParsedCommand } from '../command-with-settings.ts';
import { progressOf } from '../progress.ts';
import { operate } from './operate.ts';

export const projects = commandWithSettings(
  'projects',
  {
    about: `Usage: waypost projects [list] [--json] [options]
       waypost projects create <name> [--json] [options]
       waypost projects move <name> --to <cell> [--json] [options]
       waypost projects move <name> --cancel [options]

Messages, names, logs, limits and signing keys belong to a project, and a token has access to one project only. Works on
the data folder, or on the database of DATABASE_URL, whether a server is running on it or not.

  list
      Lists every project with its number of tokens.
  create <name>
      Creates a project and prints its signing keys, which its endpoints verify deliveries with. "waypost tokens create"
      creates the token to publish with.
  move <name>
      Copies the project's data while servers run, then pauses the project for a moment: requests to it get a 503. If it is
      interrupted, run it again to continue; it can be cancelled until the project is in its new cell.`,
    options: {
      '--to <cell>': 'The name of the cell; "waypost cells" lists them.',
      '--cancel': 'Cancel an interrupted move, and delete the rows that it copied.',
      '--json': 'Print JSON.',
    },
    settings: 'store',
    example: 'projects create shop',
  },
  {
    list: ['Lists every project.', list],
    create: ['Creates a project and prints its signing keys.', create, "the project's name"],
    move: ['Moves a project to another cell, while servers run.', move, "the project's name"],
  },
);

async function list(parsed: ParsedCommand, terminal: Terminal): Promise<number> {
  const entries = await operate(parsed.settings, terminal, (admin) => admin.listProjects());
  if (parsed.has('json')) {
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

async function create(parsed: ParsedCommand, terminal: Terminal): Promise<number> {
  const name = parsed.word;
  const { signingKeys } = await operate(parsed.settings, terminal, (admin) => admin.createProject({ name }));
  if (parsed.has('json')) {
    printJson(terminal, { name, signingKeys });
  } else {
    terminal.printError(`Created the project "${name}". Its endpoints verify deliveries with these keys:\n\n`);
    terminal.print(`QSTASH_CURRENT_SIGNING_KEY=${signingKeys.current}\nQSTASH_NEXT_SIGNING_KEY=${signingKeys.next}\n`);
  }
  return EXIT.ok;
}

async function move(parsed: ParsedCommand, terminal: Terminal): Promise<number> {
  const project = parsed.word;
  const to = parsed.value('to');
  if ((to === undefined) !== parsed.has('cancel'))
    throw new CommandFailed('projects move: give --to or --cancel', EXIT.usage);
  const config = parseConfig(terminal.env, parsed.settings);
  const { cancelMoveOf, moveProjectTo } = await import('../../cells/operate/move-command.ts');
  if (to === undefined) {
    await cancelMoveOf(config, { project });
    terminal.printError(`Cancelled the move of the project "${project}". It stays in its cell.\n`);
    return EXIT.ok;
  }
  const progress = progressOf(terminal);
  let rows = 0;
  const { tables, pausedMs } = await moveProjectTo(config, {
    ...{ project, to },
    onProgress: (copied) => {
      if ('step' in copied) {
        progress.end();
        terminal.printError(`${copied.step}\n`);
        return;
      }
      rows += copied.rows;
      progress.report(rows, undefined, 'rows');
    },
  }).finally(progress.end);
  if (parsed.has('json'))
    printJson(terminal, { project, cell: to, ...(pausedMs !== undefined && { pausedMs }), tables });
  else {
    const lines = tables
      .filter(({ rows: count }) => count > 0)
      .map(({ table, rows: count, checksum }) => [table, String(count), checksum]);
    if (lines.length > 0) terminal.print(columns([['TABLE', 'ROWS', 'CHECKSUM ON BOTH SIDES'], ...lines]));
    const paused = pausedMs === undefined ? '' : ` It was unavailable for ${Math.round(pausedMs)} ms.`;
    terminal.printError(`The project "${project}" is now in the cell "${to}".${paused}\n`);
  }
  return EXIT.ok;
}
