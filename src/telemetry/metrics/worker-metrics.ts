/** Collects the metrics of one worker: counts events as they happen, and reads the gauges on request. */
import { type EventLoopUtilization, monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { CellState, Engine } from '../../engine/commands.ts';
import type { Count } from '../../engine/minutes/counts.ts';
import { type Claimed, firstDueAtMs, type Millis, type Outcome, type ProjectId } from '../../engine/model.ts';
import type { Clock, Machine, Metrics } from '../../engine/ports.ts';
import { Instruments, type Reading } from './instruments.ts';
import { type Sample, type SampledStore, Sampler } from './sampler.ts';
import type { NameOf } from './table.ts';

/** Interval of the event-loop monitor, which is the only work that an idle server does for metrics. */
const LOOP_DELAY_RESOLUTION_MS = 50;

/**
 * The maximum of projects per scrape. Each project becomes a time series, which Prometheus keeps for the retention time.
 */
const PROJECTS_MAX = 20;

/** The sources of the gauges. The sources exist only after the worker is assembled. */
export interface GaugeSources {
  engine: Pick<Engine, 'inFlight' | 'busiestProjects' | 'workersAlive' | 'cells' | 'readTotals'>;
  projectName: (projectId: ProjectId) => string;
  clock: Clock;
  /** Present if traces are exported. */
  spans?: { counts: Readonly<Record<'exported' | 'dropped', number>> } | undefined;
  /** Present only in the first worker of a process: the number of its workers. */
  workers?: number;
}

export class WorkerMetrics implements Metrics {
  readonly #instruments = new Instruments();
  readonly #machine: Pick<Machine, 'elapsedMs'>;
  readonly #loopDelay = monitorEventLoopDelay({ resolution: LOOP_DELAY_RESOLUTION_MS });
  readonly #loopAtStart: EventLoopUtilization = performance.eventLoopUtilization();
  #gaugeSources: GaugeSources | undefined;
  #sampler: Sampler | undefined;

  constructor(machine: Pick<Machine, 'elapsedMs'>) {
    this.#machine = machine;
    this.#loopDelay.enable();
  }

  /** From this call on, the gauges are read from `watched`. */
  setSources(watched: GaugeSources): void {
    this.#gaugeSources = watched;
    this.#sampler = new Sampler(() => storesToSample(watched), watched.clock);
  }

  close(): void {
    this.#loopDelay.disable();
  }

  responded(isPublish: boolean, status: number, durationMs: Millis): void {
    const statusClass = classOf(status);
    this.#instruments.count('waypost_http_requests_total', statusClass);
    if (isPublish && statusClass === '2xx') {
      this.#instruments.observe('waypost_publish_duration_seconds', durationMs / 1_000);
    }
  }

  count(counts: readonly Count[]): void {
    this.#instruments.countEvents(counts);
  }

  attempted({ message, retried, durationMs = 0 }: Claimed, outcome: Outcome, endedAtMs: Millis): void {
    this.#instruments.count('waypost_attempts_total', resultOf(outcome));
    if (outcome.kind === 'interrupted') return;
    this.#instruments.observe('waypost_attempt_duration_seconds', durationMs / 1_000);
    if (retried > 0) return;
    const lagMs = Math.max(0, endedAtMs - durationMs - firstDueAtMs(message));
    this.#instruments.observe('waypost_first_attempt_lag_seconds', lagMs / 1_000);
  }

  triggered(lagMs: Millis): void {
    this.#instruments.observe('waypost_schedule_lag_seconds', Math.max(0, lagMs) / 1_000);
  }

  claimLost(): void {
    this.#instruments.count('waypost_claims_lost_total');
  }

  /**
   * The store calls this function (`Batching.watch`) when a batch of `commands` starts, and the returned function after
   * the commit.
   */
  readonly watchBatches = (commands: number): (() => void) => {
    const startedAtMs = this.#machine.elapsedMs;
    this.#instruments.observe('waypost_commit_batch_commands', commands);
    return () => {
      this.#instruments.observe('waypost_commit_duration_seconds', (this.#machine.elapsedMs - startedAtMs) / 1_000);
    };
  };

  async read(): Promise<Reading> {
    await this.#sampler?.refresh();
    this.#setGauges();
    return this.#instruments.read();
  }

  #setGauges(): void {
    const instruments = this.#instruments;
    // The histogram contains the times between two ticks of its timer. The delay is such a time without the timer's
    // interval.
    const delayMs = Math.max(0, this.#loopDelay.max / 1e6 - LOOP_DELAY_RESOLUTION_MS);
    this.#loopDelay.reset();
    instruments.set('waypost_event_loop_delay_max_seconds', delayMs / 1_000);
    const { active } = performance.eventLoopUtilization(this.#loopAtStart);
    instruments.set('waypost_event_loop_active_seconds_total', active / 1_000);
    const { user, system } = process.cpuUsage();
    instruments.set('waypost_cpu_seconds_total', (user + system) / 1e6);
    instruments.set('waypost_resident_memory_bytes', process.memoryUsage.rss());
    instruments.set('waypost_heap_used_bytes', getHeapStatistics().used_heap_size);
    if (this.#gaugeSources) this.#setWorkerGauges(this.#gaugeSources);
  }

  #setWorkerGauges({ engine, projectName, workers, clock, spans }: GaugeSources): void {
    const instruments = this.#instruments;
    if (spans) {
      instruments.set('waypost_spans_total', spans.counts.exported, 'exported');
      instruments.set('waypost_spans_total', spans.counts.dropped, 'dropped');
    }
    instruments.set('waypost_in_flight', engine.inFlight);
    const busiest = engine.busiestProjects(PROJECTS_MAX);
    const byProject = busiest.map(([id, value]) => ({ value, labels: { project: projectName(id) } }));
    instruments.setAll('waypost_in_flight_by_project', byProject);
    const { cells = [] } = engine;
    const byCell = cells.map(({ name: cell, inFlight: value }) => ({ value, labels: { cell } }));
    instruments.setAll('waypost_in_flight_by_cell', byCell);
    const isAway = ({ name, state }: CellState) => state === 'away' || this.#sampler?.isAway(name);
    const away = cells.map((cell) => ({ value: isAway(cell) ? 1 : 0, labels: { cell: cell.name } }));
    instruments.setAll('waypost_cell_away', away);
    if (workers !== undefined) instruments.set('waypost_workers', engine.workersAlive ?? workers);
    this.#setStoreGauges(this.#sampler?.latest ?? [], clock);
  }

  #setStoreGauges(samples: readonly Sample[], clock: Clock): void {
    const set = (name: NameOf<'gauge'>, read: (sample: Sample) => number | undefined): void => {
      const values = samples.flatMap((sample) => {
        const value = read(sample);
        return value === undefined ? [] : [{ value, labels: labelsOf(sample) }];
      });
      this.#instruments.setAll(name, values);
    };
    const backlog = samples.flatMap((sample) => {
      const { oldestDueMs, dead, runs, waiters, storage, ...counts } = sample.totals;
      return Object.entries(counts).map(([state, value]) => ({ value, labels: { ...labelsOf(sample), state } }));
    });
    this.#instruments.setAll('waypost_backlog_messages', backlog);
    set('waypost_oldest_due_seconds', ({ totals }) => totals.oldestDueMs / 1_000);
    set('waypost_dlq_entries', ({ totals }) => totals.dead);
    set('waypost_runs_active', ({ totals }) => totals.runs);
    set('waypost_waiters', ({ totals }) => totals.waiters);
    set('waypost_store_bytes', ({ totals }) => totals.storage.bytes);
    set('waypost_store_unused_bytes', ({ totals }) => totals.storage.unusedBytes);
    set('waypost_sample_age_seconds', ({ takenAtMs }) => (clock.elapsedMs - takenAtMs) / 1_000);
  }
}

/**
 * The stores that this worker samples. If each worker serves all cells, only the first worker of the process samples the
 * cells. Otherwise every worker samples the cells that it serves.
 */
function storesToSample({ engine, workers }: GaugeSources): SampledStore[] {
  const isFirst = workers !== undefined;
  const { cells = [] } = engine;
  if (cells.length === 0) {
    return isFirst ? [{ state: 'open', readTotals: () => engine.readTotals() }] : [];
  }
  const served = cells.filter(({ isServed }) => isServed);
  return isFirst || served.length < cells.length ? served : [];
}

function labelsOf({ cell }: Sample): { cell?: string } {
  return cell === undefined ? {} : { cell };
}

type StatusClass = '2xx' | '3xx' | '4xx' | '5xx';

/** `status` is a final status, from 200 to 599. */
function classOf(status: number): StatusClass {
  if (status < 300) return '2xx';
  if (status < 400) return '3xx';
  return status < 500 ? '4xx' : '5xx';
}

function resultOf(outcome: Outcome): StatusClass | 'interrupted' | Extract<Outcome, { kind: 'unreachable' }>['reason'] {
  switch (outcome.kind) {
    case 'responded':
      return classOf(outcome.status);
    case 'unreachable':
      return outcome.reason;
    case 'interrupted':
      return 'interrupted';
  }
}
