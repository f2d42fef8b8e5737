/**
 * Every metric. The exposition, docs/metrics.md and the checks of the dashboard and the alerts are generated from this
 * table. Clients cannot choose label values, and each label has few, so the number of series stays bounded.
 */

import type { Count } from '../../engine/minutes/counts.ts';

interface MetricDescription {
  /** The help text: what the metric counts or measures, and what it does not include. */
  readonly meaning: string;
  /** Empty `values`: names that only the operator chooses, of which there are few. */
  readonly label?: { readonly name: string; readonly values: readonly string[] };
}

/** One metric. `of` determines how the values of several workers in one process are combined. */
type Metric = MetricDescription &
  /** `counts`: the events that increment it, by label value if it has a label. */
  (
    | { readonly kind: 'counter'; readonly of?: 'process'; readonly counts?: Count | Readonly<Record<string, Count>> }
    /**
     * `worker`: values are summed. `process`, `cell`: all workers report the same value. With several cells, `cell` metrics
     * have the name of their cell as the label `cell`.
     */
    | { readonly kind: 'gauge'; readonly of: 'worker' | 'process' | 'cell' }
    /** `buckets`: their upper bounds, in the unit at the end of the metric's name. */
    | { readonly kind: 'histogram'; readonly buckets: readonly number[] }
  );

/** Bucket bounds from a commit on a fast disk to an attempt with the longest usual timeout. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;

const STATUSES = ['2xx', '3xx', '4xx', '5xx'] as const;

export const METRICS = {
  waypost_http_requests_total: {
    kind: 'counter',
    label: { name: 'status', values: STATUSES },
    meaning: 'HTTP requests completed, including health checks and the console.',
  },
  waypost_publish_duration_seconds: {
    kind: 'histogram',
    buckets: SECONDS,
    meaning:
      'Time from the request head of an accepted publish, enqueue, batch or trigger to its response, which follows the commit.',
  },
  waypost_messages_accepted_total: {
    kind: 'counter',
    counts: 'accepted',
    meaning: 'Messages accepted: publishes, triggers of schedules, callbacks, and steps of workflow runs.',
  },
  waypost_first_attempt_lag_seconds: {
    kind: 'histogram',
    buckets: SECONDS,
    meaning:
      'Time from when a message was due (usually its publish) to its first attempt, including waits for a queue or a flow-control key.',
  },
  waypost_attempt_duration_seconds: {
    kind: 'histogram',
    buckets: SECONDS,
    meaning: 'Duration of attempts, with or without a response. Attempts that a shutdown interrupted are not included.',
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
    meaning: 'Attempts completed, by status class or, without a response, by cause.',
  },
  waypost_messages_delivered_total: { kind: 'counter', counts: 'delivered', meaning: 'Messages delivered.' },
  waypost_retries_total: {
    kind: 'counter',
    counts: 'retries',
    meaning: 'Failed attempts that were followed by a scheduled retry.',
  },
  waypost_messages_failed_total: {
    kind: 'counter',
    counts: 'dead',
    meaning: 'Messages that ended without delivery, whether or not they were put into the DLQ.',
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
    meaning: 'Step results recorded for workflow runs, including calls, waits and invocations.',
  },
  waypost_runs_ended_total: {
    kind: 'counter',
    counts: { success: 'runsSucceeded', failed: 'runsFailed', canceled: 'runsCanceled' },
    label: { name: 'state', values: ['success', 'failed', 'canceled'] },
    meaning: 'Workflow runs ended, by final state.',
  },
  waypost_schedule_lag_seconds: {
    kind: 'histogram',
    buckets: SECONDS,
    meaning:
      'Time from the scheduled time to the commit of its messages. A trigger that makes up for missed times counts from the first of them.',
  },
  waypost_claims_lost_total: {
    kind: 'counter',
    meaning:
      'Attempts whose outcome was discarded because the message had been claimed by another worker or no longer existed.',
  },
  waypost_spans_total: {
    kind: 'counter',
    label: { name: 'result', values: ['exported', 'dropped'] },
    meaning:
      'Trace spans exported to the collector, and spans dropped because the buffer was full or the export failed.',
  },
  waypost_in_flight: { kind: 'gauge', of: 'worker', meaning: 'Attempts in flight.' },
  waypost_in_flight_by_project: {
    kind: 'gauge',
    of: 'worker',
    label: { name: 'project', values: [] },
    meaning: 'Attempts in flight, for the 20 projects with the most. Projects without attempts are not included.',
  },
  waypost_in_flight_by_cell: {
    kind: 'gauge',
    of: 'worker',
    label: { name: 'cell', values: [] },
    meaning: 'Attempts in flight, by cell. Absent while there is only one cell.',
  },
  waypost_cell_away: {
    kind: 'gauge',
    of: 'process',
    label: { name: 'cell', values: [] },
    meaning:
      'Whether the worker failed to reach the cell when it last tried: 1 or 0. Absent while there is only one cell.',
  },
  waypost_workers: {
    kind: 'gauge',
    of: 'process',
    meaning:
      'Live workers: those of the process or, on PostgreSQL, all on the database, as of the latest heartbeat of the first worker.',
  },

  waypost_commit_duration_seconds: {
    kind: 'histogram',
    buckets: SECONDS,
    meaning: 'Time to commit a batch of commands.',
  },
  waypost_commit_batch_commands: {
    kind: 'histogram',
    buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
    meaning: 'Commands per committed batch. Large batches mean a busy store.',
  },
  waypost_store_bytes: { kind: 'gauge', of: 'cell', meaning: 'Size of the database, without its write-ahead log.' },
  waypost_store_unused_bytes: {
    kind: 'gauge',
    of: 'cell',
    meaning: 'Bytes of the database that are free for new rows. Absent if the database does not report them.',
  },

  waypost_backlog_messages: {
    kind: 'gauge',
    of: 'cell',
    label: { name: 'state', values: ['scheduled', 'due', 'origin', 'flow', 'queue', 'project', 'active'] },
    meaning:
      'Unfinished messages, by what they wait for: their time (scheduled), a worker (due), their endpoint (origin), their flow-control key (flow), their queue, their project, or the end of an attempt (active).',
  },
  waypost_oldest_due_seconds: {
    kind: 'gauge',
    of: 'cell',
    meaning: 'Age of the oldest due message that no queue or flow-control key holds back; 0 if there is none.',
  },
  waypost_dlq_entries: { kind: 'gauge', of: 'cell', meaning: 'Messages and workflow runs in the DLQ.' },
  waypost_runs_active: { kind: 'gauge', of: 'cell', meaning: 'Workflow runs that have not ended.' },
  waypost_waiters: { kind: 'gauge', of: 'cell', meaning: "Workflow runs' open waits for events." },
  waypost_sample_age_seconds: {
    kind: 'gauge',
    of: 'cell',
    meaning:
      'Age of the sampled values (backlog, DLQ, runs, database size). It grows while the store does not respond.',
  },

  waypost_event_loop_delay_max_seconds: {
    kind: 'gauge',
    of: 'process',
    meaning: 'Longest event-loop delay of any worker since the last scrape, accurate to a few hundredths of a second.',
  },
  waypost_event_loop_active_seconds_total: {
    kind: 'counter',
    meaning: "Time during which the workers' event loops were busy. Its rate is the load: 1 per fully busy worker.",
  },
  waypost_resident_memory_bytes: { kind: 'gauge', of: 'process', meaning: 'Resident memory of the process.' },
  waypost_heap_used_bytes: {
    kind: 'gauge',
    of: 'worker',
    meaning: 'JavaScript heap in use by the workers, including garbage that is not collected yet.',
  },
  waypost_cpu_seconds_total: { kind: 'counter', of: 'process', meaning: 'CPU time of the process, user and system.' },
} as const satisfies Record<string, Metric>;

export type MetricName = keyof typeof METRICS;

/** The metrics of one kind. */
export type NameOf<Kind extends Metric['kind']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never;
}[MetricName];

/** The label values of a metric; `undefined` if it has no label. */
export type LabelOf<Name extends MetricName> = (typeof METRICS)[Name] extends {
  label: { values: readonly (infer Value)[] };
}
  ? Value
  : undefined;

/** All rows, in order. */
export function listMetrics(): { name: MetricName; metric: Metric }[] {
  return Object.entries(METRICS).map(([name, metric]) => ({ name: name as MetricName, metric }));
}
