/** The timeline with the child runs that are unfolded, and beside it the step that is selected. */
import { useMemo, useState } from 'react';
import { useNowMs } from '../../parts/time.tsx';
import { Chart } from './chart.tsx';
import { isMoving, type RunName, type RunWithEvents, useRuns } from './data.ts';
import { rowsOf } from './rows.ts';
import { StepDetails } from './step-details.tsx';

interface Props {
  shown: RunWithEvents;
  /** Key of a row. */
  selected: string | undefined;
  onSelect: (key: string | undefined) => void;
}

export function RunTimeline({ shown, selected, onSelect }: Props) {
  const [unfolded, setUnfolded] = useState<ReadonlyMap<string, RunName>>(new Map());
  const names = [...unfolded.values()];
  const children = useRuns(names);
  const readAt = children.map(({ dataUpdatedAt }) => dataUpdatedAt).join();
  const isOpen = isMoving(shown.run) || children.some(({ data }) => isMoving(data?.run));
  const presentMs = useNowMs();
  // biome-ignore lint/correctness/useExhaustiveDependencies: of runs that are over, nothing changes until they are read anew
  const readMs = useMemo(() => Date.now(), [shown, readAt]);
  const nowMs = isOpen ? presentMs : readMs;
  // biome-ignore lint/correctness/useExhaustiveDependencies: child runs have changed when they were read anew
  const rows = useMemo(() => {
    const childOf = (id: string) => children[names.findIndex((name) => name.id === id)]?.data;
    return rowsOf(shown, nowMs, new Set(unfolded.keys()), childOf);
  }, [shown, nowMs, unfolded, readAt]);
  const selectedRow = rows.find(({ key }) => key === selected);
  const fold = (key: string): void => {
    const child = rows.find((row) => row.key === key)?.bar.child;
    const next = new Map(unfolded);
    if (!next.delete(key) && child) next.set(key, child);
    setUnfolded(next);
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
          onFold={fold}
        />
        <Legend />
      </div>
      {selectedRow && <StepDetails key={selectedRow.key} row={selectedRow} onClose={() => onSelect(undefined)} />}
    </div>
  );
}

function Legend() {
  const parts = [
    ['bg-good', 'runs'],
    ['bg-bad', 'failed attempt'],
    ['hatched border border-current', 'waits or sleeps'],
    ['border-l-2 border-busy', 'steps side by side'],
  ] as const;
  return (
    <ul className="flex flex-wrap gap-x-4 gap-y-1 pt-2 text-xs text-quiet">
      {parts.map(([look, meaning]) => (
        <li key={meaning} className="flex items-center gap-1.5">
          <span aria-hidden="true" className={`h-3 w-5 rounded-sm ${look}`} />
          {meaning}
        </li>
      ))}
      <li className="hidden md:block">Zoom: + − 0 ← →, Ctrl and the wheel, or drag over a stretch.</li>
    </ul>
  );
}
