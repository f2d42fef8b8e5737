/** `waypost cells`: lists the databases among which projects are divided, adds one, and divides projects anew, also while servers run. */

import type { Balanced, BalancePlan } from '../../cells/operate/balance-cells.ts';
import type { CellEntry } from '../../cells/operate/list-cells.ts';
import { parseConfig } from '../../config/parse.ts';
import type { Config } from '../../config/table.ts';
import { columns, inZone, isoOf, minuteOf } from '../columns.ts';
import { CommandFailed, EXIT, printJson, type Terminal } from '../command.ts';
import { configured, type Given } from '../configured.ts';
import { progressOf } from '../progress.ts';

const NAME = "the cell's name";

export const cells = configured(
  'cells',
  {
    about: `Usage: waypost cells [list] [--json] [options]
       waypost cells add <name> --url <url> [options]
       waypost cells add <name> --schema <schema> [options]
       waypost cells drain|undrain <name> [options]
       waypost cells balance [--yes] [--json] [options]

Projects can be divided among several PostgreSQL databases, or schemas of one. The database of WAYPOST_DATABASE_URL is the first
cell, and knows the others. Running workers serve a new cell at once; a new project lives in the cell with the least load.

  list
      Every cell: its projects, unfinished messages, those of them that are due, messages a minute in the last hour, bytes of
      its schema or database, and its part of all load. Then the projects that are on their way, and which of these moves are stuck.
  add <name>
      Makes an empty database a cell, or a schema, which is made if it is missing.
  drain <name>, undrain <name>
      Lets no new project live in the cell, or lets them again. Those that live there stay until the cells are balanced.
  balance
      Prints which projects would move: all of cells that drain, and few of the cells that have more than their part of the load.
      A cell that cannot be reached is left out. With --yes it moves them, one after the other, as "waypost projects move" does.
      When it was interrupted, call it again: it finishes what was begun, and makes the plan anew.`,
    options: {
      '--yes': 'Carry out the plan.',
      '--url <url>':
        'postgres://user:password@host:port/database, with ?schema=<schema> for a schema of it. It is kept encrypted.',
      '--schema <schema>': "A schema of the first cell's database.",
      '--json': 'Print JSON.',
    },
    settings: 'store',
    example: 'cells add second --url postgres://waypost@db2.internal/waypost',
  },
  {
    list: ['Every cell, with what it has and does.', list],
    add: ['Makes an empty database, or a schema of one, a cell.', add, NAME],
    drain: ['Lets no new project live in a cell.', (given, terminal) => drain(given, terminal, 'drain'), NAME],
    undrain: ['Lets new projects live there again.', (given, terminal) => drain(given, terminal, 'undrain'), NAME],
    balance: ['Moves projects, so that the fullest cell comes down and those that drain become empty.', balance],
  },
);

async function list(given: Given, terminal: Terminal): Promise<number> {
  const config = configOf(given, terminal);
  const { listCells } = await import('../../cells/operate/list-cells.ts');
  const entries = await listCells(config);
  if (given.has('json')) {
    printJson(terminal, entries.map(view));
    return EXIT.ok;
  }
  const rows = entries.map(({ name, place, projects, load, isDraining, awayReason }) => [
    ...[name, place, String(projects)],
    ...(load
      ? [
          ...[String(begunAgainOf(load)), String(load.totals.due), rateOf(load.messagesPerMinute)],
          ...[String(load.totals.storage.bytes), shareOf(load.share), isDraining ? 'draining' : 'ready'],
        ]
      : ['-', '-', '-', '-', '-', `away: ${awayReason}`]),
  ]);
  const heads = ['CELL', 'PLACE', 'PROJECTS', 'UNFINISHED', 'DUE', 'A MINUTE', 'BYTES', 'LOAD', 'STATE'];
  terminal.print(columns([heads, ...rows]));
  const moves = entries.flatMap(({ name, moves: leaving }) =>
    leaving.map(({ project, to, phase, begunAtMs, isStuck }) => [
      ...[project, name, to, phase, minuteOf(begunAtMs)],
      isStuck ? 'stuck: "waypost cells balance --yes" finishes it' : 'moving',
    ]),
  );
  if (moves.length > 0) {
    terminal.print(`\n${columns([['PROJECT', 'FROM', 'TO', 'PHASE', inZone('SINCE'), 'STATE'], ...moves])}`);
  }
  return EXIT.ok;
}

async function add(given: Given, terminal: Terminal): Promise<number> {
  const name = given.word;
  const schema = given.value('schema');
  if (given.has('url') === given.has('schema')) {
    throw new CommandFailed('cells add: give --url or --schema', EXIT.usage);
  }
  const url = given.value('url') ?? `?${new URLSearchParams({ schema: schema ?? '' })}`;
  const config = configOf(given, terminal);
  const { addCell } = await operations();
  await addCell(config, { name, url });
  terminal.complain(
    `The cell "${name}" is added. New projects live there from now on, as long as it has less load than the others; "waypost cells balance" moves some there.\n`,
  );
  return EXIT.ok;
}

async function drain(given: Given, terminal: Terminal, action: 'drain' | 'undrain'): Promise<number> {
  const name = given.word;
  const config = configOf(given, terminal);
  const { drainCell } = await operations();
  await drainCell(config, { name, isDraining: action === 'drain' });
  if (action === 'drain') terminal.complain(`"waypost cells balance --yes" moves what lives in "${name}" elsewhere.\n`);
  return EXIT.ok;
}

async function balance(given: Given, terminal: Terminal): Promise<number> {
  const json = given.has('json');
  const config = configOf(given, terminal);
  const { balanceCells, planCells } = await import('../../cells/operate/balance-cells.ts');
  if (!given.has('yes')) {
    const plan = await planCells(config);
    if (json) printJson(terminal, plan);
    else printPlan(plan, terminal);
    if (plan.moves.length + plan.unfinished.length > 0) terminal.complain('Nothing is moved yet: --yes does it.\n');
    return EXIT.ok;
  }
  const progress = progressOf(terminal);
  let rows = 0;
  const balanced = await balanceCells(config, {
    onPlan: (plan) => {
      if (!json) printPlan({ ...plan, unfinished: [] }, terminal);
    },
    onMove: ({ project, from, to }) => {
      rows = 0;
      progress.end();
      terminal.complain(`${project}: ${from} -> ${to}\n`);
    },
    onProgress: (told) => {
      if ('step' in told) return;
      rows += told.rows;
      progress.tell(rows, undefined, 'rows');
    },
  }).finally(progress.end);
  if (json) printJson(terminal, balanced);
  else reportBalanced(balanced, terminal);
  return balanced.failed.length === 0 ? EXIT.ok : EXIT.failed;
}

const WHY: Readonly<Record<BalancePlan['moves'][number]['why'], string>> = {
  drains: 'the cell drains',
  fullest: 'the cell has more than its part',
};

function printPlan({ unfinished, moves, cells: all }: BalancePlan, terminal: Terminal): void {
  const rows = [
    ...unfinished.map(({ project, from, to, isCancelled }) => [
      ...[project, from, to, '-'],
      isCancelled ? 'it was begun and cancelled' : 'it was begun',
    ]),
    ...moves.map(({ project, from, to, why, messagesPerMinute }) => [
      ...[project, from, to, rateOf(messagesPerMinute), WHY[why]],
    ]),
  ];
  const loads = all.map(({ name, isDraining, share }) => [
    ...[name, share === undefined ? '-' : shareOf(share)],
    stateOf(isDraining, share),
  ]);
  terminal.print(columns([['CELL', 'LOAD', 'STATE'], ...loads]));
  terminal.print(
    rows.length === 0
      ? '\nNo project has to move.\n'
      : `\n${columns([['PROJECT', 'FROM', 'TO', 'A MINUTE', 'WHY'], ...rows])}`,
  );
}

function reportBalanced({ done, failed }: Balanced, terminal: Terminal): void {
  for (const { project, pausedMs } of done) {
    const paused = pausedMs === undefined ? '' : `, refused for ${Math.round(pausedMs)} ms`;
    terminal.complain(`moved: ${project}${paused}\n`);
  }
  for (const { project, reason } of failed) terminal.complain(`not moved: ${project}: ${reason}\n`);
  if (failed.length > 0) terminal.complain('Call it again to move what is left.\n');
}

function stateOf(isDraining: boolean, share: number | undefined): string {
  if (share === undefined) return 'away';
  return isDraining ? 'draining' : 'ready';
}

/** Of messages, by the minute. */
function rateOf(perMinute: number): string {
  return perMinute < 10 ? String(Math.round(perMinute * 10) / 10) : String(Math.round(perMinute));
}

function shareOf(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function configOf({ settings }: Given, { env }: Terminal): Config {
  return parseConfig(env, settings);
}

/** The help does without them. */
function operations(): Promise<typeof import('../../cells/operate/cells.ts')> {
  return import('../../cells/operate/cells.ts');
}

function begunAgainOf({ totals }: NonNullable<CellEntry['load']>): number {
  const { due, scheduled, origin, project, flow, queue, active } = totals;
  return due + scheduled + origin + project + flow + queue + active;
}

function view({ name, place, projects, load, isDraining, awayReason, addedAtMs, moves }: CellEntry): object {
  return {
    ...{ name, place, projects, isDraining },
    ...(addedAtMs !== undefined && { addedAt: isoOf(addedAtMs) }),
    ...(load
      ? {
          ...{ unfinished: begunAgainOf(load), due: load.totals.due, messagesPerMinute: load.messagesPerMinute },
          ...{ bytes: load.totals.storage.bytes, share: load.share },
        }
      : { isAway: true, reason: awayReason }),
    moves: moves.map(({ begunAtMs, ...move }) => ({ ...move, begunAt: isoOf(begunAtMs) })),
  };
}
