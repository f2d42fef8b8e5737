/** Statistics of a project: its unfinished and failed work, its counts by minute, and metrics for Prometheus. Our own addition. */
import { type Static, Type } from '@sinclair/typebox';
import type { Backlog, Failures } from '../../engine/lists/unfinished.ts';
import type { ExplainedBacklog } from '../../engine/messages/explain.ts';
import { BOUNDS_MS, emptyMinute, MINUTE_MS, type Minute, minuteOf } from '../../engine/minutes/counts.ts';
import { cutToPage } from '../messages/filters.ts';
import { CURSOR, into, readQuery, time, wholeNumber } from '../requests/parameters.ts';
import { type ApiResponse, jsonArrayOf, jsonObjectResponse, jsonResponse } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { CellName, Count, exactly, Ms, Text, UnfinishedReasonSchema } from '../schemas.ts';

const CountedSchema = exactly(
  {
    count: Count,
    isAtLeast: Type.Boolean({ description: 'whether counting stopped at this number, so there may be more' }),
  },
  'Counted',
);
const waitListMembers = { reason: UnfinishedReasonSchema, waiting: CountedSchema, due: Ms };
const Duration = Type.Integer({ minimum: 0, description: 'milliseconds' });

const OverviewSchema = exactly(
  {
    unfinished: CountedSchema,
    waiting: CountedSchema,
    active: Count,
    held: CountedSchema,
    oldestDue: Type.Optional(Ms),
    heldBack: exactly({
      project: Type.Optional(exactly(waitListMembers)),
      origins: Type.Array(
        exactly({
          origin: Text,
          ...waitListMembers,
          isHeldBack: Type.Boolean({
            description: 'whether its concurrency is reduced because too many attempts ended without a response',
          }),
        }),
      ),
      queues: Type.Array(
        exactly({
          queueName: Text,
          paused: Type.Boolean(),
          parallelism: Type.Integer({ minimum: 1 }),
          ...waitListMembers,
        }),
      ),
      flowControlKeys: Type.Array(exactly({ flowControlKey: Text, ...waitListMembers })),
      isPartial: Type.Boolean({ description: 'whether some are omitted' }),
    }),
    dlq: exactly({ messages: CountedSchema, workflowRuns: CountedSchema }),
    failures: exactly({
      lookedAt: Type.Integer({ minimum: 0, description: 'number of latest DLQ entries that were counted by cause' }),
      causes: Type.Array(
        exactly({
          responseStatus: Type.Integer({ minimum: 0, description: '0 without a response' }),
          error: Type.Optional(
            Type.String({ minLength: 1, description: 'the kind of failure, if there was no response' }),
          ),
          count: Type.Integer({ minimum: 1 }),
          workflowRuns: Type.Integer({ minimum: 0, description: 'the number of workflow runs among them' }),
          last: Ms,
        }),
      ),
    }),
    retention: exactly({ logs: Duration, dlq: Duration }),
    cell: CellName,
    storage: Type.Optional(
      exactly(
        {
          bytes: Type.Integer({ minimum: 0, description: 'size of the whole database' }),
          unusedBytes: Type.Optional(Type.Integer({ minimum: 0, description: 'the part that is free for new data' })),
        },
        'Storage',
      ),
    ),
  },
  'Overview',
);

export function overviewRoutes({ engine, tokens }: Services): Route[] {
  async function overview({ projectId }: Call): Promise<ApiResponse> {
    const [backlog, failures, { isShared, ...storage }] = await Promise.all([
      engine.readBacklog(projectId),
      engine.storeOf(projectId).backlog.readFailures(),
      engine.storeOf(projectId).backlog.readStorage(),
    ]);
    // The size of a shared database would tell about other projects. Without secret tokens there is nothing to hide.
    const isSecret = isShared && tokens !== undefined;
    const { logsMs, dlqMs } = engine.retention;
    return jsonResponse(200, {
      ...backlogView(backlog),
      ...failuresView(failures),
      retention: { logs: logsMs, dlq: dlqMs },
      cell: engine.cellOf?.(projectId),
      storage: isSecret ? undefined : storage,
    });
  }

  return [
    {
      ...row('read', 'GET', '/v2/waypost/overview', 'getOverview'),
      summary: 'Summarizes unfinished work, what delays it, and the causes of the latest failures.',
      responses: { 200: OverviewSchema },
      handle: overview,
    },
  ];
}

function backlogView({ active, waiting, held, project, ...backlog }: ExplainedBacklog) {
  return {
    unfinished: { count: active + waiting.count + held.count, isAtLeast: waiting.isAtLeast || held.isAtLeast },
    waiting,
    active,
    held,
    oldestDue: backlog.oldestDueAtMs,
    heldBack: {
      project: project && { reason: 'parallelism', waiting: project.waiting, due: project.firstDueAtMs },
      origins: backlog.origins.map(({ firstDueAtMs: due, ...origin }) => ({ ...origin, due })),
      queues: backlog.queues.map(({ queueName, isPaused: paused, parallelism, reason, waiting, firstDueAtMs: due }) => {
        return { queueName, paused, parallelism, reason, waiting, due };
      }),
      flowControlKeys: backlog.keys.map(({ key: { key: flowControlKey }, reason, waiting, firstDueAtMs: due }) => {
        return { flowControlKey, reason, waiting, due };
      }),
      isPartial: backlog.isPartial,
    },
  };
}

function failuresView({ messages, runs, lookedAt, causes }: Failures) {
  return {
    dlq: { messages, workflowRuns: runs },
    failures: {
      lookedAt,
      causes: causes.map(({ runs: workflowRuns, lastAtMs: last, ...cause }) => ({ ...cause, workflowRuns, last })),
    },
  };
}

/** Maximum number of minutes on a page: one day. */
const MINUTES_MAX = 1_440;

const HOUR_MS = 3_600_000;

const MINUTES_QUERY = [
  into(
    'fromMs',
    time('fromDate', 'From the minute of this Unix time in milliseconds; by default one hour before toDate.'),
  ),
  into('toMs', time('toDate', 'Up to the minute of this Unix time in milliseconds; by default now.')),
  CURSOR,
];

const Histogram = (description: string) =>
  Type.Array(Count, { minItems: BOUNDS_MS.length + 1, maxItems: BOUNDS_MS.length + 1, description });

const MinuteSchema = exactly(
  {
    time: Type.Integer({ ...Ms, description: 'start of the minute, Unix time in milliseconds' }),
    accepted: Type.Integer({ ...Count, description: 'new messages: published, scheduled, callbacks, steps of runs' }),
    attempts: Type.Integer({ ...Count, description: 'delivered and failedAttempts together' }),
    delivered: Count,
    failedAttempts: Count,
    dead: Type.Integer({ ...Count, description: 'messages that became dead' }),
    runsStarted: Count,
    runsSucceeded: Count,
    runsFailed: Count,
    runsCanceled: Count,
    latency: Histogram('number of attempts by duration, for each bucket'),
    lag: Histogram('number of messages by the delay of their first attempt after they were due, for each bucket'),
  },
  'Minute',
);

export const MinutesSchema = exactly({
  bounds: Type.Array(Count, {
    description: 'inclusive upper bounds of the buckets in milliseconds; the last bucket has none',
  }),
  minutes: Type.Array(MinuteSchema, { description: 'minutes with activity, oldest first' }),
  cursor: Type.Optional(Text),
});

export function minuteRoutes({ engine, clock, endOfTurn }: Services): Route[] {
  async function list({ projectId, rawQuery }: Call): Promise<ApiResponse> {
    const { toMs = clock.nowMs(), fromMs = Math.max(0, toMs - HOUR_MS), cursor } = readQuery(rawQuery, MINUTES_QUERY);
    const first = cursor === undefined ? minuteOf(fromMs) : wholeNumber('cursor', cursor) + MINUTE_MS;
    const page = { fromMs: first, toMs, count: MINUTES_MAX + 1 };
    const rows = await engine.storeOf(projectId).minutes.listMinutes(page);
    const { items, cursor: next } = cutToPage(rows, MINUTES_MAX, ({ atMs }) => String(atMs));
    const minutes = await jsonArrayOf(items, minuteView, { clock, endOfTurn });
    return jsonObjectResponse({ bounds: JSON.stringify(BOUNDS_MS), minutes, cursor: JSON.stringify(next) });
  }

  return [
    {
      ...row('read', 'GET', '/v2/waypost/minutes', 'listMinutes'),
      summary: 'Counts accepted, attempted and delivered messages per minute, with their latencies.',
      takes: { query: MINUTES_QUERY },
      responses: { 200: MinutesSchema },
      handle: list,
    },
  ];
}

function minuteView({ atMs, ...counts }: Minute): Static<typeof MinuteSchema> {
  return { time: atMs, attempts: counts.delivered + counts.failedAttempts, ...counts };
}

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Workers save their counts up to ten seconds later, so a minute that has just ended is not complete. */
const COMPLETE_AFTER_MS = 15_000;

interface ProjectNumbers {
  backlog: Pick<Backlog, 'active' | 'waiting' | 'held' | 'oldestDueAtMs'>;
  failures: Pick<Failures, 'messages' | 'runs'>;
  /** The last complete minute. */
  minute: Minute;
  nowMs: number;
}

interface ProjectMetric {
  readonly name: string;
  readonly label?: string;
  readonly meaning: string;
  /** Returns the samples by the value of the metric's label; `''` for a metric without a label. */
  readonly read: (numbers: ProjectNumbers) => Readonly<Record<string, number>>;
}

/** All metrics are gauges: each request may reach another worker, so counters of one worker would go up and down. */
export const PROJECT_METRICS: readonly ProjectMetric[] = [
  {
    name: 'waypost_project_messages',
    label: 'state',
    meaning:
      'Unfinished messages: before their time (waiting), being attempted (active), or due and not attempted (held).',
    read: ({ backlog: { waiting, active, held } }) => ({ waiting: waiting.count, active, held: held.count }),
  },
  {
    name: 'waypost_project_oldest_due_seconds',
    meaning: 'Age of the oldest due message that is not being attempted, among the messages read; 0 if there is none.',
    read: ({ backlog: { oldestDueAtMs }, nowMs }) => ({
      '': oldestDueAtMs === undefined ? 0 : Math.max(0, nowMs - oldestDueAtMs) / 1_000,
    }),
  },
  {
    name: 'waypost_project_dlq_entries',
    label: 'kind',
    meaning: 'Messages and workflow runs in the DLQ.',
    read: ({ failures: { messages, runs } }) => ({ message: messages.count, run: runs.count }),
  },
  {
    name: 'waypost_project_last_minute_messages',
    label: 'result',
    meaning: 'Messages accepted, delivered and dead, and failed attempts, in the last complete minute.',
    read: ({ minute: { accepted, delivered, dead, failedAttempts } }) => ({
      ...{ accepted, delivered, dead, attempt_failed: failedAttempts },
    }),
  },
  {
    name: 'waypost_project_last_minute_runs',
    label: 'state',
    meaning: 'Workflow runs started and ended in the last complete minute.',
    read: ({ minute: { runsStarted, runsSucceeded, runsFailed, runsCanceled } }) => ({
      ...{ started: runsStarted, success: runsSucceeded, failed: runsFailed, canceled: runsCanceled },
    }),
  },
];

export function projectMetricRoutes({ engine, clock }: Services): Route[] {
  async function metrics({ projectId }: Call): Promise<ApiResponse> {
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
      summary: 'Reads the metrics of the project in the text format of Prometheus.',
      responses: { 200: Type.String({ contentMediaType: 'text/plain' }) },
      handle: metrics,
    },
  ];
}

/** The metrics as text. No name or value of a label has characters that must be escaped. */
function exposition(numbers: ProjectNumbers): string {
  return PROJECT_METRICS.map(({ name, label, meaning, read }) => {
    const samples = Object.entries(read(numbers)).map(
      ([value, number]) => `${name}${label ? `{${label}="${value}"}` : ''} ${number}\n`,
    );
    return `# HELP ${name} ${meaning}\n# TYPE ${name} gauge\n${samples.join('')}`;
  }).join('');
}
