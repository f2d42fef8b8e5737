/** A list of any length, of which only the rows in sight are in the page. */
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useRef } from 'react';

export interface ListColumn<Row> {
  name: string;
  cell: (row: Row) => React.ReactNode;
  /** Classes of its cells; `max-md:hidden` for what a small screen has no room for. */
  className?: string;
}

interface Props<Row> {
  /** For screen readers. */
  label: string;
  columns: readonly ListColumn<Row>[];
  /** The classes that give the columns their widths: `grid-cols-[…]`. */
  grid: string;
  rows: readonly Row[];
  /** A row that keeps its key keeps what is open in it. */
  keyOf: (row: Row) => string;
  /** What stands below an open row. */
  detail?: (row: Row) => React.ReactNode;
  openKey?: string | undefined;
  /** The last rows are in sight. */
  onEnd?: (() => void) | undefined;
  /** Whether the reader looks at something that must not move: the pointer is over it, or it is scrolled. */
  onHold?: (isHeld: boolean) => void;
}

const ROW_PX = 41;
const ROWS_AHEAD = 6;

export function LongList<Row>(props: Props<Row>) {
  const { label, columns, grid, rows, keyOf, detail, openKey, onEnd } = props;
  const box = useRef<HTMLDivElement>(null);
  const latestKeyOf = useRef(keyOf);
  latestKeyOf.current = keyOf;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    // Another function would have all rows measured again, so it changes only with them.
    getItemKey: useCallback((index: number) => latestKeyOf.current(rows[index] as Row), [rows]),
    estimateSize: () => ROW_PX,
    overscan: ROWS_AHEAD,
    measureElement: sizeOf,
  });
  const items = virtual.getVirtualItems();
  const isAtEnd = (items.at(-1)?.index ?? -1) >= rows.length - 1;
  useEffect(() => {
    if (isAtEnd) onEnd?.();
  }, [isAtEnd, onEnd]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must scroll by keyboard too
    <div ref={box} tabIndex={0} className="-m-4 max-h-[max(24rem,calc(100dvh-18.5rem))] overflow-auto" {...held(props)}>
      {/* biome-ignore lint/a11y/useSemanticElements: rows in a table element cannot be placed one by one */}
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
          Nothing among the latest; looking further back…
        </p>
      )}
    </div>
  );
}

/** As the browser tells it after it has laid out the page: asked for earlier, it would lay it out for each new row. */
function sizeOf(element: Element, entry: ResizeObserverEntry | undefined, list: Virtualizer<HTMLDivElement, Element>) {
  const [size] = entry?.borderBoxSize ?? [];
  if (size) return Math.round(size.blockSize);
  return list.itemSizeCache.get(list.options.getItemKey(list.indexFromElement(element))) ?? ROW_PX;
}

function held<Row>({ onHold }: Props<Row>): React.HTMLAttributes<HTMLDivElement> {
  if (!onHold) return {};
  return {
    onPointerEnter: () => onHold(true),
    onPointerLeave: (event) => onHold(event.currentTarget.scrollTop > 0),
    onScroll: (event) => onHold(event.currentTarget.scrollTop > 0 || event.currentTarget.matches(':hover')),
  };
}
