/** A list of any length. Only the visible rows are rendered. */
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useRef } from 'react';

export interface ListColumn<Row> {
  name: string;
  cell: (row: Row) => React.ReactNode;
  /** CSS classes of the cells; `max-md:hidden` hides a column on small screens. */
  className?: string;
}

interface Props<Row> {
  /** For screen readers. */
  label: string;
  columns: readonly ListColumn<Row>[];
  /** The CSS classes that set the widths of the columns: `grid-cols-[…]`. */
  grid: string;
  rows: readonly Row[];
  /** A row with the same key stays expanded after a reload. */
  keyOf: (row: Row) => string;
  /** The content below an expanded row. */
  detail?: (row: Row) => React.ReactNode;
  openKey?: string | undefined;
  /** Called when the last rows are visible. */
  onEnd?: (() => void) | undefined;
  /** Reports whether the rows must not move, because the pointer is over the list or the list is scrolled. */
  onPause?: (isPaused: boolean) => void;
}

const ROW_PX = 41;
const OVERSCAN_ROWS = 6;

export function LongList<Row>(props: Props<Row>) {
  const { label, columns, grid, rows, keyOf, detail, openKey, onEnd } = props;
  const box = useRef<HTMLDivElement>(null);
  const latestKeyOf = useRef(keyOf);
  latestKeyOf.current = keyOf;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    // A new function would cause all rows to be measured again, so the function changes only with the rows.
    getItemKey: useCallback((index: number) => latestKeyOf.current(rows[index] as Row), [rows]),
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN_ROWS,
    measureElement: sizeOf,
  });
  const items = virtual.getVirtualItems();
  const isAtEnd = (items.at(-1)?.index ?? -1) >= rows.length - 1;
  useEffect(() => {
    if (isAtEnd) onEnd?.();
  }, [isAtEnd, onEnd]);
  return (
    <div
      ref={box}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be scrollable by keyboard
      tabIndex={0}
      className="-m-4 max-h-[max(24rem,calc(100dvh-18.5rem))] overflow-auto"
      {...pauseHandlers(props)}
    >
      {/* biome-ignore lint/a11y/useSemanticElements: rows of a table element cannot be positioned individually */}
      <div role="table" aria-label={label} aria-rowcount={rows.length + 1} className="min-w-full">
        {/* biome-ignore lint/a11y/useSemanticElements: as above */}
        <div
          role="row"
          tabIndex={-1}
          aria-rowindex={1}
          className={`sticky top-0 z-1 grid items-center gap-x-4 border-b border-line bg-panel px-4 py-2 text-xs font-medium text-quiet ${grid}`}
        >
          {columns.map(({ name, className = '' }) => (
            // biome-ignore lint/a11y/useSemanticElements: as above
            <span key={name} role="columnheader" tabIndex={-1} className={className}>
              {name}
            </span>
          ))}
        </div>
        {/* biome-ignore lint/a11y/useSemanticElements: as above */}
        <div role="rowgroup" className="relative" style={{ height: virtual.getTotalSize() }}>
          {items.map(({ index, key, start }) => {
            const row = rows[index] as Row;
            return (
              // biome-ignore lint/a11y/useSemanticElements: as above
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                role="row"
                tabIndex={-1}
                aria-rowindex={index + 2}
                className="absolute top-0 left-0 w-full contain-content border-b border-line hover:bg-raised"
                style={{ transform: `translateY(${start}px)` }}
              >
                <div className={`grid items-center gap-x-4 px-4 py-2 ${grid}`} role="presentation">
                  {columns.map(({ name, cell, className = '' }) => (
                    // biome-ignore lint/a11y/useSemanticElements: as above
                    <div key={name} role="cell" className={`min-w-0 ${className}`}>
                      {cell(row)}
                    </div>
                  ))}
                </div>
                {detail && openKey === key && (
                  // biome-ignore lint/a11y/useSemanticElements: as above
                  <div role="cell" className="border-t border-line bg-page px-4 py-3">
                    {detail(row)}
                  </div>
                )}
              </div>
            );
          })}
        </div>
      </div>
      {rows.length === 0 && (
        <p role="status" className="px-4 py-3 text-quiet">
          No match in the latest entries; searching older ones…
        </p>
      )}
    </div>
  );
}

/**
 * Uses the size that the browser reports after layout. Reading the size earlier would force a layout for each new row.
 */
function sizeOf(element: Element, entry: ResizeObserverEntry | undefined, list: Virtualizer<HTMLDivElement, Element>) {
  const [size] = entry?.borderBoxSize ?? [];
  if (size) return Math.round(size.blockSize);
  return list.itemSizeCache.get(list.options.getItemKey(list.indexFromElement(element))) ?? ROW_PX;
}

function pauseHandlers<Row>({ onPause }: Props<Row>): React.HTMLAttributes<HTMLDivElement> {
  if (!onPause) return {};
  return {
    onPointerEnter: () => onPause(true),
    onPointerLeave: (event) => onPause(event.currentTarget.scrollTop > 0),
    onScroll: (event) => onPause(event.currentTarget.scrollTop > 0 || event.currentTarget.matches(':hover')),
  };
}
