/** A line chart over time in the colours of the theme. It is redrawn when the theme changes. */
import { useEffect, useRef } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { ChartData } from './series.ts';

export interface ChartLine {
  name: string;
  /** The name of a theme colour, such as `good`. */
  colour: string;
}

interface Props {
  label: string;
  lines: readonly ChartLine[];
  data: ChartData;
  /** Formats a value for the axis and the legend. */
  format?: (value: number) => string;
}

const HEIGHT_PX = 180;

export function Chart({ label, lines, data, format = (value) => value.toLocaleString() }: Props) {
  const container = useRef<HTMLDivElement>(null);
  const chart = useRef<UPlot>(undefined);
  const latest = useRef(data);
  latest.current = data;
  // Recreated when the lines or the theme change; new values only update the data.
  const linesKey = JSON.stringify(lines);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `linesKey` represents the lines, and `format` does not change
  useEffect(() => {
    const element = container.current;
    if (element === null) return;
    const draw = (): void => {
      chart.current?.destroy();
      chart.current = new UPlot(optionsOf(element, lines, format), latest.current, element);
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
  }, [linesKey]);
  useEffect(() => chart.current?.setData(data), [data]);
  return <div ref={container} role="img" aria-label={label} className="min-w-0" />;
}

function optionsOf(
  element: HTMLElement,
  lines: readonly ChartLine[],
  format: (value: number) => string,
): UPlot.Options {
  const colour = (name: string): string => computedColour(element, `var(--color-${name})`);
  const axis = { stroke: colour('quiet'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    legend: { live: true },
    cursor: { points: { size: 6 } },
    axes: [
      axis,
      { ...axis, size: 64, values: (_, values) => values.map((value) => (value === null ? '' : format(value))) },
    ],
    series: [
      {},
      ...lines.map(({ name, colour: line }) => ({
        label: name,
        stroke: colour(line),
        width: 1.5,
        points: { size: 4, filter: isolatedPoints },
        value: (_: UPlot, value: number | null) => (value === null ? '–' : format(value)),
      })),
    ],
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max ?? 1) * 1.1] } },
  };
}

/** Draws an isolated value as a point, since a line through it would have no length. */
function isolatedPoints({ data }: UPlot, line: number, areAllShown: boolean): number[] | null {
  if (areAllShown) return null;
  const values = data[line] ?? [];
  return [...values.keys()].filter(
    (at) => isDefined(values[at]) && !isDefined(values[at - 1]) && !isDefined(values[at + 1]),
  );
}

function isDefined(value: number | null | undefined): boolean {
  return value !== null && value !== undefined;
}

/** A canvas does not resolve CSS variables, so this returns the computed colour. */
function computedColour(element: HTMLElement, value: string): string {
  element.style.color = value;
  const { color } = getComputedStyle(element);
  element.style.color = '';
  return color;
}
