/** Shows runs: their steps, their events, and why one does not continue (contract W 17.3, 18). */
import { Type } from '@sinclair/typebox';
import { ApiError } from '../protocol/errors.ts';
import { type Answer, answer } from './answer.ts';
import { invalidParameter, type Parameter, parameter, readQuery, singleValue } from './parameters.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { EVENTS_QUERY, RUNS_QUERY, readEventsQuery, readRunsQuery } from './run-log-filters.ts';
import { RunEventsSchema, RunExplanationSchema, RunListSchema } from './run-log-schemas.ts';
import { runEventView, runExplanationView, runLogView } from './run-log-views.ts';

const GROUP_BY = parameter(
  'groupBy',
  'workflowRunId for runs with their steps; without it the events themselves.',
  Type.Literal('workflowRunId'),
  (given) => {
    const text = singleValue('groupBy', given);
    if (text === 'workflowRunId') return text;
    throw invalidParameter('groupBy', 'workflowRunId is needed, or nothing');
  },
);

/** Each name once, since both views share most filters. */
const EITHER_QUERY: readonly Parameter[] = [
  GROUP_BY,
  ...RUNS_QUERY.filter(({ name }) => !EVENTS_QUERY.some((other) => other.name === name)),
  ...EVENTS_QUERY,
];

export function runLogRoutes({ engine }: Services): Route[] {
  async function events({ projectId, rawQuery }: Call): Promise<Answer> {
    const { filter, page } = readEventsQuery(rawQuery);
    const { items, cursor } = await engine.storeOf(projectId).runLogs.listRunEvents({ filter, page });
    return answer(200, { cursor, events: items.map(runEventView) });
  }

  async function runs({ projectId, rawQuery }: Call): Promise<Answer> {
    const { filter, page, bodyBytesMax } = readRunsQuery(rawQuery);
    const { items, cursor } = await engine.listRuns(projectId, filter, page, bodyBytesMax);
    return answer(200, { cursor, runs: items.map((log) => runLogView(log, bodyBytesMax)) });
  }

  function either(call: Call): Promise<Answer> {
    return readQuery(call.rawQuery, [GROUP_BY]).groupBy === undefined ? events(call) : runs(call);
  }

  async function explain({ projectId, id }: Call): Promise<Answer> {
    const explanation = await engine.explainRun(projectId, id);
    if (!explanation) throw new ApiError('not_found', `workflow run ${id} not found`);
    return answer(200, { ...runExplanationView(explanation), cell: engine.cellOf?.(projectId) });
  }

  return [
    {
      ...row('read', 'GET', '/v2/workflows/logs', 'listWorkflowRuns'),
      isLong: true,
      summary: 'Lists workflow runs with their steps, newest first.',
      takes: { query: RUNS_QUERY },
      answers: { 200: RunListSchema },
      handle: runs,
    },
    {
      ...row('read', 'GET', '/v2/workflows/messageLogs', 'listWorkflowMessageLogs'),
      isLong: true,
      summary: 'Lists what happened to workflow runs and to their messages, newest first.',
      takes: { query: EVENTS_QUERY },
      answers: { 200: RunEventsSchema },
      handle: events,
    },
    {
      ...row('read', 'GET', '/v2/workflows/events', 'listWorkflowEvents'),
      isLong: true,
      summary: 'Lists workflow runs with their steps, or what happened to them, newest first.',
      takes: { query: EITHER_QUERY },
      answers: { 200: Type.Union([RunListSchema, RunEventsSchema]) },
      handle: either,
    },
    {
      ...row('read', 'GET', '/v2/workflows/runs/:workflowRunId/explain', 'explainWorkflowRun'),
      summary: 'Says why a workflow run does not go on, or how it ended.',
      answers: { 200: RunExplanationSchema },
      handle: explain,
    },
  ];
}
