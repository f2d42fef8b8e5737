/** The metrics of one worker, in the library that keeps and writes them. Loaded only where metrics are asked for. */
import { AggregatorRegistry, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type LabelOf, listMetrics, type MetricName, type NameOf } from './table.ts';

/** The numbers of one worker at one moment: plain data that can pass to another thread. */
export type Reading = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** How the numbers of several workers become one, in the words of the library. */
const AGGREGATORS = { worker: 'sum', process: 'max', store: 'max' } as const;

export class Instruments {
  readonly #registry = new Registry();
  readonly #byName = new Map<MetricName, Counter | Gauge | Histogram>();

  constructor() {
    for (const { name, metric } of listMetrics()) {
      const labelNames = metric.label ? [metric.label.name] : [];
      const about = { name, help: metric.meaning, labelNames, registers: [this.#registry] };
      switch (metric.kind) {
        case 'counter': {
          const counter = new Counter({ ...about, aggregator: AGGREGATORS[metric.of ?? 'worker'] });
          // A rate is known from the first event on only if the counter was there before it.
          for (const value of metric.label?.values ?? []) counter.labels(value).inc(0);
          this.#byName.set(name, counter);
          break;
        }
        case 'gauge': {
          const gauge = new Gauge({ ...about, aggregator: AGGREGATORS[metric.of] });
          // Absent until it is known, and where another worker tells it. With a label it begins so.
          if (!metric.label) gauge.remove();
          this.#byName.set(name, gauge);
          break;
        }
        case 'histogram':
          this.#byName.set(name, new Histogram({ ...about, buckets: [...metric.buckets] }));
      }
    }
  }

  count<Name extends NameOf<'counter'>>(name: Name, label: LabelOf<Name>, by = 1): void {
    const counter = this.#byName.get(name) as Counter;
    if (typeof label !== 'string') counter.inc(by);
    else counter.labels(label).inc(by);
  }

  /** For a counter that somebody else counts. */
  setTotal(name: NameOf<'counter'>, total: number): void {
    const counter = this.#byName.get(name) as Counter;
    counter.reset();
    counter.inc(total);
  }

  set<Name extends NameOf<'gauge'>>(name: Name, label: LabelOf<Name>, value: number): void {
    const gauge = this.#byName.get(name) as Gauge;
    if (typeof label !== 'string') gauge.set(value);
    else gauge.labels(label).set(value);
  }

  observe(name: NameOf<'histogram'>, value: number): void {
    (this.#byName.get(name) as Histogram).observe(value);
  }

  read(): Promise<Reading> {
    return this.#registry.getMetricsAsJSON();
  }
}

/** What is answered to Prometheus: the numbers of all workers of a process together, as text. */
export async function exposition(readings: readonly Reading[]): Promise<{ type: string; text: string }> {
  const registry = AggregatorRegistry.aggregate([...readings]);
  return { type: registry.contentType, text: await registry.metrics() };
}
