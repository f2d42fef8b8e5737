/** Formats the results as tables and lines. */
import type { BacklogLevel, BacklogReport } from './backlog.ts';
import type { Comparison } from './comparison.ts';
import type { Figure } from './figure.ts';
import type { Measurement } from './measure.ts';
import { table } from './table.ts';
import type { StepFigures } from './workflows/steps.ts';

const ROWS: { name: keyof Measurement; label: string; digits: number }[] = [
  { name: 'throughputPerSecond', label: 'delivered per second', digits: 0 },
  { name: 'publishP50Ms', label: 'publish p50, 64 concurrent, ms', digits: 2 },
  { name: 'publishP99Ms', label: 'publish p99, 64 concurrent, ms', digits: 2 },
  { name: 'steadyPublishP50Ms', label: 'publish p50 at 500/s, ms', digits: 2 },
  { name: 'steadyPublishP99Ms', label: 'publish p99 at 500/s, ms', digits: 2 },
  { name: 'arrivalP50Ms', label: 'publish to arrival p50 at 500/s, ms', digits: 2 },
  { name: 'arrivalP99Ms', label: 'publish to arrival p99 at 500/s, ms', digits: 2 },
  { name: 'cpuSecondsPerThousand', label: 'CPU seconds per 1,000 messages', digits: 3 },
  { name: 'residentMebibytes', label: 'RSS after the burst, MiB', digits: 0 },
  { name: 'missing', label: 'missing', digits: 0 },
  { name: 'repeated', label: 'repeated', digits: 0 },
];

export function comparisonTable(comparison: Comparison): string {
  const { relay, waypost, ratio } = comparison;
  const rows = ROWS.map(({ name, label, digits }) => [
    label,
    relay[name].toFixed(digits),
    waypost[name].toFixed(digits),
    name === 'missing' || name === 'repeated' ? '-' : ratio[name].toFixed(2),
  ]);
  const delay = comparison.fsyncDelayMs > 0 ? `, ${comparison.fsyncDelayMs} ms added to each fsync of Waypost` : '';
  const title = `medians of ${comparison.rounds} rounds, ${comparison.peers} client and endpoint${delay}`;
  return table(title, ['', 'null relay', 'Waypost', 'ratio'], rows);
}

/** The progress line of one round. */
export function roundLine(name: string, round: number, measured: Measurement): string {
  const throughput = measured.throughputPerSecond.toFixed(0);
  const missing = measured.missing === 0 ? '' : `, ${measured.missing} MISSING`;
  return `round ${round} ${name}: ${throughput}/s, publish to arrival p50 ${measured.arrivalP50Ms.toFixed(2)} ms${missing}`;
}

export function levelLine(level: BacklogLevel): string {
  return (
    `${level.stored} stored: RSS ${level.residentMebibytes.toFixed(0)} MiB, ` +
    `publish p50 ${level.publishP50Ms.toFixed(2)} ms, p99 ${level.publishP99Ms.toFixed(2)} ms`
  );
}

export function backlogTable(report: BacklogReport): string {
  const rows = report.levels.map((level) => [
    String(level.stored),
    level.residentMebibytes.toFixed(0),
    ...[level.publishP50Ms, level.publishP99Ms, level.arrivalP50Ms, level.arrivalP99Ms].map((ms) => ms.toFixed(2)),
    String(level.missing),
  ]);
  const columns = ['stored', 'RSS MiB', 'publish p50', 'p99 ms', 'arrival p50', 'p99 ms', 'missing'];
  return [
    table('by number of stored delayed messages', columns, rows),
    `accepted per second, in batches:      ${report.acceptedPerSecond.toFixed(0)}`,
    `idle CPU with all stored:             ${report.idleCpuPercent.toFixed(2)} %`,
    `idle RSS of an empty server:          ${report.idleEmptyMebibytes.toFixed(0)} MiB`,
    `start to listening, empty:            ${report.startEmptyMs.toFixed(0)} ms`,
    `start to listening, all stored:       ${report.startStoredMs.toFixed(0)} ms`,
    `start to ready, all stored:           ${report.readyStoredMs.toFixed(0)} ms`,
  ].join('\n');
}

const STEP_COLUMNS: { label: string; read: (figures: StepFigures) => number; digits: number }[] = [
  { label: 'runs/s', read: (each) => each.runsPerSecond, digits: 0 },
  { label: 'steps/s', read: (each) => each.stepsPerSecond, digits: 0 },
  { label: 'server CPU ms/step', read: (each) => each.serverCpuMsPerStep, digits: 3 },
  { label: 'endpoint CPU ms/step', read: (each) => each.endpointCpuMsPerStep, digits: 3 },
  { label: 'bytes/step', read: (each) => each.bytesPerStep, digits: 0 },
  { label: 'calls/run', read: (each) => each.callsPerRun, digits: 2 },
];

export function stepsTable(figures: StepFigures[], rounds: number): string {
  const columns = ['', 'load', ...STEP_COLUMNS.map(({ label }) => label)];
  const rows = figures.map((each) => [
    each.contestant,
    each.load,
    ...STEP_COLUMNS.map(({ read, digits }) => read(each).toFixed(digits)),
  ]);
  return table(`runs of three steps, medians of ${rounds} rounds`, columns, rows);
}

/** The gain of our library, one line per load and per library in `others`. */
export function gainLines(figures: StepFigures[], name: string, others: readonly string[]): string[] {
  const ours = figures.filter(({ contestant }) => contestant === name);
  return others.flatMap((other) =>
    ours.flatMap(({ load, runsPerSecond, endpointCpuMsPerStep }) => {
      const theirs = figures.find((each) => each.load === load && each.contestant === other);
      if (!theirs) return [];
      const runs = (runsPerSecond / theirs.runsPerSecond).toFixed(2);
      const cpu = (endpointCpuMsPerStep / theirs.endpointCpuMsPerStep).toFixed(2);
      return [
        `${name} compared with ${other}, ${load}: ${runs} times the runs/s, ${cpu} times the endpoint CPU per step`,
      ];
    }),
  );
}

/** The progress line of one round. */
export function loadLine({ contestant, load, runsPerSecond }: StepFigures, round: number): string {
  return `round ${round} ${contestant}, ${load}: ${runsPerSecond.toFixed(0)} runs/s`;
}

export function figureLine({ name, value, unit, reference }: Figure): string {
  const amount = `${name}: ${value.toFixed(digitsOf(value))} ${unit}`;
  if (!reference) return amount;
  const ratio = (value / reference.value).toFixed(2);
  return `${amount}; ${reference.name}: ${reference.value.toFixed(digitsOf(reference.value))}; ratio ${ratio}`;
}

function digitsOf(value: number): number {
  return value >= 100 || Number.isInteger(value) ? 0 : 2;
}
