/**
 * The counters, gauges and histograms of one worker, as plain numbers. Every message increments nine of these numbers,
 * and an increment in the client library would take fifteen times as long. So the library only combines the workers'
 * values and formats the text (exposition.ts).
 */
import type { Count } from '../../engine/minutes/counts.ts';
import { type LabelOf, listMetrics, METRICS, type MetricName, type NameOf } from './table.ts';

/** One metric of one worker at one moment: plain data that can be posted to another thread, in the library's format. */
export interface MetricReading {
  name: MetricName;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
  /** How the values of several workers are combined. */
  aggregator: 'sum' | 'max';
  values: MetricValues;
}

export type MetricValues = { value: number; labels: Record<string, string | number>; metricName?: string }[];

export type Reading = readonly MetricReading[];

interface Distribution {
  readonly bounds: readonly number[];
  /** The count of each bucket; the last bucket has no upper bound. */
  readonly counts: number[];
  sum: number;
}

/** The label of metrics without a label. */
const UNLABELLED = '';

export class Instruments {
  /** Values of counters and gauges by label. A gauge has no value until this worker has set it. */
  readonly #numbers = new Map<MetricName, Map<string, number>>();
  /** Values of gauges whose labels are names, such as names of projects. */
  readonly #samples = new Map<MetricName, MetricValues>();
  readonly #distributions = new Map<MetricName, Distribution>();
  /** The counter that each event increments, with the label of the incremented value. */
  readonly #countersOf = new Map<Count, { numbers: Map<string, number>; label: string }>();

  constructor() {
    for (const { name, metric } of listMetrics()) {
      if (metric.kind === 'histogram') {
        const { buckets: bounds } = metric;
        this.#distributions.set(name, { bounds, counts: new Array(bounds.length + 1).fill(0), sum: 0 });
      } else {
        // Counters start at 0: without an earlier value, Prometheus would miss the first event in a rate.
        const labels = metric.kind === 'counter' ? (metric.label?.values ?? [UNLABELLED]) : [];
        const numbers = new Map(labels.map((label) => [label, 0]));
        this.#numbers.set(name, numbers);
        const { counts = {} } = metric.kind === 'counter' ? metric : {};
        const byLabel = typeof counts === 'string' ? { [UNLABELLED]: counts } : counts;
        for (const [label, count] of Object.entries(byLabel)) this.#countersOf.set(count, { numbers, label });
      }
    }
  }

  countEvents(counts: readonly Count[]): void {
    for (const count of counts) {
      const counter = this.#countersOf.get(count);
      if (counter) counter.numbers.set(counter.label, (counter.numbers.get(counter.label) ?? 0) + 1);
    }
  }

  count<Name extends NameOf<'counter'>>(name: Name, label?: LabelOf<Name> & string): void {
    const numbers = this.#numbersOf(name);
    const key: string = label ?? UNLABELLED;
    numbers.set(key, (numbers.get(key) ?? 0) + 1);
  }

  /** Sets a gauge, or a counter whose total another part of the program keeps. */
  set<Name extends NameOf<'counter' | 'gauge'>>(name: Name, value: number, label?: LabelOf<Name> & string): void {
    this.#numbersOf(name).set(label ?? UNLABELLED, value);
  }

  /** Sets all values of a gauge whose labels are names. */
  setAll(name: NameOf<'gauge'>, samples: MetricValues): void {
    this.#samples.set(name, samples);
  }

  observe(name: NameOf<'histogram'>, value: number): void {
    const distribution = this.#distributions.get(name);
    if (!distribution) return;
    const { bounds, counts } = distribution;
    let bucket = 0;
    while (value > (bounds[bucket] ?? Infinity)) bucket += 1;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    distribution.sum += value;
  }

  read(): Reading {
    return listMetrics().map(({ name, metric }) => {
      const of = metric.kind === 'histogram' ? 'worker' : (metric.of ?? 'worker');
      const distribution = this.#distributions.get(name);
      return {
        name,
        help: metric.meaning,
        type: metric.kind,
        aggregator: of === 'worker' ? 'sum' : 'max',
        values: distribution ? samplesOf(name, distribution) : (this.#samples.get(name) ?? this.#samplesOf(name)),
      };
    });
  }

  #samplesOf(name: MetricName): MetricValues {
    const { label } = METRICS[name] as { label?: { name: string } };
    return [...this.#numbersOf(name)].map(([key, value]) => ({ value, labels: label ? { [label.name]: key } : {} }));
  }

  #numbersOf(name: MetricName): Map<string, number> {
    return this.#numbers.get(name) ?? new Map();
  }
}

/** Returns cumulative buckets: each bucket includes the counts of the buckets before it. */
function samplesOf(name: MetricName, { bounds, counts, sum }: Distribution): MetricValues {
  let cumulative = 0;
  const buckets = counts.map((count, index) => {
    cumulative += count;
    return { value: cumulative, labels: { le: bounds[index] ?? '+Inf' }, metricName: `${name}_bucket` };
  });
  return [
    ...buckets,
    { value: sum, labels: {}, metricName: `${name}_sum` },
    { value: cumulative, labels: {}, metricName: `${name}_count` },
  ];
}
