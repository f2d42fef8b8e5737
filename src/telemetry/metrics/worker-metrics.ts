/** Collects the metrics of one worker: counts events as they happen, and reads the gauges on request. */
import { type EventLoopUtilization, monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { CellState, Engine } from '../../engine/commands.ts';
import type { Count } from '../../engine/minutes/counts.ts';
import { type Claimed, firstDueAtMs, type Millis, type Outcome, type ProjectId } from '../../engine/model.ts';
import type { Clock, Machine, Metrics } from '../../engine/ports.ts';
import { Instruments, type Reading } from './instruments.ts';
import { type Sample, Sampler, type Source } from './sampler.ts';
import type { NameOf } from './table.ts';

/** Its timer is the only work that an idle server does for the metrics. */
const LOOP_DELAY_RESOLUTION_MS = 50;

/** Each has a series of its own, also later, for as long as Prometheus keeps them. */
const PROJECTS_MAX = 20;

/** What is known once the worker is put together. */
export interface Watched {
  engine: Pick<Engine, 'inFlight' | 'busiestProjects' | 'workersAlive' | 'cells' | 'readTotals'>;
  projectName: (projectId: ProjectId) => string;
  clock: Clock;
  /** Present where traces are collected. */
  spans?: { counts: Readonly<Record<'exported' | 'dropped', number>> } | undefined;
  /** Present in the first worker of a process: so many it has. Others tell of stores only where the first may not serve all. */
  workers?: number;
}

export class WorkerMetrics implements Metrics {
  readonly #instruments = new Instruments();
  readonly #machine: Pick<Machine, 'elapsedMs'>;
  readonly #loopDelay = monitorEventLoopDelay({ resolution: LOOP_DELAY_RESOLUTION_MS });
  readonly #loopBefore: EventLoopUtilization = performance.eventLoopUtilization();
  #watched: Watched | undefined;
  #sampler: Sampler | undefined;

  constructor(machine: Pick<Machine, 'elapsedMs'>) {
    this.#machine = machine;
    this.#loopDelay.enable();
  }

  /** From now on the gauges tell of `watched`. */
  watch(watched: Watched): void {
    this.#watched = watched;
    this.#sampler = new Sampler(() => sourcesOf(watched), watched.clock);
  }

  close(): void {
    this.#loopDelay.disable();
  }

  answered(isPublish: boolean, status: number, durationMs: Millis): void {
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

  /** For the store: a batch of so many commands begins; what it returns is to be called when the batch is committed. */
  readonly watchBatches = (commands: number): (() => void) => {
    const begunAtMs = this.#machine.elapsedMs;
    this.#instruments.observe('waypost_commit_batch_commands', commands);
    return () => {
      this.#instruments.observe('waypost_commit_duration_seconds', (this.#machine.elapsedMs - begunAtMs) / 1_000);
    };
  };

  async read(): Promise<Reading> {
    await this.#sampler?.refresh();
    this.#look();
    return this.#instruments.read();
  }

  #look(): void {
    const to = this.#instruments;
    // What the histogram holds are the times between two ticks of its timer.
    const delayMs = Math.max(0, this.#loopDelay.max / 1e6 - LOOP_DELAY_RESOLUTION_MS);
    this.#loopDelay.reset();
    to.set('waypost_event_loop_delay_max_seconds', delayMs / 1_000);
    const { active } = performance.eventLoopUtilization(this.#loopBefore);
    to.set('waypost_event_loop_active_seconds_total', active / 1_000);
    const { user, system } = process.cpuUsage();
    to.set('waypost_cpu_seconds_total', (user + system) / 1e6);
    to.set('waypost_resident_memory_bytes', process.memoryUsage.rss());
    to.set('waypost_heap_used_bytes', getHeapStatistics().used_heap_size);
    if (this.#watched) this.#lookAt(this.#watched);
  }

  #lookAt({ engine, projectName, workers, clock, spans }: Watched): void {
    const to = this.#instruments;
    if (spans) {
      to.set('waypost_spans_total', spans.counts.exported, 'exported');
      to.set('waypost_spans_total', spans.counts.dropped, 'dropped');
    }
    to.set('waypost_in_flight', engine.inFlight);
    const busiest = engine.busiestProjects(PROJECTS_MAX);
    const byProject = busiest.map(([id, value]) => ({ value, labels: { project: projectName(id) } }));
    to.setAll('waypost_in_flight_by_project', byProject);
    const { cells = [] } = engine;
    const byCell = cells.map(({ name: cell, inFlight: value }) => ({ value, labels: { cell } }));
    to.setAll('waypost_in_flight_by_cell', byCell);
    const isAway = ({ name, state }: CellState) => state === 'away' || this.#sampler?.isAway(name);
    const away = cells.map((cell) => ({ value: isAway(cell) ? 1 : 0, labels: { cell: cell.name } }));
    to.setAll('waypost_cell_away', away);
    if (workers !== undefined) to.set('waypost_workers', engine.workersAlive ?? workers);
    this.#lookAtStores(this.#sampler?.latest ?? [], clock);
  }

  #lookAtStores(samples: readonly Sample[], clock: Clock): void {
    const tell = (name: NameOf<'gauge'>, read: (sample: Sample) => number | undefined): void => {
      const told = samples.flatMap((sample) => {
        const value = read(sample);
        return value === undefined ? [] : [{ value, labels: labelsOf(sample) }];
      });
      this.#instruments.setAll(name, told);
    };
    const backlog = samples.flatMap((sample) => {
      const { oldestDueMs, dead, runs, waiters, storage, ...counts } = sample.totals;
      return Object.entries(counts).map(([state, value]) => ({ value, labels: { ...labelsOf(sample), state } }));
    });
    this.#instruments.setAll('waypost_backlog_messages', backlog);
    tell('waypost_oldest_due_seconds', ({ totals }) => totals.oldestDueMs / 1_000);
    tell('waypost_dlq_entries', ({ totals }) => totals.dead);
    tell('waypost_runs_active', ({ totals }) => totals.runs);
    tell('waypost_waiters', ({ totals }) => totals.waiters);
    tell('waypost_store_bytes', ({ totals }) => totals.storage.bytes);
    tell('waypost_store_unused_bytes', ({ totals }) => totals.storage.unusedBytes);
    tell('waypost_sample_age_seconds', ({ takenAtMs }) => (clock.elapsedMs - takenAtMs) / 1_000);
  }
}

/** Where each worker serves all cells, one of the process tells of them. */
function sourcesOf({ engine, workers }: Watched): Source[] {
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

/** Informational answers are no answers, and no other statuses exist. */
function classOf(status: number): StatusClass {
  if (status < 300) return '2xx';
  if (status < 400) return '3xx';
  return status < 500 ? '4xx' : '5xx';
}

function resultOf(outcome: Outcome): StatusClass | 'interrupted' | Extract<Outcome, { kind: 'unreachable' }>['reason'] {
  switch (outcome.kind) {
    case 'answered':
      return classOf(outcome.status);
    case 'unreachable':
      return outcome.reason;
    case 'interrupted':
      return 'interrupted';
  }
}
