/** The timeline with expanded child runs, and the details of the selected step. */
import { useMemo, useState } from 'react';
import { useNowMs } from '../../parts/time.tsx';
import { Chart } from './chart.tsx';
import { isInProgress, type RunReference, type RunWithEvents, useRuns } from './data.ts';
import { rowsOf } from './rows.ts';
import { StepDetails } from './step-details.tsx';

interface Props {
  shown: RunWithEvents;
  /** The key of a row. */
  selected: string | undefined;
  onSelect: (key: string | undefined) => void;
}

export function RunTimeline({ shown, selected, onSelect }: Props) {
  const [expanded, setExpanded] = useState<ReadonlyMap<string, RunReference>>(new Map());
  const names = [...expanded.values()];
  const children = useRuns(names);
  const loadedAt = children.map(({ dataUpdatedAt }) => dataUpdatedAt).join();
  const isOpen = isInProgress(shown.run) || children.some(({ data }) => isInProgress(data?.run));
  const presentMs = useNowMs();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a finished run changes only when it is reloaded
  const loadedMs = useMemo(() => Date.now(), [shown, loadedAt]);
  const nowMs = isOpen ? presentMs : loadedMs;
  // biome-ignore lint/correctness/useExhaustiveDependencies: child runs change only when they are reloaded
  const rows = useMemo(() => {
    const childOf = (id: string) => children[names.findIndex((name) => name.id === id)]?.data;
    return rowsOf(shown, nowMs, new Set(expanded.keys()), childOf);
  }, [shown, nowMs, expanded, loadedAt]);
  const selectedRow = rows.find(({ key }) => key === selected);
  const toggle = (key: string): void => {
    const child = rows.find((row) => row.key === key)?.bar.child;
    const next = new Map(expanded);
    if (!next.delete(key) && child) next.set(key, child);
    setExpanded(next);
  };
  const fromMs = shown.run.workflowRunCreatedAt;
  const toMs = rows.reduce((most, { bar }) => Math.max(most, bar.toMs), shown.run.workflowRunCompletedAt ?? fromMs + 1);
  return (
    <div className={`grid gap-4 ${selectedRow ? 'xl:grid-cols-[minmax(0,1fr)_26rem]' : ''}`}>
      <div className="min-w-0">
        <Chart
          rows={rows}
          whole={{ fromMs, toMs: Math.max(toMs, fromMs + 1) }}
          selected={selected}
          onSelect={(key) => onSelect(key === selected ? undefined : key)}
          onToggle={toggle}
        />
        <Legend />
      </div>
      {selectedRow && <StepDetails key={selectedRow.key} row={selectedRow} onClose={() => onSelect(undefined)} />}
    </div>
  );
}

function Legend() {
  const entries = [
    ['bg-good', 'running'],
    ['bg-bad', 'failed attempt'],
    ['hatched border border-current', 'waiting or sleeping'],
    ['border-l-2 border-busy', 'parallel steps'],
  ] as const;
  return (
    <ul className="flex flex-wrap gap-x-4 gap-y-1 pt-2 text-xs text-quiet">
      {entries.map(([swatch, meaning]) => (
        <li key={meaning} className="flex items-center gap-1.5">
          <span aria-hidden="true" className={`h-3 w-5 rounded-sm ${swatch}`} />
          {meaning}
        </li>
      ))}
      <li className="hidden md:block">Zoom: + − 0 ← →, Ctrl + wheel, or drag across the timeline.</li>
    </ul>
  );
}
