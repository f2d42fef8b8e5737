/** Checks that every parameter in the interface document has an effect on the server or its response. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Engine } from '../../src/engine/commands.ts';
import { systemClock } from '../../src/system/system.ts';
import { openWorld, type World } from './support/world.ts';

interface Schema {
  type?: string;
  items?: Schema;
  anyOf?: Schema[];
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  examples?: unknown[];
  $ref?: string;
}

interface Parameter {
  name: string;
  in: string;
  schema: Schema;
  example?: unknown;
}

interface Operation {
  operationId: string;
  method: string;
  path: string;
  parameters?: Parameter[];
}

let world: World;
/** What the interface has asked the engine and the store for, with all that it said. */
let asked: string[] = [];

beforeAll(async () => {
  world = await openWorld({}, { between: (engine) => recorded(engine, '') as Engine });
});
afterAll(() => world.close());

function recorded(subject: object, path: string): object {
  return new Proxy(subject, {
    get(_, name) {
      const value: unknown = Reflect.get(subject, name);
      if (typeof value === 'object' && value !== null) return recorded(value, `${path}.${String(name)}`);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        asked.push(`${path}.${String(name)} ${textOf(args)}`);
        const result: unknown = value.apply(subject, args);
        return name === 'storeOf' ? recorded(result as object, 'store') : result;
      };
    },
  });
}

/** Without what differs from request to request. */
function textOf(args: unknown[]): string {
  return JSON.stringify(args, (name, value) => (name === 'nowMs' || isRecent(value) ? undefined : value));
}

/** Times that follow from the moment of the request. */
function isRecent(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value - systemClock.nowMs()) < 60_000;
}

/** What is needed beside a parameter so that it has a meaning. */
const BESIDE: readonly [RegExp, Record<string, string>][] = [
  [/^Upstash-Failure-Callback-/, { 'Upstash-Failure-Callback': 'https://told.example/' }],
  [/^Upstash-Callback-/, { 'Upstash-Callback': 'https://told.example/' }],
  [/^Upstash-Flow-Control-Key$/, { 'Upstash-Flow-Control-Value': 'rate=1' }],
  [/^Upstash-Flow-Control-Value$/, { 'Upstash-Flow-Control-Key': 'beside' }],
  [/^Upstash-Workflow-(RunId|Unknown-Sdk)$/, { 'Upstash-Workflow-Init': 'true' }],
  [/^Upstash-Feature-Set$/, { 'Upstash-Workflow-Init': 'true', 'Upstash-Workflow-Trigger-By-Sdk': 'true' }],
  [/^(workflowRuns|trimBody)$/, { groupBy: 'workflowRunId' }],
  [
    /^Upstash-Workflow-(CallType|CreatedAt)$/,
    { 'Upstash-Workflow-Init': 'false', 'Upstash-Workflow-RunId': 'a', 'Upstash-Callback': 'https://told.example/' },
  ],
  [/^(workflow(Url|RunId|CreatedAt)|failure(Function|Callback)State)$/, { source: 'workflow' }],
  [/^(Upstash-(Schedule-Id|Queue-Name)|Waypost-Schedule-.*)$/, { 'Upstash-Cron': '@daily' }],
  [/^period$/, { rate: '5' }],
  [/^workflowUrlExactMatch$/, { workflowUrl: 'https://ok.example/' }],
];

/** What an operation cannot do without. */
const NEEDED_BY: Readonly<Record<string, Record<string, string>>> = {
  createSchedule: { 'Upstash-Cron': '@daily' },
  waitForEvent: { 'Upstash-Workflow-Init': 'false', 'Upstash-Workflow-RunId': 'a' },
};

/** Values that the document does not give away, or where its example is what happens without the parameter. */
const VALUES: Readonly<Record<string, string>> = {
  source: 'workflow',
  workflowRuns: 'a@1',
  'Upstash-Workflow-CallType': 'toCallback',
};

/** Their headers are read only when something has failed. */
const ON_WHAT_FAILED: ReadonlySet<string> = new Set([
  ...['retryDlqMessages', 'resumeWorkflowRuns', 'resumeWorkflowRun', 'restartWorkflowRuns', 'restartWorkflowRun'],
]);

const STEP = { stepId: 1, stepType: 'Wait', stepName: 'w', concurrent: 1 };

/** Operations that read their parameters only when the body has the right shape. */
const BODIES: Readonly<Record<string, unknown>> = {
  waitForEvent: { url: 'https://slow.example/', timeout: '1h', timeoutUrl: 'https://slow.example/', step: STEP },
};

/** A value that is not the default; the document says what is valid. */
function exampleOf({ name, schema, example }: Omit<Parameter, 'in'>): string {
  const known = VALUES[name];
  if (known !== undefined) return known;
  if (name.endsWith('-Method')) return 'PUT'; // a request with POST is forwarded as one
  const { items, anyOf, enum: words, default: usual } = schema;
  if (items) return exampleOf({ name, schema: items, example });
  const choices = [example, ...(schema.examples ?? []), ...(words ?? []), ...(anyOf ?? []).map((each) => each.const)];
  const other = choices.find((choice) => choice !== undefined && choice !== usual);
  if (other !== undefined) return Array.isArray(other) ? String(other[0]) : String(other);
  if (schema.type === 'integer') return '7';
  return schema.type === 'boolean' ? 'true' : 'a';
}

/** What a request comes to: what was asked of the engine and the store, how it was refused, and what it ignored. */
async function outcomeOf({ method, path, operationId }: Operation, given: readonly (readonly [Parameter, string])[]) {
  asked = [];
  const query = given.filter(([{ in: place }]) => place === 'query');
  const headers = given
    .filter(([{ in: place }]) => place === 'header')
    .map(([{ name }, value]) => [name, value] as const);
  const target = path.replace(/\{(\w+)\}/g, (_, name) => (name === 'destination' ? 'https://slow.example/' : 'a'));
  const search = new URLSearchParams(query.map(([{ name }, value]): [string, string] => [name, value])).toString();
  const body = BODIES[operationId];
  const {
    status,
    text,
    headers: responseHeaders,
  } = await world.ask({
    method: method.toUpperCase() as 'GET',
    url: search === '' ? target : `${target}?${search}`,
    headers: { 'x-other': 'forwarded on request', ...Object.fromEntries(headers) },
    ...(body !== undefined && { payload: JSON.stringify(body) }),
  });
  return { asked, refusal: status < 400 ? '' : `${status} ${text}`, ignored: responseHeaders['waypost-ignored'] };
}

it('every documented parameter changes something', async () => {
  const { json: document } = await world.ask({ method: 'GET', url: '/openapi.json' });
  const operations = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method })),
  );
  const without: string[] = [];
  let tried = 0;
  for (const operation of operations) {
    /** Outcomes without the parameter, by what is given beside it. */
    const outcomes = new Map<string, Awaited<ReturnType<typeof outcomeOf>>>();
    const parameters = (operation.parameters ?? []).filter(
      ({ in: place }) => place === 'query' || (place === 'header' && !ON_WHAT_FAILED.has(operation.operationId)),
    );
    for (const parameter of parameters) {
      const resolved = { ...parameter, schema: schemaOf(document, parameter.schema) };
      const needed = BESIDE.find(([name]) => name.test(parameter.name))?.[1];
      const beside = Object.entries({ ...needed, ...NEEDED_BY[operation.operationId] }).filter(
        ([name]) => name !== parameter.name,
      );
      const base = beside.flatMap(([name, value]) => {
        const found = parameters.find((each) => each.name === name);
        return found ? [[found, value] as const] : [];
      });
      const given = JSON.stringify(beside);
      const before = outcomes.get(given) ?? (await outcomeOf(operation, base));
      outcomes.set(given, before);
      const after = await outcomeOf(operation, [...base, [resolved, exampleOf(resolved)]]);
      tried += 1;
      if (JSON.stringify(before) === JSON.stringify(after)) without.push(`${operation.operationId} ${parameter.name}`);
    }
  }
  expect(tried).toBeGreaterThan(300);
  expect(without).toEqual([]);
});

function schemaOf(document: { components: { schemas: Record<string, Schema> } }, schema: Schema): Schema {
  const named = schema.$ref?.split('/').at(-1);
  return named === undefined ? schema : (document.components.schemas[named] ?? schema);
}
