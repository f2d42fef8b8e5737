/** Lines over time. The colours are those of the theme, read anew when the theme changes. */
import { useEffect, useRef } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { Lines } from './series.ts';

export interface Line {
  name: string;
  /** A colour of the theme: `good`. */
  colour: string;
}

interface Props {
  label: string;
  lines: readonly Line[];
  data: Lines;
  /** A value as it is read at the axis. */
  written?: (value: number) => string;
}

const HEIGHT_PX = 180;

export function Chart({ label, lines, data, written = (value) => value.toLocaleString() }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<UPlot>(undefined);
  const latest = useRef(data);
  latest.current = data;
  // Drawn anew when what the lines are changes, or the theme; new values only move the lines.
  const drawing = JSON.stringify(lines);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `drawing` stands for the lines, and `written` does not change
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const draw = (): void => {
      chart.current?.destroy();
      chart.current = new UPlot(optionsOf(element, lines, written), latest.current, element);
    };
    draw();
    const resized = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    resized.observe(element);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', draw);
    return () => {
      resized.disconnect();
      themed.disconnect();
      dark.removeEventListener('change', draw);
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [drawing]);
  useEffect(() => chart.current?.setData(data), [data]);
  return <div ref={place} role="img" aria-label={label} className="min-w-0" />;
}

function optionsOf(element: HTMLElement, lines: readonly Line[], written: (value: number) => string): UPlot.Options {
  const colour = (name: string): string => resolved(element, `var(--color-${name})`);
  const axis = { stroke: colour('quiet'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    legend: { live: true },
    cursor: { points: { size: 6 } },
    axes: [
      axis,
      { ...axis, size: 64, values: (_, values) => values.map((value) => (value === null ? '' : written(value))) },
    ],
    series: [
      {},
      ...lines.map(({ name, colour: line }) => ({
        label: name,
        stroke: colour(line),
        width: 1.5,
        points: { size: 4, filter: aloneIn },
        value: (_: UPlot, value: number | null) => (value === null ? '–' : written(value)),
      })),
    ],
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max ?? 1) * 1.1] } },
  };
}

/** A value between two minutes without one is a line of no length: it is drawn as a point. */
function aloneIn({ data }: UPlot, line: number, areAllShown: boolean): number[] | null {
  if (areAllShown) return null;
  const values = data[line] ?? [];
  return [...values.keys()].filter((at) => isThere(values[at]) && !isThere(values[at - 1]) && !isThere(values[at + 1]));
}

function isThere(value: number | null | undefined): boolean {
  return value !== null && value !== undefined;
}

/** A canvas knows no variables: the colour as the page computes it. */
function resolved(element: HTMLElement, value: string): string {
  element.style.color = value;
  const { color } = getComputedStyle(element);
  element.style.color = '';
  return color;
}
