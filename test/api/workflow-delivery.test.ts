/** What reaches an endpoint of what a client published into a run: interface, engine, store and the head of each request. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requestHead } from '../../src/delivery/request-head.ts';
import type { Claimed } from '../../src/engine/model.ts';
import type { Delivery } from '../../src/engine/ports.ts';
import { headerMap } from '../protocol/refusal.ts';
import { openWorld, type World } from './support/world.ts';

const WORKFLOW = 'https://app.example/wf';

interface Delivered {
  url: string;
  /** By name in lower case. */
  headers: Record<string, string>;
  body: string;
  messageId: string;
}

let delivered: Delivered[];
let world: World;
beforeEach(async () => {
  delivered = [];
  world = await openWorld({}, { delivery: RECORDING });
});
afterEach(() => world.close());

const LIBRARY = { 'Upstash-Workflow-Sdk-Version': ['1'], 'Upstash-Workflow-Sdk': ['v1.3.3'] };

/** Answers like a workflow library. */
const RECORDING: Delivery = {
  async attempt(claimed) {
    delivered.push(deliveredOf(claimed));
    const header = headerMap({ ...LIBRARY, 'Content-Type': ['text/plain'] });
    return { kind: 'answered', status: 200, header, body: Buffer.from('answer') };
  },
  close: () => Promise.resolve(),
};

function deliveredOf(claimed: Claimed): Delivered {
  const { message, deliveredBody } = claimed;
  const head = requestHead({ claimed, signature: 's' });
  const headers = Object.fromEntries(
    head.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), head[at + 1] ?? '']] : [])),
  );
  return { url: message.url, headers, body: String(deliveredBody ?? message.body), messageId: message.id };
}

async function post(url: string, headers: Record<string, string>, payload = ''): Promise<string> {
  const reply = await world.ask({ method: 'POST', url, headers, payload });
  expect(reply.status, reply.text).toBe(200);
  return reply.json.messageId ?? reply.json.workflowRunId;
}

const publish = (headers: Record<string, string>, payload?: string, url = WORKFLOW) =>
  post(`/v2/publish/${url}`, headers, payload);

/** The `count`-th delivery; the engine makes it within a few turns of the event loop. */
async function deliveries(count: number): Promise<Delivered[]> {
  for (let turn = 0; turn < 200 && delivered.length < count; turn += 1)
    await post('/v2/publish/https://ok.example/', LATER);
  expect(delivered).toHaveLength(count);
  return delivered;
}

const LATER = { 'upstash-delay': '1h' };

const KEEPING = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig';
const START = {
  'upstash-workflow-init': 'true',
  'upstash-workflow-runid': 'wfr_x',
  'upstash-workflow-url': WORKFLOW,
  'upstash-feature-set': KEEPING,
  'upstash-forward-upstash-workflow-sdk-version': '1',
  'upstash-forward-x-user': 'ann',
  'upstash-forward-upstash-label': 'l',
  'upstash-label': 'l',
  'content-type': 'application/json',
};
const STEP = {
  'upstash-workflow-init': 'false',
  'upstash-workflow-runid': 'wfr_x',
  'upstash-forward-upstash-workflow-sdk-version': '1',
  'upstash-feature-set': KEEPING,
};
const STEP_ONE = '{"stepId":1,"stepName":"a","stepType":"Run","out":"1","concurrent":1}';

function entry({ messageId }: Delivered, text: string, callType = 'step') {
  return { messageId, body: Buffer.from(text).toString('base64'), callType };
}

describe('the deliveries of a run', () => {
  it('are its journal, with the headers of its user and of the protocol', async () => {
    const started = await publish(START, '{"水":1}');
    const [first] = await deliveries(1);
    await publish(STEP, STEP_ONE);
    const [initial, step] = (await deliveries(2)) as [Delivered, Delivered];
    expect(first?.messageId).toBe(started);
    const common = {
      'upstash-workflow-runid': 'wfr_x',
      'upstash-workflow-url': WORKFLOW,
      'upstash-workflow-createdat': expect.stringMatching(/^\d{13}$/),
      'upstash-workflow-calltype': 'step',
      'upstash-workflow-sdk-version': '1',
      'upstash-label': 'l',
      'x-user': 'ann',
    };
    expect(initial.headers).toMatchObject({ ...common, 'upstash-workflow-init': 'true' });
    expect(step.headers).toMatchObject({ ...common, 'upstash-workflow-init': 'false' });
    expect(JSON.parse(initial.body)).toEqual([entry(initial, '{"水":1}')]);
    expect(JSON.parse(step.body)).toEqual([entry(initial, '{"水":1}'), entry(step, STEP_ONE)]);
  });

  it('show who is called none of it, and bring the result without the version of the protocol (26.43, 26.44, 26.73, 26.74)', async () => {
    await publish(START);
    await deliveries(1);
    const call = {
      ...{ 'upstash-workflow-init': 'false', 'upstash-workflow-runid': 'wfr_x', 'upstash-retries': '0' },
      ...{ 'upstash-workflow-calltype': 'toCallback', 'upstash-feature-set': 'WF_NoDelete,InitialBody' },
      ...{ 'upstash-forward-own': 'v', 'upstash-callback': WORKFLOW, 'upstash-callback-feature-set': KEEPING },
      'upstash-callback-forward-upstash-workflow-callback': 'true',
      'upstash-callback-forward-upstash-workflow-stepid': '1',
      'upstash-callback-forward-upstash-workflow-sdk-version': '1',
    };
    await publish(call, 'to them', 'https://third.example/x');
    const [, called, result] = (await deliveries(3)) as [Delivered, Delivered, Delivered];
    expect([called.url, called.body, called.headers['own']]).toEqual(['https://third.example/x', 'to them', 'v']);
    expect(Object.keys(called.headers).filter((name) => /workflow|x-user|label/.test(name))).toEqual([]);
    expect(result.headers).toMatchObject({
      'upstash-workflow-callback': 'true',
      'upstash-workflow-stepid': '1',
      'upstash-workflow-calltype': 'fromCallback',
      'x-user': 'ann',
      'upstash-label': 'l',
    });
    expect(result.headers).not.toHaveProperty('upstash-workflow-sdk-version');
    expect(JSON.parse(result.body)).toMatchObject({ status: 200, body: Buffer.from('answer').toString('base64') });
  });

  it('are in the dialect that the run was begun in, and forwarded names are as written (26.106)', async () => {
    await publish({
      ...{ 'waypost-workflow-init': 'true', 'waypost-workflow-runid': 'wfr_x', 'waypost-label': 'l' },
      'waypost-forward-upstash-workflow-sdk-version': '1',
    });
    const [first] = await deliveries(1);
    const names = Object.keys(first?.headers ?? {}).filter((name) => /^(upstash|waypost)-workflow/.test(name));
    expect(names).toEqual([
      'upstash-workflow-sdk-version',
      ...['runid', 'url', 'init', 'createdat', 'calltype'].map((name) => `waypost-workflow-${name}`),
    ]);
    expect(first?.headers['waypost-label']).toBe('l');
  });

  it('of what forwards the headers of another delivery are themselves (26.21)', async () => {
    const old = { 'upstash-forward-upstash-message-id': 'old', 'upstash-forward-upstash-retried': '7' };
    await publish({ ...START, ...old, 'upstash-forward-host': 'h', 'upstash-forward-content-length': '3' });
    const [first] = (await deliveries(1)) as [Delivered];
    expect(first.headers).toMatchObject({ 'upstash-message-id': first.messageId, 'upstash-retried': '0' });
    expect(first.headers).not.toHaveProperty('host');
    expect(first.headers).not.toHaveProperty('content-length');
  });
});

describe('a trigger', () => {
  it('is delivered as the first message of a run that speaks the protocol (5.3)', async () => {
    const runId = await post(`/v2/trigger/${WORKFLOW}`, { 'upstash-forward-x-user': 'ann' }, 'p');
    const [first] = (await deliveries(1)) as [Delivered];
    expect(runId).toMatch(/^wfr_/);
    expect(first.headers).toMatchObject({
      'upstash-workflow-runid': runId,
      'upstash-workflow-url': WORKFLOW,
      'upstash-workflow-sdk-version': '1',
      'x-user': 'ann',
    });
    expect(JSON.parse(first.body)).toEqual([entry(first, 'p')]);
  });

  it('that asks for the library is delivered again when it has answered (26.22, 26.23)', async () => {
    const headers = { 'upstash-workflow-runid': 'wfr_x', 'upstash-workflow-unknown-sdk': 'true' };
    await post(`/v2/trigger/${WORKFLOW}`, { ...headers, 'upstash-forward-x-user': 'ann' }, 'p');
    await deliveries(1);
    const bySdk = { ...START, 'upstash-workflow-trigger-by-sdk': 'true', 'upstash-forward-x-user': 'other' };
    await publish({ ...bySdk, 'upstash-forward-upstash-workflow-unknown-sdk': 'true' }, 'p');
    const [asked, adopted] = (await deliveries(2)) as [Delivered, Delivered];
    expect(asked.headers).toMatchObject({ 'upstash-workflow-runid': 'wfr_x', 'upstash-workflow-unknown-sdk': 'true' });
    expect(asked.headers).not.toHaveProperty('upstash-workflow-sdk-version');
    expect(JSON.parse(asked.body)).toEqual([entry(asked, 'p')]);
    expect(adopted.headers).toMatchObject({ 'upstash-workflow-sdk-version': '1', 'x-user': 'ann' });
    expect(adopted.headers).not.toHaveProperty('upstash-workflow-unknown-sdk');
    expect(JSON.parse(adopted.body)).toEqual([entry(adopted, 'p')]);
    const again = await world.ask({ method: 'POST', url: `/v2/publish/${WORKFLOW}`, headers: bySdk, payload: 'p' });
    expect([again.status, again.json.deduplicated]).toEqual([202, true]);
  });

  it('with the id of a run that is there makes no second one', async () => {
    const headers = { 'upstash-workflow-runid': 'abc' };
    await post(`/v2/trigger/${WORKFLOW}`, headers);
    await deliveries(1);
    const again = await world.ask({ method: 'POST', url: `/v2/trigger/${WORKFLOW}`, headers });
    expect([again.status, again.json]).toEqual([
      200,
      { workflowRunId: 'abc', workflowCreatedAt: expect.any(Number), deduplicated: true },
    ]);
    await deliveries(1);
  });
});
