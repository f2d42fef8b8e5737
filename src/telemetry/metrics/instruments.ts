/**
 * The numbers of one worker. Every message counts nine times, so they are plain numbers: the library, which adds up what
 * several workers tell and writes it as text, takes fifteen times as long to count.
 */
import type { Count } from '../../engine/minutes/counts.ts';
import { type LabelOf, listMetrics, METRICS, type MetricName, type NameOf } from './table.ts';

/** One metric of one worker at one moment: plain data that can pass to another thread, in the form of the library. */
export interface Told {
  name: MetricName;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
  /** How the numbers of several workers become one. */
  aggregator: 'sum' | 'max';
  values: Samples;
}

export type Samples = { value: number; labels: Record<string, string | number>; metricName?: string }[];

export type Reading = readonly Told[];

interface Distribution {
  readonly bounds: readonly number[];
  /** By bucket; one more takes what is beyond the last bound. */
  readonly counts: number[];
  sum: number;
}

/** For metrics that have no label. */
const UNLABELLED = '';

export class Instruments {
  /** Of counters and gauges, by label. A gauge has no number until it is known, and where another worker tells it. */
  readonly #numbers = new Map<MetricName, Map<string, number>>();
  /** Of gauges whose labels are names. */
  readonly #samples = new Map<MetricName, Samples>();
  readonly #distributions = new Map<MetricName, Distribution>();
  /** By event: the counter of it, and its label there. */
  readonly #countersOf = new Map<Count, { numbers: Map<string, number>; label: string }>();

  constructor() {
    for (const { name, metric } of listMetrics()) {
      if (metric.kind === 'histogram') {
        const { buckets: bounds } = metric;
        this.#distributions.set(name, { bounds, counts: new Array(bounds.length + 1).fill(0), sum: 0 });
      } else {
        // A rate is known from the first event on only if the counter was there before it.
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

  /** A gauge, or a counter that somebody else counts. */
  set<Name extends NameOf<'counter' | 'gauge'>>(name: Name, value: number, label?: LabelOf<Name> & string): void {
    this.#numbersOf(name).set(label ?? UNLABELLED, value);
  }

  /** All numbers of a gauge whose labels are names. */
  setAll(name: NameOf<'gauge'>, samples: Samples): void {
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

  #samplesOf(name: MetricName): Samples {
    const { label } = METRICS[name] as { label?: { name: string } };
    return [...this.#numbersOf(name)].map(([key, value]) => ({ value, labels: label ? { [label.name]: key } : {} }));
  }

  #numbersOf(name: MetricName): Map<string, number> {
    return this.#numbers.get(name) ?? new Map();
  }
}

/** Each bucket has what is below its bound, so that of the buckets before it too. */
function samplesOf(name: MetricName, { bounds, counts, sum }: Distribution): Samples {
  let below = 0;
  const buckets = counts.map((count, index) => {
    below += count;
    return { value: below, labels: { le: bounds[index] ?? '+Inf' }, metricName: `${name}_bucket` };
  });
  return [
    ...buckets,
    { value: sum, labels: {}, metricName: `${name}_sum` },
    { value: below, labels: {}, metricName: `${name}_count` },
  ];
}
