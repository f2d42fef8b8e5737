/** Lists the log entries of messages (contract M 18.2, 22.39), lists runs with their steps or events, and explains the state of a run (contract W 17.3, 18). */
import { Type } from '@sinclair/typebox';
import { ApiError } from '../../protocol/errors.ts';
import { PAGE_BODY_BYTES_MAX } from '../limits.ts';
import { invalidParameter, type Parameter, parameter, readQuery, singleValue } from '../requests/parameters.ts';
import { type ApiResponse, jsonArrayOf, jsonObjectResponse, jsonResponse } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { EVENTS_QUERY, RUNS_QUERY, readEventsQuery, readRunsQuery } from '../runs/run-filters.ts';
import {
  RunEventsSchema,
  RunExplanationSchema,
  RunListSchema,
  runEventView,
  runExplanationView,
  runLogView,
} from '../runs/run-log-views.ts';
import { EventsSchema, LogsSchema } from '../schemas.ts';
import { messageFilters, readSelection } from './filters.ts';
import { logEntryView } from './views.ts';

const COUNT_MAX = 1000;

export function logRoutes({ engine, logsPageDefault, clock, endOfTurn }: Services): Route[] {
  const countDefault = Math.min(logsPageDefault, COUNT_MAX);
  const filters = messageFilters('logs', { countDefault, countMax: COUNT_MAX });

  /** Returns both members as JSON text. The last page has no cursor. */
  async function list({ projectId, rawQuery }: Call, bytesMax = PAGE_BODY_BYTES_MAX) {
    const { ids, filter, page: request } = readSelection(filters, countDefault, rawQuery);
    const args = { filter: ids ? { messageId: ids } : filter, page: { ...request, bytesMax } };
    const page = await engine.storeOf(projectId).logs.listLogs(args);
    const events = await jsonArrayOf(page.items, logEntryView, { clock, endOfTurn });
    return { cursor: JSON.stringify(page.cursor), events };
  }

  async function events(call: Call): Promise<ApiResponse> {
    return jsonObjectResponse(await list(call));
  }

  /**
   * The response has the entries as `logs` and as `events`, since clients of this path read one or the other. The entries
   * are serialized once but sent twice, so a page has at most half of `PAGE_BODY_BYTES_MAX`.
   */
  async function logs(call: Call): Promise<ApiResponse> {
    const { cursor, events } = await list(call, PAGE_BODY_BYTES_MAX / 2);
    return jsonObjectResponse({ cursor, logs: events, events });
  }

  const takes = { filters };
  return [
    {
      ...row('read', 'GET', '/v2/logs', 'listLogs'),
      isLong: true,
      summary: 'Lists log entries, newest first.',
      takes,
      responses: { 200: LogsSchema },
      handle: logs,
    },
    {
      ...row('read', 'GET', '/v2/events', 'listEvents'),
      isLong: true,
      summary: 'Lists log entries, newest first, in the shape that the client libraries read.',
      takes,
      responses: { 200: EventsSchema },
      handle: events,
    },
  ];
}

const GROUP_BY = parameter(
  'groupBy',
  'workflowRunId lists runs with their steps; without it, events are listed.',
  Type.Literal('workflowRunId'),
  (given) => {
    const text = singleValue('groupBy', given);
    if (text === 'workflowRunId') return text;
    throw invalidParameter('groupBy', 'workflowRunId is needed, or nothing');
  },
);

/** The parameters of both views, which share most filters. Each name occurs once. */
const RUNS_OR_EVENTS_QUERY: readonly Parameter[] = [
  GROUP_BY,
  ...RUNS_QUERY.filter(({ name }) => !EVENTS_QUERY.some((other) => other.name === name)),
  ...EVENTS_QUERY,
];

export function runLogRoutes({ engine }: Services): Route[] {
  async function events({ projectId, rawQuery }: Call): Promise<ApiResponse> {
    const { filter, page } = readEventsQuery(rawQuery);
    const { items, cursor } = await engine.storeOf(projectId).runLogs.listRunEvents({ filter, page });
    return jsonResponse(200, { cursor, events: items.map(runEventView) });
  }

  async function runs({ projectId, rawQuery }: Call): Promise<ApiResponse> {
    const { filter, page, bodyBytesMax } = readRunsQuery(rawQuery);
    const { items, cursor } = await engine.listRuns(projectId, filter, page, bodyBytesMax);
    return jsonResponse(200, { cursor, runs: items.map((log) => runLogView(log, bodyBytesMax)) });
  }

  function runsOrEvents(call: Call): Promise<ApiResponse> {
    return readQuery(call.rawQuery, [GROUP_BY]).groupBy === undefined ? events(call) : runs(call);
  }

  async function explain({ projectId, id }: Call): Promise<ApiResponse> {
    const explanation = await engine.explainRun(projectId, id);
    if (!explanation) throw new ApiError('not_found', `workflow run ${id} not found`);
    return jsonResponse(200, { ...runExplanationView(explanation), cell: engine.cellOf?.(projectId) });
  }

  return [
    {
      ...row('read', 'GET', '/v2/workflows/logs', 'listWorkflowRuns'),
      isLong: true,
      summary: 'Lists workflow runs with their steps, newest first.',
      takes: { query: RUNS_QUERY },
      responses: { 200: RunListSchema },
      handle: runs,
    },
    {
      ...row('read', 'GET', '/v2/workflows/messageLogs', 'listWorkflowMessageLogs'),
      isLong: true,
      summary: 'Lists the events of workflow runs and of their messages, newest first.',
      takes: { query: EVENTS_QUERY },
      responses: { 200: RunEventsSchema },
      handle: events,
    },
    {
      ...row('read', 'GET', '/v2/workflows/events', 'listWorkflowEvents'),
      isLong: true,
      summary: 'Lists workflow runs with their steps, or their events, newest first.',
      takes: { query: RUNS_OR_EVENTS_QUERY },
      responses: { 200: Type.Union([RunListSchema, RunEventsSchema]) },
      handle: runsOrEvents,
    },
    {
      ...row('read', 'GET', '/v2/workflows/runs/:workflowRunId/explain', 'explainWorkflowRun'),
      summary: 'Explains why a workflow run waits, or how it ended.',
      responses: { 200: RunExplanationSchema },
      handle: explain,
    },
  ];
}
