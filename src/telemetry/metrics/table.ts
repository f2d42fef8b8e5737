/**
 * Every metric, once: what is exposed, docs/metrics.md and the check of the dashboard and the alerts are made from this
 * table. No label has values that a client can choose, and none has many, so their number does not grow.
 */

import type { Count } from '../../engine/minutes/counts.ts';

interface About {
  /** One sentence: what it counts or shows, and what it leaves out. */
  readonly meaning: string;
  /** Without values: a few names that only the operator gives. */
  readonly label?: { readonly name: string; readonly values: readonly string[] };
}

/** `of`: how the numbers of several workers in one process become one. */
type Metric = About &
  /** `counts`: the events that it counts, by label value if it has a label. */
  (
    | { readonly kind: 'counter'; readonly of?: 'process'; readonly counts?: Count | Readonly<Record<string, Count>> }
    /**
     * `of` the worker: they are added up. Of the process or a cell: each worker that tells them tells the same. Those of a cell
     * have its name as the label `cell` where there are several.
     */
    | { readonly kind: 'gauge'; readonly of: 'worker' | 'process' | 'cell' }
    /** Upper bounds of the buckets, in the unit of its name. */
    | { readonly kind: 'histogram'; readonly buckets: readonly number[] }
  );

/** From a commit on a fast disk to an attempt with the longest usual time-out. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;

const STATUSES = ['2xx', '3xx', '4xx', '5xx'] as const;

export const METRICS = {
  waypost_http_requests_total: {
    kind: 'counter',
    label: { name: 'status', values: STATUSES },
    meaning: 'Requests answered, health checks and the console included.',
  },
  waypost_publish_duration_seconds: {
    kind: 'histogram',
    buckets: SECONDS,
    meaning:
      'From the head of a publish, enqueue, batch or trigger to its answer, which follows the commit; refused ones are left out.',
  },
  waypost_messages_accepted_total: {
    kind: 'counter',
    counts: 'accepted',
    meaning: 'New messages: published, scheduled, callbacks, steps of runs.',
  },
  waypost_first_attempt_lag_seconds: {
    kind: 'histogram',
    buckets: SECONDS,
    meaning:
      'From when a message was due, for most when it was published, to its first attempt; time in a queue or for a flow-control key included.',
  },
  waypost_attempt_duration_seconds: {
    kind: 'histogram',
    buckets: SECONDS,
    meaning: 'How long an attempt took, answered or not; those that a shutdown interrupted are left out.',
  },
  waypost_attempts_total: {
    kind: 'counter',
    label: {
      name: 'result',
      values: [
        ...STATUSES,
        ...['blocked', 'dns', 'refused', 'tls', 'reset', 'timeout', 'malformed', 'unsendable', 'interrupted'],
      ],
    },
    meaning: 'Attempts ended, by the class of the status or, without an answer, by the cause.',
  },
  waypost_messages_delivered_total: { kind: 'counter', counts: 'delivered', meaning: 'Messages delivered.' },
  waypost_retries_total: {
    kind: 'counter',
    counts: 'retries',
    meaning: 'Failed attempts after which another one was planned.',
  },
  waypost_messages_failed_total: {
    kind: 'counter',
    counts: 'dead',
    meaning: 'Messages that failed for good, in the DLQ or not.',
  },
  waypost_dead_letters_total: {
    kind: 'counter',
    counts: 'deadLetters',
    meaning: 'Messages and workflow runs put into the DLQ.',
  },
  waypost_runs_started_total: { kind: 'counter', counts: 'runsStarted', meaning: 'Workflow runs started.' },
  waypost_run_steps_total: {
    kind: 'counter',
    counts: 'steps',
    meaning: 'Results of steps of workflow runs that were recorded, those of calls, waits and invocations included.',
  },
  waypost_runs_ended_total: {
    kind: 'counter',
    counts: { success: 'runsSucceeded', failed: 'runsFailed', canceled: 'runsCanceled' },
    label: { name: 'state', values: ['success', 'failed', 'canceled'] },
    meaning: 'Workflow runs ended.',
  },
  waypost_schedule_lag_seconds: {
    kind: 'histogram',
    buckets: SECONDS,
    meaning:
      "From a schedule's time to when its messages were saved; times made up for after a stop count from the first of them.",
  },
  waypost_claims_lost_total: {
    kind: 'counter',
    meaning:
      'Attempts whose outcome was not recorded, since the message belonged to another worker by then or was gone.',
  },
  waypost_spans_total: {
    kind: 'counter',
    label: { name: 'result', values: ['exported', 'dropped'] },
    meaning: 'Spans of traces that the collector got, and those that it did not, since too many waited or it failed.',
  },
  waypost_in_flight: { kind: 'gauge', of: 'worker', meaning: 'Attempts under way.' },
  waypost_in_flight_by_project: {
    kind: 'gauge',
    of: 'worker',
    label: { name: 'project', values: [] },
    meaning: 'Of these, those of the 20 projects with the most; a project without any is left out.',
  },
  waypost_in_flight_by_cell: {
    kind: 'gauge',
    of: 'worker',
    label: { name: 'cell', values: [] },
    meaning: 'Attempts under way in each cell; no series while there is only one.',
  },
  waypost_cell_away: {
    kind: 'gauge',
    of: 'process',
    label: { name: 'cell', values: [] },
    meaning:
      'Whether a worker could not reach the cell when it last tried, as 1 or 0; no series while there is only one.',
  },
  waypost_workers: {
    kind: 'gauge',
    of: 'process',
    meaning:
      'Workers that live: those of the process or, on PostgreSQL, all on the database as its first worker last heard.',
  },

  waypost_commit_duration_seconds: {
    kind: 'histogram',
    buckets: SECONDS,
    meaning: 'How long the store took to commit a batch of commands.',
  },
  waypost_commit_batch_commands: {
    kind: 'histogram',
    buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
    meaning: 'Commands in a batch: the more there are, the busier the store.',
  },
  waypost_store_bytes: { kind: 'gauge', of: 'cell', meaning: 'Size of the database, without its log of writes.' },
  waypost_store_unused_bytes: {
    kind: 'gauge',
    of: 'cell',
    meaning: 'Of these, what is free for new rows; absent where the database does not say.',
  },

  waypost_backlog_messages: {
    kind: 'gauge',
    of: 'cell',
    label: { name: 'state', values: ['scheduled', 'due', 'origin', 'flow', 'queue', 'project', 'active'] },
    meaning:
      'Unfinished messages by what they wait for: their time, a worker, their endpoint, their flow-control key, their queue, their project, the end of an attempt.',
  },
  waypost_oldest_due_seconds: {
    kind: 'gauge',
    of: 'cell',
    meaning:
      'How long the oldest due message has waited that neither a queue nor a flow-control key holds back; 0 if there is none.',
  },
  waypost_dlq_entries: { kind: 'gauge', of: 'cell', meaning: 'Messages and workflow runs in the DLQ.' },
  waypost_runs_active: { kind: 'gauge', of: 'cell', meaning: 'Workflow runs that have not ended.' },
  waypost_waiters: { kind: 'gauge', of: 'cell', meaning: 'Waits of workflow runs for an event.' },
  waypost_sample_age_seconds: {
    kind: 'gauge',
    of: 'cell',
    meaning:
      'How old the numbers of the backlog, the DLQ, the runs and the size of the database are; when it grows, the store does not answer.',
  },

  waypost_event_loop_delay_max_seconds: {
    kind: 'gauge',
    of: 'process',
    meaning: "The longest delay of a worker's event loop since the last request, to a few hundredths of a second.",
  },
  waypost_event_loop_active_seconds_total: {
    kind: 'counter',
    meaning:
      "Time in which the workers' event loops had something to do; its rate is their load, 1 for each busy worker.",
  },
  waypost_resident_memory_bytes: { kind: 'gauge', of: 'process', meaning: 'Memory of the process.' },
  waypost_heap_used_bytes: { kind: 'gauge', of: 'worker', meaning: "Heaps of the workers' JavaScript, with garbage." },
  waypost_cpu_seconds_total: { kind: 'counter', of: 'process', meaning: 'CPU time of the process, user and system.' },
} as const satisfies Record<string, Metric>;

export type MetricName = keyof typeof METRICS;

/** The metrics of one kind. */
export type NameOf<Kind extends Metric['kind']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never;
}[MetricName];

/** The label values that a metric has; `undefined`: it has no label. */
export type LabelOf<Name extends MetricName> = (typeof METRICS)[Name] extends {
  label: { values: readonly (infer Value)[] };
}
  ? Value
  : undefined;

/** All rows, in order. */
export function listMetrics(): { name: MetricName; metric: Metric }[] {
  return Object.entries(METRICS).map(([name, metric]) => ({ name: name as MetricName, metric }));
}
