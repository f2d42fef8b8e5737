/**
 * The timeline of a run: a row for each step, on a common time axis. The keys plus, minus, arrows and 0,
 * Ctrl with the wheel, and dragging zoom and move the timeline. Only the visible rows are rendered.
 */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import { duration } from '../../parts/time.tsx';
import { fractionOf, type Range, tickMarksOf } from './axis.ts';
import { ChartRow } from './chart-row.tsx';
import type { Row } from './rows.ts';
import { useZoom } from './zoom.ts';

const ROW_PX = 32;
const MARKS_MAX = 6;

interface Props {
  rows: readonly Row[];
  whole: Range;
  selected: string | undefined;
  onSelect: (key: string) => void;
  onToggle: (key: string) => void;
}

export function Chart({ rows, whole, selected, onSelect, onToggle }: Props) {
  const scroller = useRef<HTMLElement>(null);
  const { range, isZoomed, dragged, onKeyDown, pointer } = useZoom(scroller, whole);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
    getItemKey: (index) => rows[index]?.key ?? index,
  });
  // The first step in the zoomed range may be far below.
  const firstInRange = isZoomed
    ? rows.findIndex(({ bar }) => bar.toMs >= range.fromMs && bar.fromMs <= range.toMs)
    : -1;
  // biome-ignore lint/correctness/useExhaustiveDependencies: scroll once for each zoomed range
  useEffect(() => {
    if (firstInRange >= 0 && !isVisible(firstInRange)) virtual.scrollToIndex(firstInRange, { align: 'start' });
  }, [firstInRange]);
  const isVisible = (index: number): boolean => {
    const { startIndex, endIndex } = virtual.range ?? { startIndex: 0, endIndex: 0 };
    return index >= startIndex && index <= endIndex;
  };
  const onKey = (event: React.KeyboardEvent): void => {
    const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (by === 0) return onKeyDown(event);
    event.preventDefault();
    const at = rows.findIndex(({ key }) => key === selected);
    const next = Math.min(rows.length - 1, Math.max(0, at + by));
    const row = rows[next];
    if (!row) return;
    onSelect(row.key);
    virtual.scrollToIndex(next);
  };
  return (
    <section
      ref={scroller}
      aria-label={`Timeline of ${rows.length} steps. Plus and minus zoom, left and right move, 0 shows everything, up and down select a step.`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be scrollable by keyboard
      tabIndex={0}
      onKeyDown={onKey}
      className="relative max-h-[65vh] overflow-auto overscroll-contain rounded-md [--names:9rem] md:[--names:16rem]"
    >
      <Axis range={range} originMs={whole.fromMs} />
      <div className="relative select-none" style={{ height: virtual.getTotalSize() }} {...pointer}>
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const row = rows[index];
          return (
            row && (
              <div key={key} className="absolute inset-x-0 top-0" style={{ transform: `translateY(${start}px)` }}>
                <ChartRow
                  row={row}
                  range={range}
                  isSelected={row.key === selected}
                  onSelect={onSelect}
                  onToggle={onToggle}
                />
              </div>
            )
          );
        })}
        {dragged && (
          <div className="pointer-events-none absolute inset-y-0 right-0 left-(--names)">
            <div className="absolute inset-y-0 bg-accent opacity-20" style={positionOf(dragged, range)} />
          </div>
        )}
      </div>
      {isZoomed && (
        <p className="sticky bottom-0 left-0 border-t border-line bg-panel px-2 py-1 text-xs text-quiet">
          Showing {duration(range.toMs - range.fromMs)} of {duration(whole.toMs - whole.fromMs)}. Press 0 or
          double-click to show everything.
        </p>
      )}
    </section>
  );
}

function Axis({ range, originMs }: { range: Range; originMs: number }) {
  return (
    <div aria-hidden="true" className="sticky top-0 z-10 flex h-7 border-b border-line bg-panel text-xs text-quiet">
      <span className="w-(--names) shrink-0 px-2 py-1">Step</span>
      <div className="relative min-w-0 flex-1 overflow-hidden">
        {tickMarksOf(range, originMs, MARKS_MAX).map((atMs) => (
          <span
            key={atMs}
            className="absolute top-0 h-full border-l border-line py-1 pl-1 whitespace-nowrap tabular-nums"
            style={{ left: `${fractionOf(atMs, range) * 100}%` }}
          >
            {duration(atMs - originMs)}
          </span>
        ))}
      </div>
    </div>
  );
}

function positionOf(selection: Range, range: Range): React.CSSProperties {
  const left = fractionOf(selection.fromMs, range) * 100;
  return { left: `${left}%`, width: `${fractionOf(selection.toMs, range) * 100 - left}%` };
}
