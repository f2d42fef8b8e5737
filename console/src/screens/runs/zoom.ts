/** Zooms and moves the timeline by keyboard and pointer. */
import { type RefObject, useEffect, useRef, useState } from 'react';
import { clampRange, moveRange, type Range, zoomRange } from './axis.ts';

const ZOOM_FACTOR = 0.6;
const MOVE_FACTOR = 0.2;
/** A shorter drag is a click. */
const DRAG_PX_MIN = 5;
/** Elements with this attribute have the width of the axis. */
const TRACK = '[data-track]';

export function useZoom(scroller: RefObject<HTMLElement | null>, whole: Range) {
  // If the range is undefined, the whole run is visible, including new steps.
  const [chosen, choose] = useState<Range>();
  const [drag, setDrag] = useState<{ fromX: number; toX: number }>();
  const range = chosen === undefined ? whole : clampRange(chosen, whole);
  const hasDragged = useRef(false);
  const latest = useRef({ range, whole });
  latest.current = { range, whole };

  const set = (next: Range): void => {
    const { fromMs, toMs } = latest.current.whole;
    choose(next.fromMs <= fromMs && next.toMs >= toMs ? undefined : next);
  };
  const track = (): DOMRect | undefined => scroller.current?.querySelector(TRACK)?.getBoundingClientRect();

  // biome-ignore lint/correctness/useExhaustiveDependencies: the listener reads the latest range
  useEffect(() => {
    const element = scroller.current;
    // The browser zooms the page on Ctrl + wheel unless a non-passive listener prevents it.
    const onWheel = (event: WheelEvent): void => {
      const box = track();
      if (!event.ctrlKey || !box) return;
      event.preventDefault();
      const anchor = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      const { range: now, whole: all } = latest.current;
      set(zoomRange(now, all, event.deltaY < 0 ? ZOOM_FACTOR : 1 / ZOOM_FACTOR, anchor));
    };
    element?.addEventListener('wheel', onWheel, { passive: false });
    return () => element?.removeEventListener('wheel', onWheel);
  }, []);

  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = nextRange(event.key, range, whole);
    if (!next) return;
    event.preventDefault();
    set(next);
  };

  const timeAt = (x: number, box: DOMRect): number =>
    range.fromMs + Math.min(1, Math.max(0, (x - box.left) / box.width)) * (range.toMs - range.fromMs);
  const box = drag && track();
  const dragged: Range | undefined =
    drag && box && Math.abs(drag.toX - drag.fromX) >= DRAG_PX_MIN
      ? {
          fromMs: timeAt(Math.min(drag.fromX, drag.toX), box),
          toMs: timeAt(Math.max(drag.fromX, drag.toX), box),
        }
      : undefined;

  const pointer = {
    onPointerDown: (event: React.PointerEvent): void => {
      if (event.pointerType !== 'mouse' || event.button !== 0 || !(event.target as Element).closest(TRACK)) return;
      setDrag({ fromX: event.clientX, toX: event.clientX });
    },
    onPointerMove: (event: React.PointerEvent): void => {
      if (drag) setDrag({ ...drag, toX: event.clientX });
    },
    onPointerUp: (): void => {
      hasDragged.current = dragged !== undefined;
      if (dragged) set(zoomRange(dragged, whole, 1));
      setDrag(undefined);
    },
    // The end of a drag must not select a step.
    onClickCapture: (event: React.MouseEvent): void => {
      if (hasDragged.current) event.stopPropagation();
      hasDragged.current = false;
    },
    onPointerLeave: (): void => setDrag(undefined),
    onDoubleClick: (): void => choose(undefined),
  };
  return { range, isZoomed: chosen !== undefined, dragged, onKeyDown, pointer };
}

function nextRange(key: string, range: Range, whole: Range): Range | undefined {
  switch (key) {
    case '+':
    case '=':
      return zoomRange(range, whole, ZOOM_FACTOR);
    case '-':
      return zoomRange(range, whole, 1 / ZOOM_FACTOR);
    case 'ArrowLeft':
      return moveRange(range, whole, -MOVE_FACTOR);
    case 'ArrowRight':
      return moveRange(range, whole, MOVE_FACTOR);
    case '0':
      return whole;
    default:
      return undefined;
  }
}
