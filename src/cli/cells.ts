/** `waypost cells`: lists the databases among which projects are divided, and adds one, also while servers run. */

import { storeSettingsHelp } from '../config/page.ts';
import { parseConfig } from '../config/parse.ts';
import type { Config } from '../config/table.ts';
import type { CellEntry } from '../operations/cells.ts';
import { columns, timeOf } from './columns.ts';
import {
  type Command,
  CommandFailed,
  EXIT,
  printJson,
  required,
  type Terminal,
  takeSwitch,
  takeValue,
  takeWord,
  unknownAction,
} from './command.ts';

const VERBS = {
  list: 'Every cell, with how many projects and messages it has.',
  add: 'Makes an empty database, or a schema of one, a cell.',
  drain: 'Lets no new project live in a cell.',
  undrain: 'Lets new projects live there again.',
};

export const cells: Command = {
  verbs: VERBS,
  help: () =>
    `Usage: waypost cells [list] [--json] [options]
       waypost cells add <name> --url <url> [options]
       waypost cells add <name> --schema <schema> [options]
       waypost cells drain|undrain <name> [options]

Projects can be divided among several PostgreSQL databases, or schemas of one. The database of WAYPOST_DATABASE_URL is the first
cell, and knows the others. Running workers serve a new cell at once; a new project lives in the cell with the fewest.

  list
      Every cell, with how many projects and messages it has, and how many bytes it takes.
  add <name>
      Makes an empty database a cell, or a schema, which is made if it is missing. An earlier version of Waypost that still runs on the first
      database ends.
  drain <name>, undrain <name>
      Lets no new project live in the cell, or lets them again. Those that live there stay.
  --url <url>
      postgres://user:password@host:port/database, with ?schema=<schema> for a schema of it. It is kept encrypted.
  --schema <schema>
      A schema of the first cell's database.
  --json
      Print JSON.
${storeSettingsHelp()}
Example: waypost cells add second --url postgres://waypost@db2.internal/waypost
`,
  async run(args, terminal) {
    const { given: json, rest: afterJson } = takeSwitch(args, '--json');
    const { word: action = 'list', rest } = takeWord(afterJson);
    switch (action) {
      case 'list':
        return list(rest, terminal, json);
      case 'add':
        return add(rest, terminal);
      case 'drain':
      case 'undrain':
        return drain(rest, terminal, action);
      default:
        return unknownAction('cells', action, Object.keys(VERBS));
    }
  },
};

async function list(settings: readonly string[], terminal: Terminal, json: boolean): Promise<number> {
  const config = configOf(settings, terminal);
  const { listCells } = await operations();
  const entries = await listCells(config);
  if (json) {
    printJson(terminal, entries.map(view));
    return EXIT.ok;
  }
  const rows = entries.map(({ name, place, projects, totals, isDraining }) => [
    name,
    place,
    String(projects),
    totals ? String(unfinishedOf(totals)) : '-',
    totals ? String(totals.storage.bytes) : '-',
    totals ? (isDraining ? 'draining' : 'ready') : 'away',
  ]);
  terminal.print(columns([['CELL', 'PLACE', 'PROJECTS', 'UNFINISHED', 'BYTES', 'STATE'], ...rows]));
  return EXIT.ok;
}

async function add(args: readonly string[], terminal: Terminal): Promise<number> {
  const { word, rest } = takeWord(args);
  const name = required(word, "cells add: the cell's name");
  const { value: given, rest: afterUrl } = takeValue(rest, '--url');
  const { value: schema, rest: settings } = takeValue(afterUrl, '--schema');
  if ((given === undefined) === (schema === undefined)) {
    throw new CommandFailed('cells add: give --url or --schema', EXIT.usage);
  }
  const url = given ?? `?${new URLSearchParams({ schema: schema ?? '' })}`;
  const config = configOf(settings, terminal);
  const { addCell } = await operations();
  await addCell(config, { name, url });
  terminal.complain(
    `The cell "${name}" is added. New projects live there from now on, as long as it has fewer than the others.\n`,
  );
  return EXIT.ok;
}

async function drain(args: readonly string[], terminal: Terminal, action: 'drain' | 'undrain'): Promise<number> {
  const { word, rest } = takeWord(args);
  const name = required(word, `cells ${action}: the cell's name`);
  const config = configOf(rest, terminal);
  const { drainCell } = await operations();
  await drainCell(config, { name, isDraining: action === 'drain' });
  return EXIT.ok;
}

function configOf(settings: readonly string[], { env }: Terminal): Config {
  return parseConfig(env, settings);
}

/** The help does without them. */
function operations(): Promise<typeof import('../operations/cells.ts')> {
  return import('../operations/cells.ts');
}

function unfinishedOf({
  due,
  scheduled,
  origin,
  project,
  flow,
  queue,
  active,
}: NonNullable<CellEntry['totals']>): number {
  return due + scheduled + origin + project + flow + queue + active;
}

function view({ name, place, projects, totals, isDraining, addedAtMs }: CellEntry): object {
  return {
    name,
    place,
    projects,
    isDraining,
    ...(addedAtMs !== undefined && { addedAt: timeOf(addedAtMs) }),
    ...(totals ? { unfinished: unfinishedOf(totals), bytes: totals.storage.bytes } : { isAway: true }),
  };
}
