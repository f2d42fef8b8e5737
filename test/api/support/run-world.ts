/**
 * Workflow runs in simulated time, without a library: the test publishes what a library would publish, and chooses the
 * responses of the endpoints. Every delivery is recorded with its part of the journal.
 */
import { expect } from 'vitest';
import type { Claimed, Outcome } from '../../../src/engine/model.ts';
import type { Delivery } from '../../../src/engine/ports.ts';
import { newHeaderMap } from '../../../src/protocol/headers.ts';
import type { HeaderMap } from '../../../src/protocol/options/settings.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';
import { type Json, openWorld, type Reply, TOKEN, type World } from './world.ts';

export const WORKFLOW = 'https://app.example/wf';

const FEATURES = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig';

export interface Delivered {
  url: string;
  runId: string;
  messageId: string;
  callType: string;
  header: HeaderMap;
  body: string;
  /** The bodies of the journal's entries; empty if `body` is not a journal. */
  entries: string[];
}

interface EndpointResponse {
  status: number;
  body?: string;
  header?: Record<string, string>;
}

export interface RunWorld extends World {
  clock: SimulatedClock;
  deliveries: Delivered[];
  /** Sets the responses of all endpoints, which are initially 200. */
  respondWith(how: (delivered: Delivered) => EndpointResponse): void;
  /** Starts a run without retries, and resolves once its first message was delivered. */
  trigger(runId: string, options?: { url?: string; headers?: Record<string, string>; payload?: string }): Promise<void>;
  /** Publishes steps into a run, all at once. */
  append(runId: string, items: { step: Json; headers?: Record<string, string> }[]): Promise<void>;
  /** Calls an external URL as a step of the run. */
  call(runId: string, stepId: number, url: string, headers?: Record<string, string>): Promise<void>;
  wait(runId: string, stepId: number, eventId: string): Promise<void>;
  /** Invokes a run as a step of another. */
  invoke(runId: string, stepId: number, childId: string): Promise<void>;
  /** Starts a run that fails, and returns its DLQ id. */
  fail(runId: string, options?: Parameters<RunWorld['trigger']>[1]): Promise<string>;
  dlqIdOf(runId: string): Promise<string>;
  /** The deliveries of a run, in order. */
  of(runId: string): Delivered[];
  get(path: string): Promise<Reply>;
  post(path: string, headers?: Record<string, string>, payload?: string): Promise<Reply>;
  delete(path: string, headers?: Record<string, string>, payload?: string): Promise<Reply>;
  /** Advances the clock by 1 ms, in which all work that needs no time is finished. */
  settled(): Promise<void>;
}

export async function openRunWorld(): Promise<RunWorld> {
  const clock = new SimulatedClock();
  const deliveries: Delivered[] = [];
  let responseTo: (delivered: Delivered) => EndpointResponse = () => ({ status: 200 });
  const delivery: Delivery = {
    attempt: (claimed) => {
      const delivered = deliveredOf(claimed);
      deliveries.push(delivered);
      return Promise.resolve(outcomeOf(responseTo(delivered)));
    },
    close: () => Promise.resolve(),
  };
  const world = await openWorld({}, { clock, delivery, randomness: new SeededRandom(1) });
  const settled = () => clock.advanceBy(1);

  async function batch(items: { destination: string; headers: Record<string, string>; body?: string }[]) {
    const reply = await world.ask({ method: 'POST', url: '/v2/batch', payload: JSON.stringify(items) });
    expect(reply.status, reply.text).toBe(200);
    await settled();
  }

  const runWorld: Omit<RunWorld, keyof World> = {
    clock,
    deliveries,
    settled,
    respondWith: (how) => {
      responseTo = how;
    },
    trigger: (runId, { url = WORKFLOW, headers = {}, payload = 'payload' } = {}) =>
      batch([{ destination: url, headers: { ...startHeaders(runId, url), ...headers }, body: payload }]),
    append: (runId, items) =>
      batch(
        items.map(({ step, headers = {} }) => ({
          destination: WORKFLOW,
          headers: { ...stepHeaders(runId), ...headers },
          body: JSON.stringify(step),
        })),
      ),
    call: (runId, stepId, url, headers) =>
      batch([{ destination: url, headers: { ...callHeaders(runId, stepId), ...headers }, body: 'question' }]),
    wait: async (runId, stepId, eventId) => {
      const timeoutHeaders = Object.fromEntries(
        Object.entries(stepHeaders(runId)).map(([name, value]) => [name, [value]]),
      );
      const step = { stepId, stepName: `wait ${stepId}`, stepType: 'Wait', concurrent: 1 };
      const payload = JSON.stringify({ url: WORKFLOW, timeout: '60s', timeoutUrl: WORKFLOW, timeoutHeaders, step });
      const reply = await runWorld.post(`wait/${eventId}`, stepHeaders(runId), payload);
      expect(reply.status, reply.text).toBe(200);
    },
    invoke: async (runId, stepId, childId) => {
      const url = 'https://app.example/child';
      const headers = Object.fromEntries(Object.entries(stepHeaders(runId)).map(([name, value]) => [name, [value]]));
      const step = { stepId, stepName: `invoke ${stepId}`, stepType: 'Invoke', concurrent: 1 };
      const body = { body: 'child payload', headers, workflowRunId: runId, workflowUrl: WORKFLOW, step };
      const started = { ...startHeaders(childId, url), 'upstash-workflow-invoke': 'true' };
      const reply = await runWorld.post(`publish/${url}`, started, JSON.stringify(body));
      expect(reply.status, reply.text).toBe(200);
      await settled();
    },
    fail: async (runId, options) => {
      responseTo = () => ({ status: 500, body: 'broken', header: { 'Upstash-Workflow-Sdk-Version': '1' } });
      await runWorld.trigger(runId, options);
      return runWorld.dlqIdOf(runId);
    },
    dlqIdOf: async (runId) => {
      await settled();
      const { json } = await runWorld.get(`workflows/dlq?workflowRunId=${encodeURIComponent(runId)}`);
      const dlqId: string | undefined = json.messages[0]?.dlqId;
      if (dlqId === undefined) throw new Error(`the run ${runId} has not failed`);
      return dlqId;
    },
    of: (runId) => deliveries.filter((delivered) => delivered.runId === runId),
    get: (path) => world.ask({ method: 'GET', url: `/v2/${path}` }),
    post: (path, headers = {}, payload = '') => world.ask({ method: 'POST', url: `/v2/${path}`, headers, payload }),
    delete: (path, headers = {}, payload = '') => world.ask({ method: 'DELETE', url: `/v2/${path}`, headers, payload }),
  };
  return Object.assign(world, runWorld);
}

/** The headers that a current library sends with a trigger. */
function startHeaders(runId: string, url: string): Record<string, string> {
  return {
    'upstash-workflow-init': 'true',
    'upstash-workflow-runid': runId,
    'upstash-workflow-url': url,
    'upstash-workflow-sdk-version': '1',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'upstash-feature-set': FEATURES,
    'upstash-retries': '0',
    'upstash-forward-x-user': 'u',
    'upstash-failure-callback': url,
    'content-type': 'application/json',
    authorization: `Bearer ${TOKEN}`,
  };
}

export function stepHeaders(runId: string): Record<string, string> {
  return {
    'upstash-workflow-init': 'false',
    'upstash-workflow-runid': runId,
    'upstash-workflow-url': WORKFLOW,
    'upstash-workflow-calltype': 'step',
    'upstash-workflow-sdk-version': '1',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'upstash-feature-set': FEATURES,
    'content-type': 'application/json',
  };
}

function callHeaders(runId: string, stepId: number): Record<string, string> {
  const callback = {
    'workflow-runid': runId,
    'workflow-calltype': 'fromCallback',
    'workflow-init': 'false',
    'workflow-url': WORKFLOW,
    'feature-set': FEATURES,
    'forward-upstash-workflow-callback': 'true',
    'forward-upstash-workflow-stepid': String(stepId),
    'forward-upstash-workflow-stepname': `call ${stepId}`,
    'forward-upstash-workflow-steptype': 'Call',
    'forward-upstash-workflow-concurrent': '1',
  };
  return {
    ...stepHeaders(runId),
    'upstash-workflow-calltype': 'toCallback',
    'upstash-feature-set': 'WF_NoDelete,InitialBody',
    'upstash-retries': '0',
    'upstash-callback': WORKFLOW,
    ...Object.fromEntries(Object.entries(callback).map(([name, value]) => [`upstash-callback-${name}`, value])),
  };
}

function deliveredOf({ message, deliveredBody }: Claimed): Delivered {
  const { run } = message.settings;
  const body = Buffer.from(deliveredBody ?? message.body).toString('utf8');
  return {
    url: message.url,
    runId: run?.id ?? '',
    messageId: message.id,
    callType: run?.callType ?? '',
    header: message.header,
    body,
    entries: deliveredBody === undefined ? [] : entriesOf(body),
  };
}

function entriesOf(body: string): string[] {
  const entries = JSON.parse(body) as { body: string }[];
  return entries.map((entry) => Buffer.from(entry.body, 'base64').toString('utf8'));
}

function outcomeOf({ status, body = '', header = {} }: EndpointResponse): Outcome {
  const map = newHeaderMap();
  const all = { 'Content-Type': 'text/plain', 'Upstash-Workflow-Sdk-Version': '1', ...header };
  for (const [name, value] of Object.entries(all)) map[name] = [value];
  return { kind: 'responded', status, header: map, body: Buffer.from(body) };
}
