/** Formats the results of an overload: a progress line per round, and a table at the end. */
import { table } from '../table.ts';
import type { OverloadLevel } from './measure.ts';

const COLUMNS: { label: string; text: (level: OverloadLevel) => string }[] = [
  { label: 'connections', text: ({ connections }) => String(connections) },
  { label: 'acked/s', text: ({ ackedPerSecond }) => ackedPerSecond.toFixed(0) },
  { label: 'delivered/s', text: ({ deliveredPerSecond }) => deliveredPerSecond.toFixed(0) },
  { label: 'shed/s', text: ({ shedPerSecond }) => shedPerSecond.toFixed(0) },
  { label: 'publish p99, ms', text: ({ publishP99Ms }) => publishP99Ms.toFixed(0) },
  { label: 'other delayed p99, ms', text: ({ otherDelayedP99Ms }) => otherDelayedP99Ms.toFixed(0) },
  { label: 'other queued p99, ms', text: ({ otherQueuedP99Ms }) => otherQueuedP99Ms.toFixed(0) },
  { label: 'other shed', text: ({ otherShed }) => String(otherShed) },
  { label: 'other missing', text: ({ otherMissing }) => String(otherMissing) },
  { label: 'server CPU, cores', text: ({ cores }) => cores.toFixed(2) },
  {
    label: 'RSS, MiB',
    text: ({ earlyMebibytes, lateMebibytes }) => `${earlyMebibytes.toFixed(0)} to ${lateMebibytes.toFixed(0)}`,
  },
];

export function overloadLine(level: OverloadLevel): string {
  return COLUMNS.map(({ label, text }) => `${label} ${text(level)}`).join(', ');
}

export function overloadTable(levels: readonly OverloadLevel[], heading: string): string {
  const rows = levels.map((level) => COLUMNS.map(({ text }) => text(level)));
  return table(
    heading,
    COLUMNS.map(({ label }) => label),
    rows,
  );
}
