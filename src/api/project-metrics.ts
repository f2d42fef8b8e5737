/** A project's own numbers as Prometheus reads them. Those of the whole server are at another address (docs/metrics.md). */
import { Type } from '@sinclair/typebox';
import { emptyMinute, MINUTE_MS, type Minute, minuteOf } from '../engine/minutes/minute.ts';
import type { Backlog, Failures } from '../engine/unfinished.ts';
import type { Answer } from './answer.ts';
import { type Call, type Route, row, type Services } from './route.ts';

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Workers add what they count ten seconds later: a minute that has just ended is not complete. */
const COMPLETE_AFTER_MS = 15_000;

interface Known {
  backlog: Pick<Backlog, 'active' | 'waiting' | 'held' | 'oldestDueAtMs'>;
  failures: Pick<Failures, 'messages' | 'runs'>;
  /** The last one that is complete. */
  minute: Minute;
  nowMs: number;
}

interface ProjectMetric {
  readonly name: string;
  readonly label?: string;
  readonly meaning: string;
  /** By the values of the label; without one, under `''`. */
  readonly read: (known: Known) => Readonly<Record<string, number>>;
}

/** All are gauges, since any worker may be asked, and counters of one of them would go up and down. */
export const PROJECT_METRICS: readonly ProjectMetric[] = [
  {
    name: 'waypost_project_messages',
    label: 'state',
    meaning: 'Unfinished messages that wait for their time, are attempted, or are due and held back.',
    read: ({ backlog: { waiting, active, held } }) => ({ waiting: waiting.count, active, held: held.count }),
  },
  {
    name: 'waypost_project_oldest_due_seconds',
    meaning:
      'How long the oldest message has waited that is due and not attempted, as far as is looked; 0 if there is none.',
    read: ({ backlog: { oldestDueAtMs }, nowMs }) => ({
      '': oldestDueAtMs === undefined ? 0 : Math.max(0, nowMs - oldestDueAtMs) / 1_000,
    }),
  },
  {
    name: 'waypost_project_dlq_entries',
    label: 'kind',
    meaning: 'Entries of the DLQ.',
    read: ({ failures: { messages, runs } }) => ({ message: messages.count, run: runs.count }),
  },
  {
    name: 'waypost_project_last_minute_messages',
    label: 'result',
    meaning: 'Messages of the last whole minute: new, delivered, failed for good; and attempts that failed.',
    read: ({ minute: { accepted, delivered, dead, failedAttempts } }) => ({
      ...{ accepted, delivered, dead, attempt_failed: failedAttempts },
    }),
  },
  {
    name: 'waypost_project_last_minute_runs',
    label: 'state',
    meaning: 'Workflow runs that began or ended in the last whole minute.',
    read: ({ minute: { runsStarted, runsSucceeded, runsFailed, runsCanceled } }) => ({
      ...{ started: runsStarted, success: runsSucceeded, failed: runsFailed, canceled: runsCanceled },
    }),
  },
];

export function projectMetricRoutes({ engine, clock }: Services): Route[] {
  async function metrics({ projectId }: Call): Promise<Answer> {
    const nowMs = clock.nowMs();
    const atMs = minuteOf(nowMs - COMPLETE_AFTER_MS) - MINUTE_MS;
    const store = engine.storeOf(projectId);
    const [backlog, failures, [minute = emptyMinute(atMs)]] = await Promise.all([
      engine.readBacklog(projectId),
      store.backlog.readFailures(),
      store.minutes.listMinutes({ fromMs: atMs, toMs: atMs, count: 1 }),
    ]);
    const body = exposition({ backlog, failures, minute, nowMs });
    return { status: 200, json: '', content: { type: CONTENT_TYPE, body } };
  }

  return [
    {
      ...row('read', 'GET', '/v2/waypost/metrics', 'getMetrics'),
      summary: 'Tells how much of the project is unfinished, failed and done, in the text format of Prometheus.',
      answers: { 200: Type.String({ contentMediaType: 'text/plain' }) },
      handle: metrics,
    },
  ];
}

/** Neither names nor values of labels have characters that must be escaped. */
function exposition(known: Known): string {
  return PROJECT_METRICS.map(({ name, label, meaning, read }) => {
    const samples = Object.entries(read(known)).map(
      ([value, number]) => `${name}${label ? `{${label}="${value}"}` : ''} ${number}\n`,
    );
    return `# HELP ${name} ${meaning}\n# TYPE ${name} gauge\n${samples.join('')}`;
  }).join('');
}
