/** Checks that nothing was lost, done twice, beyond a limit, or saved in two cells. */
import { untilNoneIsLeft } from '../../crash/enough.ts';
import { inWords } from '../../crash/findings.ts';
import { judge as judgeLedger } from '../../crash/judge.ts';
import { giveCommand } from '../../support/waypost-command.ts';
import type { Project } from './project.ts';
import type { CellsWorld } from './world.ts';

export interface CellsJudgement {
  acked: number;
  arrived: number;
  /** The number of workflow runs that have succeeded. */
  succeeded: number;
  /** Descriptions of all problems; empty after a sound run. */
  findings: string[];
}

/** Call it after `world.calmDown()`. */
export async function judge(world: CellsWorld): Promise<CellsJudgement> {
  await untilNoneIsLeft(() => countUnfinished(world));
  const judged = await Promise.all(world.projects.map(judgeProject));
  const runs = await world.runs.judge(world.projects.map(({ client }) => client));
  return {
    acked: judged.reduce((sum, { acked }) => sum + acked, 0),
    arrived: world.projects.reduce((sum, { arrivals }) => sum + arrivals, 0),
    succeeded: runs.succeeded,
    findings: [
      ...runs.findings,
      ...judged.flatMap(({ findings }) => findings),
      ...(await inTwoCells(world)),
      ...(await awayFromHome(world)),
      ...(await findingsOfDoctor(world)),
    ],
  };
}

async function judgeProject(project: Project): Promise<{ acked: number; findings: string[] }> {
  const { name, client, ledger, repeats, schedules } = project;
  const { acked, broken } = await judgeLedger(ledger, client);
  const findings = inWords({
    ...broken,
    'P2 made twice': repeats.madeTwice(ledger),
    'P16 not once a time': schedules.findings(),
  });
  return { acked, findings: findings.map((finding) => `${name}: ${finding}`) };
}

async function countUnfinished(world: CellsWorld): Promise<number> {
  const counts = world.cells.map(async (cell) => {
    const [row] = await world.queryIn(
      cell,
      'select ((select count(*) from messages) + (select count(*) from runs where state = 1))::int count',
    );
    return Number(row?.['count']);
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

/** Numbers of messages and entries of the log. */
async function inTwoCells(world: CellsWorld): Promise<string[]> {
  const findings: string[] = [];
  const numbers = [
    ['contents', 'key'],
    ['logs', 'seq'],
  ] as const;
  for (const [table, column] of numbers) {
    const cellsByNumber = new Map<string, string>();
    for (const cell of world.cells) {
      for (const row of await world.queryIn(cell, `select ${column}::text from ${table}`)) {
        const number = String(row[column]);
        const other = cellsByNumber.get(number);
        if (other !== undefined) findings.push(`in two cells: ${table} ${number} in ${other} and ${cell.name}`);
        cellsByNumber.set(number, cell.name);
      }
    }
  }
  return findings;
}

/** Rows of a project in a cell other than its own. */
async function awayFromHome(world: CellsWorld): Promise<string[]> {
  await world.readHomes();
  const findings: string[] = [];
  for (const cell of world.cells) {
    for (const table of ['messages', 'contents', 'logs', 'dead', 'queues', 'schedules', 'runs', 'deduplications']) {
      const rows = await world.queryIn(
        cell,
        `select p.name, count(*)::int from ${table} t join projects p on p.id = t.project_id group by p.name`,
      );
      for (const { name, count } of rows) {
        const project = world.projects.find((each) => each.name === name);
        if (project && world.homeOf(project) !== cell)
          findings.push(`away from home: ${count} rows of ${name} in ${table} of ${cell.name}`);
      }
    }
  }
  return findings;
}

interface ExaminedJson {
  isSound: boolean;
  cells: { name: string; isSound: boolean }[];
}

async function findingsOfDoctor({ env, cells }: CellsWorld): Promise<string[]> {
  const { stdout } = await giveCommand(['doctor', '--json'], { ...env });
  const examined = JSON.parse(stdout) as ExaminedJson;
  if (examined.isSound && examined.cells.length === cells.length - 1) return [];
  return [`doctor: ${(await giveCommand(['doctor'], { ...env })).stdout}`];
}
