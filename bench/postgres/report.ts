/** Formats the results on PostgreSQL as tables. */
import { median } from '../statistics.ts';
import { table } from '../table.ts';
import type { JobFigures } from './jobs.ts';
import type { DatabaseWork } from './statements.ts';
import type { SustainedInterval, SustainedReport } from './sustained.ts';
import type { WorkersFigures, WorkersReport } from './workers.ts';

const STATEMENT_TEXT_MAX = 100;

/** The progress line of one round. */
export function workersLine({ contestant, perSecond, coresBusy, missing }: WorkersFigures, round: number): string {
  const lost = missing === 0 ? '' : `, ${missing} MISSING`;
  return `round ${round} ${contestant}: ${perSecond.toFixed(0)}/s, ${coresBusy.toFixed(2)} cores busy${lost}`;
}

export function workersTable({ figures, work, countedMessages }: WorkersReport, rounds: number): string {
  return [
    ...figureTables(figures, rounds, [
      ratioLine(figures, 'one worker', 'null relay'),
      ratioLine(figures, 'two processes', 'one worker'),
      ratioLine(figures, 'two threads', 'one worker'),
    ]),
    '',
    workTable(work, countedMessages),
  ].join('\n');
}

export function citusTable(figures: readonly WorkersFigures[], rounds: number): string {
  const ratios = [
    ratioLine(figures, 'through the coordinator', 'PostgreSQL'),
    ratioLine(figures, 'at the node', 'PostgreSQL'),
  ];
  return figureTables(figures, rounds, ratios).join('\n');
}

function figureTables(
  figures: readonly WorkersFigures[],
  rounds: number,
  ratios: readonly (string | undefined)[],
): string[] {
  const columns = [
    '',
    'messages/s',
    'publish p50',
    'p99 ms',
    'arrival at 500/s p50',
    'p99 ms',
    'cores busy',
    'missing',
  ];
  const rows = figures.map((each) => [
    each.contestant,
    each.perSecond.toFixed(0),
    ...[each.publishP50Ms, each.publishP99Ms, each.arrivalP50Ms, each.arrivalP99Ms].map((ms) => ms.toFixed(1)),
    each.coresBusy.toFixed(2),
    String(each.missing),
  ]);
  const parties = [...new Set(figures.flatMap(({ cpuMs }) => Object.keys(cpuMs)))];
  const cpuRows = figures.map(({ contestant, cpuMs, perSecond }) => [
    contestant,
    // A thousand milliseconds per second are one core.
    ...parties.map((party) => {
      const ms = cpuMs[party];
      return ms === undefined ? '-' : `${ms.toFixed(0)} (${((ms * perSecond) / 1e4).toFixed(0)} %)`;
    }),
  ]);
  return [
    table(`medians of ${rounds} rounds`, columns, rows),
    ...ratios,
    '',
    table('CPU ms per 1,000 messages of the burst (percent of one core)', ['', ...parties], cpuRows),
  ].filter((line) => line !== undefined);
}

function ratioLine(figures: readonly WorkersFigures[], name: string, to: string): string | undefined {
  const rateOf = (contestantName: string) => figures.find(({ contestant }) => contestant === contestantName)?.perSecond;
  const [rate, other] = [rateOf(name), rateOf(to)];
  return rate === undefined || other === undefined ? undefined : `${name} / ${to}: ${(rate / other).toFixed(2)}`;
}

function workTable(work: DatabaseWork, messages: number): string {
  const perThousand = (amount: number) => (amount / messages) * 1_000;
  const totals: [string, number][] = [
    ['statements', work.statements],
    ['transactions', work.transactions],
    ['rows written', work.rowsWritten],
    ['WAL records', work.walRecords],
    ['WAL KiB', work.walBytes / 1_024],
    ['WAL syncs', work.fsyncs],
  ];
  const frequent = work.frequent.map(({ text, calls, milliseconds }) => [
    text.replaceAll(/\s+/g, ' ').slice(0, STATEMENT_TEXT_MAX),
    perThousand(calls).toFixed(1),
    perThousand(milliseconds).toFixed(1),
  ]);
  return [
    table(
      'database work of one worker',
      ['', 'per 1,000 messages'],
      totals.map(([name, amount]) => [name, perThousand(amount).toFixed(0)]),
    ),
    '',
    table('most frequent statements, per 1,000 messages', ['', 'calls', 'ms'], frequent),
  ].join('\n');
}

/** The progress line of one round. */
export function jobsLine(figures: Omit<JobFigures, 'round'>, round: number): string {
  const { contestant, singlePerSecond, singleOwnCpuMs, batchedPerSecond, batchedOwnCpuMs } = figures;
  const load = (perSecond: number, cpuMs: number) =>
    `${perSecond.toFixed(0)} jobs/s (${cpuMs.toFixed(0)} ms CPU per 1,000)`;
  return `round ${round} ${contestant}: ${load(singlePerSecond, singleOwnCpuMs)} singly, ${load(batchedPerSecond, batchedOwnCpuMs)} in batches`;
}

/** A table of the contestants with the same work, then a table of the libraries alone. */
export function jobsTable(figures: readonly JobFigures[]): string {
  const all = [...Map.groupBy(figures, ({ contestant }) => contestant).values()];
  const [webhooks, libraries] = (['webhooks', 'library alone'] as const).map((work) =>
    all.filter((rounds) => rounds[0]?.work === work),
  ) as [JobFigures[][], JobFigures[][]];
  const isWaypost = ([first]: JobFigures[]) => first?.contestant.startsWith('Waypost');
  const wayposts = webhooks.filter(isWaypost);
  const parts = [tableOf('webhooks from publish to arrival', webhooks)];
  parts.push(
    ...ratioLines(
      wayposts,
      webhooks.filter((rounds) => !isWaypost(rounds)),
    ),
  );
  if (libraries.length > 0) {
    parts.push('', tableOf('jobs of a library from adding to finishing, without HTTP', libraries));
    parts.push(...ratioLines(wayposts, libraries));
  }
  return parts.join('\n');
}

/** Missing and repeated jobs are summed, since a single lost job matters. */
function tableOf(title: string, contestants: readonly JobFigures[][]): string {
  const rows = contestants.map((rounds) => {
    const middle = (value: (figures: JobFigures) => number) => median(rounds.map(value));
    const sum = (value: (figures: JobFigures) => number) => rounds.reduce((total, round) => total + value(round), 0);
    return [
      rounds[0]?.contestant ?? '',
      middle((round) => round.singlePerSecond).toFixed(0),
      middle((round) => round.singleOwnCpuMs).toFixed(0),
      middle((round) => round.singleCpuMs).toFixed(0),
      middle((round) => round.batchedPerSecond).toFixed(0),
      middle((round) => round.batchedOwnCpuMs).toFixed(0),
      middle((round) => round.batchedCpuMs).toFixed(0),
      middle((round) => round.pacedP50Ms).toFixed(1),
      middle((round) => round.pacedP99Ms).toFixed(1),
      String(sum((round) => round.missing)),
      String(sum((round) => round.repeated)),
    ];
  });
  const load = (name: string) => [`${name}/s`, 'own CPU', 'total CPU'];
  const columns = ['', ...load('singly'), ...load('batched'), 'at 100/s p50 ms', 'p99 ms', 'missing', 'repeated'];
  return table(`${title}, medians of ${contestants[0]?.length} rounds; CPU ms per 1,000`, columns, rows);
}

/** Medians of the ratios in each round. */
function ratioLines(wayposts: readonly JobFigures[][], others: readonly JobFigures[][]): string[] {
  return others.flatMap((other) =>
    wayposts.map((own) => {
      const ratio = (value: (figures: JobFigures) => number) =>
        median(own.map((round, index) => value(round) / value(other[index] ?? round))).toFixed(2);
      return (
        `${own[0]?.contestant} / ${other[0]?.contestant}: singly ${ratio((round) => round.singlePerSecond)}, ` +
        `in batches ${ratio((round) => round.batchedPerSecond)}; total CPU per job ` +
        `${ratio((round) => round.singleCpuMs)}, ${ratio((round) => round.batchedCpuMs)}`
      );
    }),
  );
}

/** The progress line of one minute. */
export function intervalLine(interval: SustainedInterval): string {
  const { seconds, arrivalP50Ms, arrivalP99Ms, missing, waypostCpuPercent, postgresCpuPercent, tables } = interval;
  const sizes = tables.map(
    ({ name, tableMebibytes, indexMebibytes, deadRows }) =>
      `${name} ${tableMebibytes.toFixed(1)}+${indexMebibytes.toFixed(1)} MiB, ${deadRows} dead`,
  );
  const lost = missing === 0 ? '' : `, ${missing} MISSING`;
  return (
    `${seconds.toFixed(0)} s: p50 ${arrivalP50Ms.toFixed(1)} ms, p99 ${arrivalP99Ms.toFixed(1)} ms${lost}; ` +
    `CPU ${waypostCpuPercent.toFixed(0)} % + ${postgresCpuPercent.toFixed(0)} %, ` +
    `RSS ${interval.residentMebibytes.toFixed(0)} MiB; ${sizes.join('; ')}`
  );
}

export function sustainedSummary({ intervals, p99Drift }: SustainedReport): string {
  return [...intervals.map(intervalLine), `p99 of the last third / of the first third: ${p99Drift.toFixed(2)}`].join(
    '\n',
  );
}
