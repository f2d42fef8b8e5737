/** How much is unfinished, what holds it back, and of what did the latest failures fail? Our own addition. */
import { Type } from '@sinclair/typebox';
import type { ExplainedBacklog } from '../engine/messages/explain.ts';
import type { Failures } from '../engine/unfinished.ts';
import { type Answer, answer } from './answer.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { CellName, Count, exactly, Ms, Text, UnfinishedReasonSchema } from './schemas.ts';

const CountedSchema = exactly(
  { count: Count, isAtLeast: Type.Boolean({ description: 'there may be more, which were not counted' }) },
  'Counted',
);
const line = { reason: UnfinishedReasonSchema, waiting: CountedSchema, due: Ms };
const Span = Type.Integer({ minimum: 0, description: 'milliseconds' });

const OverviewSchema = exactly(
  {
    unfinished: CountedSchema,
    waiting: CountedSchema,
    active: Count,
    held: CountedSchema,
    oldestDue: Type.Optional(Ms),
    heldBack: exactly({
      project: Type.Optional(exactly(line)),
      origins: Type.Array(
        exactly({
          origin: Text,
          ...line,
          isHeldBack: Type.Boolean({
            description: 'it may have only a few attempts at a time, since too many ended without an answer',
          }),
        }),
      ),
      queues: Type.Array(
        exactly({ queueName: Text, paused: Type.Boolean(), parallelism: Type.Integer({ minimum: 1 }), ...line }),
      ),
      flowControlKeys: Type.Array(exactly({ flowControlKey: Text, ...line })),
      isPartial: Type.Boolean({ description: 'there are more than these' }),
    }),
    dlq: exactly({ messages: CountedSchema, workflowRuns: CountedSchema }),
    failures: exactly({
      lookedAt: Type.Integer({ minimum: 0, description: 'the latest entries of the DLQ, which are counted by cause' }),
      causes: Type.Array(
        exactly({
          responseStatus: Type.Integer({ minimum: 0, description: '0 without an answer' }),
          error: Type.Optional(Type.String({ minLength: 1, description: 'the kind of failure, without an answer' })),
          count: Type.Integer({ minimum: 1 }),
          workflowRuns: Type.Integer({ minimum: 0, description: 'so many of them are workflow runs' }),
          last: Ms,
        }),
      ),
    }),
    retention: exactly({ logs: Span, dlq: Span }),
    cell: CellName,
    storage: Type.Optional(
      exactly(
        {
          bytes: Type.Integer({ minimum: 0, description: 'of the whole database' }),
          unusedBytes: Type.Optional(Type.Integer({ minimum: 0, description: 'of them, free for new data' })),
        },
        'Storage',
      ),
    ),
  },
  'Overview',
);

export function overviewRoutes({ engine, tokens }: Services): Route[] {
  async function overview({ projectId }: Call): Promise<Answer> {
    const [backlog, failures, { isShared, ...storage }] = await Promise.all([
      engine.readBacklog(projectId),
      engine.storeOf(projectId).backlog.readFailures(),
      engine.storeOf(projectId).backlog.readStorage(),
    ]);
    // A project learns nothing of others, unless all tokens are published.
    const isSecret = isShared && tokens !== undefined;
    const { logsMs, dlqMs } = engine.retention;
    return answer(200, {
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
      summary: 'Says how much is unfinished, what holds it back, and of what the latest failures failed.',
      answers: { 200: OverviewSchema },
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
