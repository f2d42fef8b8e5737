/**
 * Creates the items that routes name, in a project that others must not access. Each new kind of item needs a function in
 * `MAKERS` that creates it, and each new route with a JSON body needs an example body. Otherwise the isolation test fails
 * and names what is missing.
 */
import { expect } from 'vitest';
import type { Route } from '../../../src/api/route.ts';
import { TOKEN, type World } from './world.ts';

/** The ids or names of one project's items, by kind. */
export type Ids = Readonly<Record<string, string>>;

/** This text is in URLs, headers, bodies and labels of all items of the owner, but in no name or id. */
export const CANARY = 'canary3f9c';

type Maker = (world: World) => Promise<string>;

/** Words after `/v2/` that differ from the kind of item that the route names. */
const KINDS: Readonly<Record<string, string>> = { enqueue: 'queues' };

/** By the word after `/v2/`, in lower case: creates an item and returns its id or name. No item changes by itself. */
const MAKERS: Readonly<Record<string, Maker>> = {
  messages: (world) =>
    world.publish(`https://ok.example/${CANARY}`, {
      'upstash-delay': '1h',
      'upstash-label': CANARY,
      'upstash-forward-x-secret': CANARY,
    }),
  /** A deduplication id, which prevents a second message. Publishes name the id; no route does. */
  deduplication: async (world) => {
    await world.publish('https://ok.example/', { 'upstash-delay': '1h', 'upstash-deduplication-id': 'own-order' });
    return 'own-order';
  },
  dlq: (world) => world.bury(`https://fail.example/${CANARY}`),
  queues: async (world) => {
    const payload = CANARY;
    const reply = await world.ask({ method: 'POST', url: '/v2/enqueue/own-queue/https://ok.example/', payload });
    expect(reply.status, reply.text).toBe(200);
    await delivered(world, reply.json.messageId);
    return 'own-queue';
  },
  flowcontrol: async (world) => {
    const limits = { 'upstash-flow-control-key': 'own-key', 'upstash-flow-control-value': 'parallelism=3' };
    await world.publish(`https://ok.example/${CANARY}`, { 'upstash-delay': '1h', ...limits });
    return 'own-key';
  },
  topics: async (world) => {
    const endpoints = [{ url: `https://ok.example/${CANARY}`, name: CANARY }];
    await made(world, 'POST', '/v2/topics/own-group/endpoints', { endpoints });
    return 'own-group';
  },
  waiters: async (world) => {
    await begin(world, 'wfr_waiting');
    const step = { stepId: 1, stepName: CANARY, stepType: 'Wait', concurrent: 1 };
    const payload = JSON.stringify({ url: `https://ok.example/${CANARY}`, step });
    const headers = { 'upstash-workflow-init': 'false', 'upstash-workflow-runid': 'wfr_waiting' };
    const reply = await world.ask({ method: 'POST', url: '/v2/wait/own-event', headers, payload });
    expect(reply.status, reply.text).toBe(200);
    return 'own-event';
  },
  tokens: async (world) => {
    const payload = JSON.stringify({ scope: 'publish-only', name: CANARY });
    const reply = await world.ask({ method: 'POST', url: '/v2/waypost/tokens', payload });
    expect(reply.status, reply.text).toBe(201);
    return reply.json.tokenId;
  },
  schedules: async (world) => {
    const headers = {
      ...{ 'upstash-cron': '@yearly', 'upstash-schedule-id': 'own-schedule', 'upstash-queue-name': 'own-queue' },
      ...{ 'upstash-label': CANARY, 'upstash-forward-x-secret': CANARY },
    };
    const url = `/v2/schedules/https://ok.example/${CANARY}`;
    const reply = await world.ask({ method: 'POST', url, headers, payload: CANARY });
    expect(reply.status, reply.text).toBe(200);
    return 'own-schedule';
  },
  workflows: async (world) => {
    await world.publish(`https://ok.example/${CANARY}`, {
      ...{ 'upstash-workflow-init': 'true', 'upstash-workflow-runid': 'wfr_own-run' },
      ...{ 'upstash-workflow-url': `https://ok.example/${CANARY}`, 'upstash-delay': '1h' },
      ...{ 'upstash-label': CANARY, 'upstash-forward-x-secret': CANARY },
    });
    return 'wfr_own-run';
  },
  /** A run in the DLQ, whose failure callback has failed as well. */
  deadRuns: (world) => buryRun(world, 'wfr_own-dead', { retries: 0, state: 'CALLBACK_FAIL' }),
  /** A run in the DLQ whose failure callback will be retried. */
  tellingRuns: (world) => buryRun(world, 'wfr_own-telling', { retries: 3, state: 'CALLBACK_INPROGRESS' }),
};

/** The kind of item by parameter, for parameters whose kind does not follow from the word after `/v2/`. */
const KINDS_OF_PARAMETERS: Readonly<Record<string, string>> = {
  eventId: 'waiters',
  workflowRunId: 'workflows',
  messageId: 'messages',
  tokenId: 'tokens',
};

/** By route: a body that the route accepts, with the ids of items that the body must name. */
const BODIES: Readonly<Record<string, (ids: Ids) => unknown>> = {
  'POST /v2/batch': (ids) => [{ destination: ids['topics'] }],
  'POST /v2/batch/trigger': (ids) => [
    { destination: 'https://ok.example/', headers: { 'Upstash-Workflow-RunId': ids['workflows'] } },
  ],
  'POST /v2/topics/:name/endpoints': () => ({ endpoints: [{ url: 'https://ok.example/new' }] }),
  'DELETE /v2/topics/:name/endpoints': () => ({ endpoints: [{ url: `https://ok.example/${CANARY}` }] }),
  'POST /v2/queues': (ids) => ({ queueName: ids['queues'], parallelism: 2 }),
  'POST /v2/wait/:eventId': () => ({ url: 'https://ok.example/', step: { stepId: 2 } }),
  'POST /v2/waypost/signature/verify': () => ({ signature: 'x', body: '' }),
  'POST /v2/waypost/tokens': () => ({ scope: 'read-only' }),
  'POST /v2/waypost/messages/:messageId/replay': () => ({ queue: null }),
  'POST /v2/waypost/time/advance': () => ({ duration: '1d' }),
  'POST /v2/waypost/time/run-until-idle': () => ({ limit: '1d' }),
  'PATCH /v2/topics/:name': () => ({ headers: { 'Upstash-Retries': '1' } }),
};

/** By route: the query that the route needs, with the ids of items that the query must name. */
const QUERIES: Readonly<Record<string, (ids: Ids) => string>> = {
  'POST /v2/flowControl/:flowControlKey/pin': () => 'parallelism=1',
  'POST /v2/flowControl/:flowControlKey/unpin': () => 'parallelism=true',
  'POST /v2/schedules/*': () => 'upstash-cron=%40yearly',
  'POST /v2/wait/:eventId': (ids) => `upstash-workflow-init=false&upstash-workflow-runid=${ids['workflows']}`,
};

/** Creates one item of each kind for the owner of the full token. */
export async function furnish(world: World): Promise<Ids> {
  const ids: Record<string, string> = {};
  for (const [word, make] of Object.entries(MAKERS)) ids[word] = await make(world);
  return ids;
}

/** The path of a route with `ids` instead of parameters. Throws if `MAKERS` has no item for a parameter. */
export function pathOf({ method, path }: Route, ids: Ids): string {
  return path.replace(/:(\w+)/g, (_, parameter: string) => {
    return encodeURIComponent(ids[kindOf(method, path, parameter)] ?? '');
  });
}

/** Whether the path of a route names an item. */
export function isNaming({ path }: Route): boolean {
  return path.includes(':');
}

/** The kind of item that a parameter of a path names. */
function kindOf(method: string, path: string, parameter: string): string {
  if (path.startsWith('/v2/workflows/dlq/')) {
    return method === 'DELETE' && path.includes('/callback/') ? 'tellingRuns' : 'deadRuns';
  }
  const word = path.split('/')[2]?.toLowerCase() ?? '';
  const kind = KINDS_OF_PARAMETERS[parameter] ?? KINDS[word] ?? word;
  if (kind in MAKERS) return kind;
  throw new Error(`${path} names something: give test/api/support/belongings.ts a maker for "${kind}"`);
}

/** The query that a route needs, or an empty one. */
export function queryOf({ method, path }: Route, ids: Ids): string {
  return QUERIES[`${method} ${path}`]?.(ids) ?? '';
}

/** The JSON body that a route needs; `undefined` if the route needs no body. Throws if `BODIES` has no example. */
export function bodyOf({ method, path, takes }: Route, ids: Ids): string | undefined {
  const example = BODIES[`${method} ${path}`];
  if (example) return JSON.stringify(example(ids));
  if (takes?.body === undefined || takes.body === 'bytes') return undefined;
  throw new Error(`${method} ${path} takes a body: give test/api/support/belongings.ts an example`);
}

/** Starts a workflow run whose first delivery is delayed by an hour, so that the run does not change. */
async function begin(world: World, runId: string): Promise<void> {
  await world.publish(`https://ok.example/${CANARY}`, {
    'upstash-workflow-init': 'true',
    'upstash-workflow-runid': runId,
    'upstash-label': CANARY,
    'upstash-delay': '1h',
  });
}

/** Waits until the message is delivered; the simulated endpoints respond within a few turns of the event loop. */
async function delivered(world: World, messageId: string): Promise<void> {
  for (let turn = 0; turn < 1_000; turn += 1) {
    const { json } = await world.ask({ method: 'GET', url: `/v2/logs?messageId=${messageId}&state=DELIVERED` });
    if (json.logs.length > 0) return;
  }
  throw new Error(`message ${messageId} was not delivered`);
}

/** Fails a run and its failure callback. Returns the run's DLQ id once the failure callback is in `state`. */
async function buryRun(
  world: World,
  runId: string,
  { retries, state }: { retries: number; state: string },
): Promise<string> {
  const url = `https://fail.example/${CANARY}`;
  await world.publish(url, {
    ...{ 'upstash-workflow-init': 'true', 'upstash-workflow-runid': runId, 'upstash-workflow-url': url },
    ...{ 'upstash-retries': '0', 'upstash-failure-callback': url, 'upstash-label': CANARY },
    // The failure callback must not be retried during a test.
    ...{ 'upstash-failure-callback-retries': String(retries), 'upstash-failure-callback-retry-delay': '86400000' },
  });
  for (let turn = 0; turn < 1_000; turn += 1) {
    const query = `workflowRunId=${runId}&failureFunctionState=${state}`;
    const { json } = await world.ask({ method: 'GET', url: `/v2/workflows/dlq?${query}` });
    // The response of the failure callback is saved after the attempt.
    if (json.messages[0]?.failureCallbackInfo.responseStatus !== undefined) return json.messages[0].dlqId;
  }
  throw new Error(`the run ${runId} did not fail`);
}

async function made(world: World, method: 'POST' | 'PATCH', url: string, payload: unknown): Promise<void> {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const reply = await world.ask({ method, url, headers, payload: JSON.stringify(payload) });
  expect(reply.status, reply.text).toBe(200);
}
