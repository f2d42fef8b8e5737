/** Prints what was measured on PostgreSQL: tables for people. */
import { table } from '../table.ts';
import type { JobFigures } from './jobs.ts';
import type { DatabaseWork } from './statements.ts';
import type { SustainedPiece, SustainedReport } from './sustained.ts';
import type { WorkersFigures, WorkersName, WorkersReport } from './workers.ts';

const STATEMENT_TEXT_MAX = 100;

/** One line while the rounds run. */
export function workersLine({ contestant, perSecond, coresBusy, missing }: WorkersFigures, round: number): string {
  const lost = missing === 0 ? '' : `, ${missing} MISSING`;
  return `round ${round} ${contestant}: ${perSecond.toFixed(0)}/s, ${coresBusy.toFixed(2)} cores busy${lost}`;
}

export function workersTable({ figures, work, countedMessages }: WorkersReport, rounds: number): string {
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
    // A thousand milliseconds a second are one core.
    ...parties.map((party) => {
      const ms = cpuMs[party];
      return ms === undefined ? '-' : `${ms.toFixed(0)} (${((ms * perSecond) / 1e4).toFixed(0)} %)`;
    }),
  ]);
  return [
    table(`medians of ${rounds} rounds`, columns, rows),
    ratioLine(figures, 'one worker', 'null relay'),
    ratioLine(figures, 'two processes', 'one worker'),
    ratioLine(figures, 'two threads', 'one worker'),
    '',
    table('CPU ms per 1,000 messages of the burst (share of one core meanwhile)', ['', ...parties], cpuRows),
    '',
    workTable(work, countedMessages),
  ]
    .filter((line) => line !== undefined)
    .join('\n');
}

function ratioLine(figures: readonly WorkersFigures[], name: WorkersName, to: WorkersName): string | undefined {
  const rateOf = (wanted: WorkersName) => figures.find(({ contestant }) => contestant === wanted)?.perSecond;
  const [rate, other] = [rateOf(name), rateOf(to)];
  return rate === undefined || other === undefined ? undefined : `${name} / ${to}: ${(rate / other).toFixed(2)}`;
}

function workTable(work: DatabaseWork, messages: number): string {
  const perThousand = (amount: number) => (amount / messages) * 1_000;
  const totals: [string, number][] = [
    ['statements', work.statements],
    ['transactions', work.transactions],
    ['rows written', work.rowsWritten],
    ['records of the write-ahead log', work.walRecords],
    ['KiB of it', work.walBytes / 1_024],
    ['syncs of it', work.fsyncs],
  ];
  const frequent = work.frequent.map(({ text, calls, milliseconds }) => [
    text.replaceAll(/\s+/g, ' ').slice(0, STATEMENT_TEXT_MAX),
    perThousand(calls).toFixed(1),
    perThousand(milliseconds).toFixed(1),
  ]);
  return [
    table(
      'what PostgreSQL did for one worker',
      ['', 'per 1,000 messages'],
      totals.map(([name, amount]) => [name, perThousand(amount).toFixed(0)]),
    ),
    '',
    table('its most frequent statements, per 1,000 messages', ['', 'calls', 'ms'], frequent),
  ].join('\n');
}

/** One line while the rounds run. */
export function jobsLine({ contestant, singlePerSecond, batchedPerSecond }: JobFigures, round: number): string {
  return `round ${round} ${contestant}: ${singlePerSecond.toFixed(0)} jobs/s singly, ${batchedPerSecond.toFixed(0)} in batches`;
}

/** Those that do the same work, and then the libraries alone. */
export function jobsTable(figures: readonly JobFigures[], rounds: number): string {
  const ofWork = (work: JobFigures['work']) => figures.filter((each) => each.work === work);
  const [webhooks, libraries] = [ofWork('webhooks'), ofWork('library alone')];
  const isWaypost = ({ contestant }: JobFigures) => contestant.startsWith('Waypost');
  const wayposts = webhooks.filter(isWaypost);
  const parts = [tableOf(`webhooks from publish to arrival, medians of ${rounds} rounds`, webhooks)];
  parts.push(
    ...ratioLines(
      wayposts,
      webhooks.filter((each) => !isWaypost(each)),
    ),
  );
  if (libraries.length > 0) {
    parts.push('', tableOf(`jobs from add to done in a library, without HTTP, medians of ${rounds} rounds`, libraries));
    parts.push(...ratioLines(wayposts, libraries));
  }
  return parts.join('\n');
}

function tableOf(title: string, figures: readonly JobFigures[]): string {
  const rows = figures.map((each) => [
    each.contestant,
    each.singlePerSecond.toFixed(0),
    each.singleOwnCpuMs.toFixed(0),
    each.singleCpuMs.toFixed(0),
    each.batchedPerSecond.toFixed(0),
    each.batchedOwnCpuMs.toFixed(0),
    each.batchedCpuMs.toFixed(0),
    each.pacedP50Ms.toFixed(1),
    each.pacedP99Ms.toFixed(1),
    String(each.missing),
    String(each.repeated),
  ]);
  const load = (name: string) => [`${name}/s`, 'its CPU', 'all CPU'];
  const columns = ['', ...load('singly'), ...load('batched'), 'at 100/s p50 ms', 'p99 ms', 'missing', 'repeated'];
  return table(`${title}; CPU ms per 1,000`, columns, rows);
}

function ratioLines(wayposts: readonly JobFigures[], others: readonly JobFigures[]): string[] {
  const ratio = (own: number, other: number) => (own / other).toFixed(2);
  return others.flatMap((other) =>
    wayposts.map(
      (own) =>
        `${own.contestant} / ${other.contestant}: singly ${ratio(own.singlePerSecond, other.singlePerSecond)}, ` +
        `in batches ${ratio(own.batchedPerSecond, other.batchedPerSecond)}; all CPU of a job ` +
        `${ratio(own.singleCpuMs, other.singleCpuMs)}, ${ratio(own.batchedCpuMs, other.batchedCpuMs)}`,
    ),
  );
}

/** One line a minute. */
export function pieceLine(piece: SustainedPiece): string {
  const { seconds, arrivalP50Ms, arrivalP99Ms, missing, waypostCpuPercent, postgresCpuPercent, tables } = piece;
  const sizes = tables.map(
    ({ name, tableMebibytes, indexMebibytes, deadRows }) =>
      `${name} ${tableMebibytes.toFixed(1)}+${indexMebibytes.toFixed(1)} MiB, ${deadRows} dead`,
  );
  const lost = missing === 0 ? '' : `, ${missing} MISSING`;
  return (
    `${seconds.toFixed(0)} s: p50 ${arrivalP50Ms.toFixed(1)} ms, p99 ${arrivalP99Ms.toFixed(1)} ms${lost}; ` +
    `CPU ${waypostCpuPercent.toFixed(0)} % + ${postgresCpuPercent.toFixed(0)} %, ` +
    `RSS ${piece.residentMebibytes.toFixed(0)} MiB; ${sizes.join('; ')}`
  );
}

export function sustainedSummary({ pieces, p99Drift }: SustainedReport): string {
  return [...pieces.map(pieceLine), `p99 of the last third / of the first: ${p99Drift.toFixed(2)}`].join('\n');
}
