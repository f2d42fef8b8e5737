/** A row of the timeline: the name of the step, and its segments on the time axis. */
import { memo } from 'react';
import { duration } from '../../parts/time.tsx';
import { fractionOf, type Range } from './axis.ts';
import type { Row } from './rows.ts';
import type { Segment, SegmentKind } from './timeline.ts';

const TONES: Record<string, string> = {
  STEP_SUCCESS: 'text-good',
  STEP_FAILED: 'text-bad',
  STEP_RETRY: 'text-warn',
  STEP_PARKED: 'text-warn',
  STEP_PROGRESS: 'text-busy',
  CALLBACK_SUCCESS: 'text-good',
  CALLBACK_FAIL: 'text-bad',
  CALLBACK_INPROGRESS: 'text-busy',
};

const MARKS: Record<string, string> = {
  STEP_SUCCESS: '✓',
  STEP_FAILED: '✗',
  STEP_RETRY: '↻',
  STEP_PARKED: '‖',
  STEP_PROGRESS: '…',
  STEP_CANCELED: '–',
  CALLBACK_SUCCESS: '✓',
  CALLBACK_FAIL: '✗',
  CALLBACK_INPROGRESS: '…',
  CALLBACK_CANCELED: '–',
};

const SHAPES: Record<SegmentKind, string> = {
  run: 'h-4 bg-current',
  failed: 'h-4 bg-bad',
  waits: 'h-4 hatched border border-current text-quiet',
  queued: 'h-0.5 bg-quiet',
};

const MEANINGS: Record<SegmentKind, string> = {
  run: 'running',
  failed: 'failed attempt',
  waits: 'waiting',
  queued: 'due, not started',
};

const GROUP_LINES = {
  first: 'top-1/2 bottom-0 border-t rounded-tl',
  inner: 'inset-y-0',
  last: 'top-0 bottom-1/2 border-b rounded-bl',
};

interface Props {
  row: Row;
  range: Range;
  isSelected: boolean;
  onSelect: (key: string) => void;
  onToggle: (key: string) => void;
}

export const ChartRow = memo(function ChartRow({ row, range, isSelected, onSelect, onToggle }: Props) {
  const { key, bar, depth, isExpanded } = row;
  const { name, state, groupPosition, child, segments, fromMs, toMs, isReused, attempts } = bar;
  const failed = attempts.filter(({ error }) => error !== undefined);
  return (
    <div className={`flex h-8 border-b border-line ${isSelected ? 'bg-raised' : 'hover:bg-raised'}`}>
      <div
        className="relative flex w-(--names) shrink-0 items-center"
        style={{ paddingLeft: `${depth * 0.75 + 0.75}rem` }}
      >
        {groupPosition && (
          <span
            aria-hidden="true"
            title="parallel step"
            className={`absolute w-1.5 border-l-2 border-busy ${GROUP_LINES[groupPosition]}`}
            style={{ left: `${depth * 0.75 + 0.25}rem` }}
          />
        )}
        <button
          type="button"
          aria-pressed={isSelected}
          title={name}
          onClick={() => onSelect(key)}
          className="flex h-full min-w-0 flex-1 items-center gap-1.5 px-1 text-left"
        >
          <span aria-hidden="true" className={`w-3 text-center ${TONES[state] ?? 'text-quiet'}`}>
            {MARKS[state] ?? ''}
          </span>
          <bdi className="truncate">{name}</bdi>
          <span className="sr-only">{wordOf(state)}</span>
        </button>
        {child && (
          <button
            type="button"
            aria-expanded={isExpanded}
            aria-label={`Steps of the run invoked by ${name}`}
            onClick={() => onToggle(key)}
            className="h-full w-7 text-quiet hover:text-text"
          >
            {isExpanded ? '▾' : '▸'}
          </button>
        )}
      </div>
      {/* Keyboard users select the step with the button that shows its name. */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: see above */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: see above */}
      <div
        data-track=""
        onClick={() => onSelect(key)}
        className={`relative min-w-0 flex-1 cursor-pointer overflow-hidden border-l border-line ${TONES[state] ?? 'text-quiet'}`}
      >
        {segments.map((segment, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: segments have no id, and keep their order
          <SegmentBar key={index} segment={segment} range={range} />
        ))}
        {segments.length === 0 && fromMs >= range.fromMs && fromMs <= range.toMs && (
          <span
            className="absolute top-2 size-4 rotate-45 scale-50 border-2 border-current"
            style={{ left: `min(calc(100% - 1rem), ${clamp(fractionOf(fromMs, range)) * 100}%)` }}
          />
        )}
        <span
          className={`pointer-events-none absolute top-1/2 -translate-y-1/2 rounded-sm px-1.5 text-xs whitespace-nowrap text-quiet tabular-nums ${segments.length === 0 ? 'ml-4' : ''}`}
          style={captionPosition(fromMs, toMs, range)}
        >
          {isReused
            ? 'reused'
            : failed.length > 0
              ? `${duration(toMs - fromMs)}, ${failed.length} failed`
              : segments.length > 0 && duration(toMs - fromMs)}
        </span>
      </div>
    </div>
  );
});

function SegmentBar({ segment: { kind, fromMs, toMs }, range }: { segment: Segment; range: Range }) {
  const from = clamp(fractionOf(fromMs, range));
  const to = clamp(fractionOf(toMs, range));
  if (toMs < range.fromMs || fromMs > range.toMs) return null;
  return (
    <span
      title={`${MEANINGS[kind]}: ${duration(toMs - fromMs)}`}
      className={`absolute top-1/2 min-w-0.5 -translate-y-1/2 rounded-sm ${SHAPES[kind]}`}
      style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }}
    />
  );
}

/** The caption is right of the bar, left of a bar near the right edge, or on top of a bar that fills the row. */
function captionPosition(fromMs: number, toMs: number, range: Range): React.CSSProperties {
  const from = clamp(fractionOf(fromMs, range));
  const to = clamp(fractionOf(toMs, range));
  if (to < 0.75) return { left: `${to * 100}%` };
  return from > 0.25 ? { right: `${(1 - from) * 100}%` } : { right: '0.25rem', background: 'var(--color-panel)' };
}

function clamp(fraction: number): number {
  return Math.min(1, Math.max(0, fraction));
}

function wordOf(state: string): string {
  return state.replace(/^(STEP|CALLBACK)_/, '').toLowerCase();
}
