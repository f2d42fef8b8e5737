/** `waypost cells`: lists, adds, drains and balances the databases of an installation, also while servers run. */

import type { BalancePlan, BalanceResult } from '../../cells/operate/balance-cells.ts';
import type { CellEntry } from '../../cells/operate/list-cells.ts';
import { parseConfig } from '../../config/parse.ts';
import type { Config } from '../../config/table.ts';
import { columns, inZone, isoOf, minuteOf } from '../columns.ts';
import { CommandFailed, EXIT, printJson, type Terminal } from '../command.ts';
import { commandWithSettings, type ParsedCommand } from '../command-with-settings.ts';
import { progressOf } from '../progress.ts';

const NAME = "the cell's name";

export const cells = commandWithSettings(
  'cells',
  {
    about: `Usage: waypost cells [list] [--json] [options]
       waypost cells add <name> --url <url> [options]
       waypost cells add <name> --schema <schema> [options]
       waypost cells drain|undrain <name> [options]
       waypost cells balance [--yes] [--json] [options]

Projects can be divided among several PostgreSQL databases, or schemas of one. The database of WAYPOST_DATABASE_URL is the first
cell, and lists the others. Running workers serve a new cell at once. New projects go to the cell with the lowest load.

  list
      Lists every cell: its projects, unfinished and due messages, messages per minute in the last hour, the size of its schema
      or database in bytes, and its share of the total load. Then the projects that are moving, and which moves are stuck.
  add <name>
      Makes an empty database or schema a cell. A missing schema is created.
  drain <name>, undrain <name>
      Excludes the cell from new projects, or includes it again. Existing projects stay until the cells are balanced.
  balance
      Prints which projects would move: all projects of draining cells, and a few of the cells with more than their share of the
      load. Unreachable cells are skipped. With --yes it moves them one by one, as "waypost projects move" does.
      If it is interrupted, run it again: it finishes the move that was started, and makes a new plan.`,
    options: {
      '--yes': 'Carry out the plan.',
      '--url <url>':
        'postgres://user:password@host:port/database, with ?schema=<schema> for one of its schemas. It is stored encrypted.',
      '--schema <schema>': "A schema of the first cell's database.",
      '--json': 'Print JSON.',
    },
    settings: 'store',
    example: 'cells add second --url postgres://waypost@db2.internal/waypost',
  },
  {
    list: ['Lists every cell with its content and load.', list],
    add: ['Makes an empty database or schema a cell.', add, NAME],
    drain: ['Excludes a cell from new projects.', (parsed, terminal) => drain(parsed, terminal, 'drain'), NAME],
    undrain: [
      'Includes a cell for new projects again.',
      (parsed, terminal) => drain(parsed, terminal, 'undrain'),
      NAME,
    ],
    balance: ['Moves projects out of draining cells and off the most loaded ones.', balance],
  },
);

async function list(parsed: ParsedCommand, terminal: Terminal): Promise<number> {
  const config = configOf(parsed, terminal);
  const { listCells } = await import('../../cells/operate/list-cells.ts');
  const entries = await listCells(config);
  if (parsed.has('json')) {
    printJson(terminal, entries.map(view));
    return EXIT.ok;
  }
  const rows = entries.map(({ name, place, projects, load, isDraining, awayReason }) => [
    ...[name, place, String(projects)],
    ...(load
      ? [
          ...[String(unfinishedOf(load)), String(load.totals.due), rateOf(load.messagesPerMinute)],
          ...[String(load.totals.storage.bytes), shareOf(load.share), isDraining ? 'draining' : 'ready'],
        ]
      : ['-', '-', '-', '-', '-', `unreachable: ${awayReason}`]),
  ]);
  const headings = ['CELL', 'PLACE', 'PROJECTS', 'UNFINISHED', 'DUE', 'PER MINUTE', 'BYTES', 'LOAD', 'STATE'];
  terminal.print(columns([headings, ...rows]));
  const moves = entries.flatMap(({ name, moves: leaving }) =>
    leaving.map(({ project, to, phase, startedAtMs, isStuck }) => [
      ...[project, name, to, phase, minuteOf(startedAtMs)],
      isStuck ? 'stuck: finish it with "waypost cells balance --yes"' : 'moving',
    ]),
  );
  if (moves.length > 0) {
    terminal.print(`\n${columns([['PROJECT', 'FROM', 'TO', 'PHASE', inZone('SINCE'), 'STATE'], ...moves])}`);
  }
  return EXIT.ok;
}

async function add(parsed: ParsedCommand, terminal: Terminal): Promise<number> {
  const name = parsed.word;
  const schema = parsed.value('schema');
  if (parsed.has('url') === parsed.has('schema')) {
    throw new CommandFailed('cells add: give --url or --schema', EXIT.usage);
  }
  const url = parsed.value('url') ?? `?${new URLSearchParams({ schema: schema ?? '' })}`;
  const config = configOf(parsed, terminal);
  const { addCell } = await operations();
  await addCell(config, { name, url });
  terminal.printError(
    `Added the cell "${name}". New projects go there while it has the lowest load; "waypost cells balance" moves existing ones.\n`,
  );
  return EXIT.ok;
}

async function drain(parsed: ParsedCommand, terminal: Terminal, action: 'drain' | 'undrain'): Promise<number> {
  const name = parsed.word;
  const config = configOf(parsed, terminal);
  const { drainCell } = await operations();
  await drainCell(config, { name, isDraining: action === 'drain' });
  if (action === 'drain')
    terminal.printError(`"waypost cells balance --yes" moves the projects of "${name}" to other cells.\n`);
  return EXIT.ok;
}

async function balance(parsed: ParsedCommand, terminal: Terminal): Promise<number> {
  const json = parsed.has('json');
  const config = configOf(parsed, terminal);
  const { balanceCells, planCells } = await import('../../cells/operate/balance-cells.ts');
  if (!parsed.has('yes')) {
    const plan = await planCells(config);
    if (json) printJson(terminal, plan);
    else printPlan(plan, terminal);
    if (plan.moves.length + plan.unfinished.length > 0)
      terminal.printError('Nothing was moved. Run it again with --yes to move them.\n');
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
      terminal.printError(`${project}: ${from} -> ${to}\n`);
    },
    onProgress: (copied) => {
      if ('step' in copied) return;
      rows += copied.rows;
      progress.report(rows, undefined, 'rows');
    },
  }).finally(progress.end);
  if (json) printJson(terminal, balanced);
  else reportBalanced(balanced, terminal);
  return balanced.failed.length === 0 ? EXIT.ok : EXIT.failed;
}

const MOVE_REASONS: Readonly<Record<BalancePlan['moves'][number]['why'], string>> = {
  drains: 'the cell is draining',
  fullest: 'the cell has more than its share of the load',
};

function printPlan({ unfinished, moves, cells: all }: BalancePlan, terminal: Terminal): void {
  const rows = [
    ...unfinished.map(({ project, from, to, isCancelled }) => [
      ...[project, from, to, '-'],
      isCancelled ? 'started and cancelled' : 'started',
    ]),
    ...moves.map(({ project, from, to, why, messagesPerMinute }) => [
      ...[project, from, to, rateOf(messagesPerMinute), MOVE_REASONS[why]],
    ]),
  ];
  const loads = all.map(({ name, isDraining, share }) => [
    ...[name, share === undefined ? '-' : shareOf(share)],
    stateOf(isDraining, share),
  ]);
  terminal.print(columns([['CELL', 'LOAD', 'STATE'], ...loads]));
  terminal.print(
    rows.length === 0
      ? '\nNo project needs to move.\n'
      : `\n${columns([['PROJECT', 'FROM', 'TO', 'PER MINUTE', 'REASON'], ...rows])}`,
  );
}

function reportBalanced({ done, failed }: BalanceResult, terminal: Terminal): void {
  for (const { project, pausedMs } of done) {
    const paused = pausedMs === undefined ? '' : `, unavailable for ${Math.round(pausedMs)} ms`;
    terminal.printError(`moved: ${project}${paused}\n`);
  }
  for (const { project, reason } of failed) terminal.printError(`not moved: ${project}: ${reason}\n`);
  if (failed.length > 0) terminal.printError('Run it again to move the rest.\n');
}

function stateOf(isDraining: boolean, share: number | undefined): string {
  if (share === undefined) return 'unreachable';
  return isDraining ? 'draining' : 'ready';
}

/** Messages per minute. */
function rateOf(perMinute: number): string {
  return perMinute < 10 ? String(Math.round(perMinute * 10) / 10) : String(Math.round(perMinute));
}

function shareOf(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function configOf({ settings }: ParsedCommand, { env }: Terminal): Config {
  return parseConfig(env, settings);
}

/** Loaded on demand: the help does not need the operations. */
function operations(): Promise<typeof import('../../cells/operate/cells.ts')> {
  return import('../../cells/operate/cells.ts');
}

function unfinishedOf({ totals }: NonNullable<CellEntry['load']>): number {
  const { due, scheduled, origin, project, flow, queue, active } = totals;
  return due + scheduled + origin + project + flow + queue + active;
}

function view({ name, place, projects, load, isDraining, awayReason, addedAtMs, moves }: CellEntry): object {
  return {
    ...{ name, place, projects, isDraining },
    ...(addedAtMs !== undefined && { addedAt: isoOf(addedAtMs) }),
    ...(load
      ? {
          ...{ unfinished: unfinishedOf(load), due: load.totals.due, messagesPerMinute: load.messagesPerMinute },
          ...{ bytes: load.totals.storage.bytes, share: load.share },
        }
      : { isAway: true, reason: awayReason }),
    moves: moves.map(({ startedAtMs, ...move }) => ({ ...move, begunAt: isoOf(startedAtMs) })),
  };
}
