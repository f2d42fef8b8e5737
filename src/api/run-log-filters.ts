/** Which runs, or which of their events, does a list mean (contract W 17.3)? The interface document is made of the same table. */
import { type TSchema, Type } from '@sinclair/typebox';
import type { LogState, RunLogState } from '../engine/model.ts';
import type { PageRequest } from '../engine/page.ts';
import type { RunAttributes, RunEventFilter, RunFilter } from '../engine/run-log-store.ts';
import type { RunState } from '../workflow/model.ts';
import type { StepState } from '../workflow/records.ts';
import { FILTER_VALUES_MAX } from './limits.ts';
import { countOf, invalidParameter, type Parameters, readQuery, textOf, wholeNumber } from './parameters.ts';
import type { QueryParameter } from './takes.ts';

/** Runs on one page of the grouped view. */
const RUNS_MAX = 10;
/** Events on one page of the flat view. */
const EVENTS_MAX = 1000;

const RUN_STATES = ['RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED'] as const satisfies RunState[];
const STEP_STATES = [
  'STEP_PROGRESS',
  'STEP_RETRY',
  'STEP_SUCCESS',
  'STEP_FAILED',
  'STEP_CANCELED',
] as const satisfies StepState[];

type EventState = LogState | RunLogState;

const EVENT_STATE_NAMES = [
  ...RUN_STATES,
  ...(['WAITER_ADDED', 'INVOKED', 'CREATED', 'ACTIVE', 'RETRY', 'ERROR'] as const),
  ...(['DELIVERED', 'FAILED', 'CANCEL_REQUESTED', 'CANCELED'] as const),
];

/** What an event can be filtered by; two of them are spelled or grouped differently in events (contract W 19.2). */
const EVENT_STATES: ReadonlyMap<string, readonly EventState[]> = new Map<string, readonly EventState[]>([
  ...EVENT_STATE_NAMES.map((state): [string, EventState[]] => [state, [state]]),
  ['CANCELLED', ['CANCELED']],
  ['IN_PROGRESS', ['ACTIVE', 'RETRY', 'ERROR']],
]);

const Ms = Type.Integer({ minimum: 0 });
const several = (schema: TSchema): TSchema => Type.Array(schema, { maxItems: FILTER_VALUES_MAX });
const oneOf = (names: readonly string[]): TSchema => Type.Union(names.map((name) => Type.Literal(name)));

const ATTRIBUTES: readonly QueryParameter[] = [
  { name: 'workflowRunId', meaning: 'All runs that ever had this id.', schema: several(Type.String()) },
  { name: 'workflowCreatedAt', meaning: 'When the run was created, exactly.', schema: Ms },
  { name: 'workflowUrl', meaning: 'Where the run is served, the whole URL.', schema: several(Type.String()) },
  { name: 'messageId', meaning: 'A message of the run.', schema: several(Type.String()) },
  { name: 'label', meaning: 'One of the labels of the run.', schema: several(Type.String()) },
  { name: 'flowControlKey', meaning: 'Flow-control key of the run.', schema: several(Type.String()) },
  { name: 'callerIp', meaning: 'Address that started the run.', schema: several(Type.String()) },
  { name: 'host', meaning: 'Host of the URL of the run.', schema: several(Type.String()) },
  { name: 'path', meaning: 'Path of the URL of the run.', schema: several(Type.String()) },
];

const CURSOR: QueryParameter = {
  name: 'cursor',
  meaning: 'Where the page before ended; take it from its answer.',
  schema: Type.String(),
};

function countShape(max: number): QueryParameter {
  const schema = Type.Integer({ minimum: 1, default: max });
  return { name: 'count', meaning: `How many at most. More than ${max} is lowered to it.`, schema };
}

export const RUNS_QUERY: readonly QueryParameter[] = [
  ...ATTRIBUTES,
  {
    name: 'workflowRuns',
    meaning: 'Exactly these runs, each as id@createdAt; all other filters are ignored then.',
    schema: several(Type.String()),
  },
  {
    name: 'state',
    meaning: 'State of the run, or of one of its steps.',
    schema: several(oneOf([...RUN_STATES, ...STEP_STATES])),
  },
  { name: 'fromDate', meaning: 'Runs created not before this Unix time in milliseconds.', schema: Ms },
  { name: 'toDate', meaning: 'Runs created not after this Unix time in milliseconds.', schema: Ms },
  {
    name: 'trimBody',
    meaning: 'Bytes of each body that are shown, 0 for none of them; -1 for whole bodies.',
    schema: Type.Integer({ minimum: -1, default: -1 }),
  },
  countShape(RUNS_MAX),
  CURSOR,
];

export const EVENTS_QUERY: readonly QueryParameter[] = [
  ...ATTRIBUTES,
  {
    name: 'state',
    meaning: 'State that the event tells of; IN_PROGRESS is ACTIVE, RETRY and ERROR.',
    schema: several(oneOf([...EVENT_STATES.keys()])),
  },
  { name: 'fromDate', meaning: 'Not before this Unix time in milliseconds.', schema: Ms },
  { name: 'toDate', meaning: 'Not after this Unix time in milliseconds.', schema: Ms },
  countShape(EVENTS_MAX),
  CURSOR,
];

export interface RunsWanted {
  filter: RunFilter & { stepState?: StepState[] };
  page: PageRequest;
  /** Absent: whole bodies. */
  bodyBytesMax?: number;
}

/** Reads the query of the grouped view. Throws `ApiError` 400 that names the parameter. */
export function readRunsQuery(rawQuery: string): RunsWanted {
  const query = readQuery(rawQuery, RUNS_QUERY);
  const wanted: RunsWanted = { filter: {}, page: pageOf(query, RUNS_MAX) };
  const bodyBytesMax = trimOf(query);
  if (bodyBytesMax !== undefined) wanted.bodyBytesMax = bodyBytesMax;
  const runs = query.get('workflowRuns');
  if (runs && runs.values.length > 0) {
    wanted.filter.runs = limited('workflowRuns', runs.values).map(readRunName);
    return wanted;
  }
  const { filter } = wanted;
  readAttributes(query, filter);
  for (const url of filter.runUrl ?? []) {
    if (!/^https?:\/\//i.test(url)) throw invalidParameter('workflowUrl', 'a URL with http:// or https:// is needed');
  }
  const messageId = valuesOf(query, 'messageId');
  if (messageId) filter.messageId = messageId;
  readTimes(query, filter);
  const states = valuesOf(query, 'state');
  if (!states) return wanted;
  const runStates = RUN_STATES.filter((state) => states.includes(state));
  const stepStates = STEP_STATES.filter((state) => states.includes(state));
  if (runStates.length + stepStates.length < states.length) throw unknownState([...RUN_STATES, ...STEP_STATES]);
  if (runStates.length > 0) filter.state = runStates;
  if (stepStates.length > 0) filter.stepState = stepStates;
  return wanted;
}

/** Reads the query of the flat view. Throws `ApiError` 400 that names the parameter. */
export function readEventsQuery(rawQuery: string): { filter: RunEventFilter; page: PageRequest } {
  const query = readQuery(rawQuery, EVENTS_QUERY);
  const filter: RunEventFilter = {};
  readAttributes(query, filter);
  const messageId = valuesOf(query, 'messageId');
  if (messageId) filter.messageId = messageId;
  readTimes(query, filter);
  const states = valuesOf(query, 'state')?.flatMap((state) => {
    const known = EVENT_STATES.get(state);
    if (!known) throw unknownState([...EVENT_STATES.keys()]);
    return known;
  });
  if (states) filter.state = [...new Set(states)];
  return { filter, page: pageOf(query, EVENTS_MAX) };
}

function readAttributes(query: Parameters, into: RunAttributes): void {
  const rows = [
    ['workflowRunId', 'runId'],
    ['workflowUrl', 'runUrl'],
    ['label', 'label'],
    ['flowControlKey', 'flowControlKey'],
    ['callerIp', 'callerIp'],
    ['host', 'host'],
    ['path', 'path'],
  ] as const;
  for (const [name, member] of rows) {
    const values = valuesOf(query, name);
    if (values) into[member] = values;
  }
  const createdAt = msOf(query, 'workflowCreatedAt');
  if (createdAt !== undefined) into.runCreatedAtMs = createdAt;
}

function readTimes(query: Parameters, into: { fromMs?: number; toMs?: number }): void {
  const fromMs = msOf(query, 'fromDate');
  const toMs = msOf(query, 'toDate');
  if (fromMs !== undefined) into.fromMs = fromMs;
  if (toMs !== undefined) into.toMs = toMs;
}

/** A filter without a value is none. */
function valuesOf(query: Parameters, name: string): string[] | undefined {
  const given = query.get(name);
  return given && given.values.length > 0 ? limited(name, given.values) : undefined;
}

function limited(name: string, values: readonly string[]): string[] {
  const once = [...new Set(values)];
  if (once.length > FILTER_VALUES_MAX)
    throw invalidParameter(name, `at most ${FILTER_VALUES_MAX} values are possible, got ${once.length}`);
  return once;
}

function msOf(query: Parameters, name: string): number | undefined {
  const text = textOf(query, name);
  return text ? wholeNumber(name, text) : undefined;
}

function pageOf(query: Parameters, max: number): PageRequest {
  const count = Math.min(countOf(query, 'count') ?? max, max);
  const cursor = textOf(query, 'cursor');
  return { count, order: 'latestFirst', ...(cursor && { cursor }) };
}

function trimOf(query: Parameters): number | undefined {
  const text = textOf(query, 'trimBody');
  return text === undefined || text === '' || text === '-1' ? undefined : wholeNumber('trimBody', text);
}

/** An id may have an `@` in it, a time has none. */
function readRunName(text: string): { id: string; createdAtMs: number } {
  const at = text.lastIndexOf('@');
  if (at < 1) throw invalidParameter('workflowRuns', 'elements are id@createdAt');
  return { id: text.slice(0, at), createdAtMs: wholeNumber('workflowRuns', text.slice(at + 1)) };
}

function unknownState(names: readonly string[]) {
  return invalidParameter('state', `one of ${names.join(', ')} is needed`);
}
