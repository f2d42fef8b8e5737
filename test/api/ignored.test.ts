/** Options and headers without effect are named in the response, and once in the log, so that typos are noticed. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLIENT_HEADERS } from '../../src/api/publishing/config-headers.ts';
import { Ignored, KnownOptions } from '../../src/api/publishing/ignored.ts';
import { openWorld, type Reply, type World } from './support/world.ts';

const TO = '/v2/publish/https://slow.example/';
const LATER = { 'upstash-delay': '1h' };

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

async function post(url: string, headers: Record<string, string> = {}, payload?: unknown): Promise<Reply> {
  const text = payload === undefined ? '' : JSON.stringify(payload);
  const reply = await world.ask({ method: 'POST', url, headers, payload: text });
  expect(reply.status, reply.text).toBeLessThan(300);
  return reply;
}

const get = (url: string): Promise<Reply> => world.ask({ method: 'GET', url });

function ignored({ headers }: Reply): unknown {
  return headers['waypost-ignored'];
}

describe('a response names', () => {
  it('headers of a publish that are no options, but none that is', async () => {
    const headers = { ...LATER, 'upstash-retires': '5', 'Waypost-Lable': 'a', 'upstash-retries': '5', 'x-mine': 'y' };
    expect(ignored(await post(TO, headers))).toBe('Upstash-Retires, Waypost-Lable');
    expect(ignored(await post(TO, LATER))).toBeUndefined();
  });

  it('options of callbacks that are none', async () => {
    const headers = {
      ...LATER,
      'upstash-callback': 'https://told.example',
      'upstash-callback-retires': '1',
      'upstash-callback-failure-callback': 'https://told.example',
      'upstash-callback-failure-callback-retries': '1',
      'upstash-callback-failure-callback-retrys': '1',
    };
    expect(ignored(await post(TO, headers))).toBe('Upstash-Callback-Retires, Upstash-Callback-Failure-Callback-Retrys');
  });

  it('config parameters of the query that are none, and nothing of the destination’s query', async () => {
    expect(ignored(await post(`${TO}?upstash-delay=1h&upstash-retires=5&retires=5`))).toBe('Upstash-Retires');
  });

  it('options that mean nothing on this route', async () => {
    const schedule = '/v2/schedules/https://slow.example/';
    expect(ignored(await post(schedule, { 'upstash-cron': '@daily', 'upstash-deduplication-id': 'a' }))).toBe(
      'Upstash-Deduplication-Id',
    );
    const batch = [{ destination: 'https://slow.example/', headers: LATER }];
    expect(ignored(await post('/v2/batch', { 'upstash-retries': '1', 'upstash-forward-x': 'y' }, batch))).toBe(
      'Upstash-Retries, Upstash-Forward-X',
    );
  });

  it('parameters of reads that are none', async () => {
    expect(ignored(await get('/v2/logs?mesageId=a&state=ERROR'))).toBe('mesageId');
    expect(ignored(await get('/v2/dlq?api=x&messageId=msg_a&qstash_token=t'))).toBeUndefined();
    expect(ignored(await get('/v2/dlq?host=x&url=y'))).toBe('host');
    expect(ignored(await get('/v2/queues?upstash-retries=1'))).toBe('upstash-retries');
  });

  it('filters beside ids, which select alone, and nothing that pages through them', async () => {
    expect(ignored(await get('/v2/dlq?dlqIds=1-1&label=a&count=5'))).toBe('label, count');
    expect(ignored(await get('/v2/logs?messageIds=msg_a&label=a&count=5'))).toBe('label');
    expect(ignored(await get('/v2/workflows/dlq?dlqIds=1-1&host=a&label=a'))).toBe('host, label');
    for (const target of ['messages?messageIds=msg_a&label=a', 'workflows/runs?workflowRunIds=wfr_a&label=a']) {
      const { status, headers } = await world.ask({ method: 'DELETE', url: `/v2/${target}` });
      expect([status, headers['waypost-ignored']]).toEqual([200, 'label']);
    }
    expect(ignored(await get('/v2/logs?messageIds=&label=a'))).toBeUndefined();
  });

  it('each item of a batch whose options are none', async () => {
    const destination = 'https://slow.example/';
    const items = [
      { destination, headers: { ...LATER, 'Upstash-Retires': '5' } },
      { destination, headers: LATER },
      { destination, queue: 'q', headers: { 'upstash-delya': '1h', 'Upstash-Forward-Host': 'a' } },
    ];
    expect(ignored(await post('/v2/batch', {}, items))).toBe(
      'Upstash-Retires;item=0, Upstash-Delya;item=2, Host;item=2',
    );
    const triggers = [{ destination, headers: { ...LATER, 'Upstash-Lable': 'a' } }];
    expect(ignored(await post('/v2/batch/trigger', {}, triggers))).toBe('Upstash-Lable;item=0');
  });

  it('default headers of a URL group that are no options', async () => {
    await post('/v2/topics/g/endpoints', {}, { endpoints: [{ url: 'https://slow.example/' }] });
    const headers = { 'Upstash-Retires': '5', 'Upstash-Forward-Te': 'x' };
    const reply = await world.ask({ method: 'PATCH', url: '/v2/topics/g', payload: JSON.stringify({ headers }) });
    expect([reply.status, ignored(reply)]).toEqual([200, 'Upstash-Retires, Te']);
  });

  it('what was to be forwarded and belongs to a connection, for one call and for callbacks', async () => {
    const headers = { 'upstash-forward-host': 'a', 'Upstash-Forward-CONNECTION': 'close', 'upstash-forward-x': 'y' };
    const callback = { 'upstash-callback': 'https://told.example', 'upstash-callback-forward-te': 'x' };
    const reply = await post(TO, { ...LATER, ...headers, ...callback });
    expect(ignored(reply)).toBe('Host, Connection, Te');
    expect((await get(`/v2/messages/${reply.json.messageId}`)).json.header).toEqual({ X: ['y'] });
  });

  it('what was to be forwarded and is not, for its value or its name', async () => {
    const headers = { 'upstash-forward-accept-encoding': 'gzip', 'upstash-forward-x': '', 'upstash-forward-y': 'y' };
    const callback = { 'upstash-callback': 'https://told.example', 'upstash-callback-forward-z': '' };
    const reply = await post(TO, { ...LATER, ...headers, ...callback });
    expect(ignored(reply)).toBe('Accept-Encoding, X, Z');
    expect((await get(`/v2/messages/${reply.json.messageId}`)).json.header).toMatchObject({ Y: ['y'] });
    expect(ignored(await post(`${TO}?upstash-delay=1h&upstash-forward-x=&upstash-forward-host=a`))).toBe('X, Host');
    const items = [{ destination: 'https://slow.example/', headers: { ...LATER, 'Upstash-Forward-X': ' ' } }];
    expect(ignored(await post('/v2/batch', {}, items))).toBe('X;item=0');
  });

  it('the encoding of a body that is delivered without it', async () => {
    const encoded = { ...LATER, 'content-encoding': 'gzip' };
    expect(ignored(await post(TO, encoded))).toBe('Content-Encoding');
    expect(ignored(await post('/v2/enqueue/q/https://slow.example/', { 'content-encoding': 'gzip' }))).toBe(
      'Content-Encoding',
    );
    for (const forwarded of [{ 'upstash-forward-content-encoding': 'gzip' }, { 'upstash-header-forward': 'True' }]) {
      const reply = await post(TO, { ...encoded, ...forwarded });
      expect(ignored(reply)).toBeUndefined();
      const { json } = await get(`/v2/messages/${reply.json.messageId}`);
      expect(json.header).toMatchObject({ 'Content-Encoding': ['gzip'] });
    }
  });

  it('nothing of a connection to a library, which forwards all that its run was begun with', async () => {
    const run = { 'upstash-workflow-init': 'true', 'upstash-workflow-runid': 'wfr_a', 'upstash-forward-host': 'a' };
    expect(ignored(await post(TO, { ...LATER, ...run }))).toBeUndefined();
    expect(ignored(await post(TO, { ...LATER, ...run, 'upstash-lable': 'a' }))).toBe('Upstash-Lable');
  });

  it('no header without a value, and nothing on routes that are open to everybody', async () => {
    expect(ignored(await post(TO, { ...LATER, 'upstash-retires': '' }))).toBeUndefined();
    expect(ignored(await get('/healthz?a=b'))).toBeUndefined();
  });

  it('at most 16 names of at most 64 characters, which can end no header and begin no other', async () => {
    const odd = encodeURIComponent('a\r\nSet-Cookie: b, c;item=1漢');
    expect(ignored(await get(`/v2/logs?${odd}=1&${'x'.repeat(200)}=1`))).toBe(
      `a__Set-Cookie__b__c_item_1_, ${'x'.repeat(64)}`,
    );
    const names = Array.from({ length: 40 }, (_, index) => `n${index}`);
    const expected = [...names.slice(0, 16), '...'].join(', ');
    expect(ignored(await get(`/v2/logs?${names.map((name) => `${name}=1`).join('&')}`))).toBe(expected);
    const items = names.map((name) => ({
      destination: 'https://slow.example/',
      headers: { ...LATER, [`Upstash-${name}`]: '1' },
    }));
    expect(String(ignored(await post('/v2/batch', {}, items))).split(', ')).toHaveLength(17);
  });
});

describe('the log', () => {
  const said = () => world.logLines.filter(({ event }) => event === 'option_ignored').map(({ fields }) => fields);

  it('says each option once, whoever sends it how often', async () => {
    for (let time = 0; time < 3; time += 1) await post(TO, { ...LATER, 'upstash-retires': '5' });
    await get('/v2/logs?mesageId=a');
    await post(TO, { ...LATER, 'upstash-lable': 'a', 'upstash-forward-host': 'b' });
    expect(said()).toEqual([
      { route: 'POST /v2/publish/*', option: 'Upstash-Retires' },
      { route: 'GET /v2/logs', option: 'mesageId' },
      { route: 'POST /v2/publish/*', option: 'Upstash-Lable' },
    ]);
  });

  it('is not filled by whoever makes up options', async () => {
    for (let request = 0; request < 40; request += 1) {
      await get(`/v2/logs?${Array.from({ length: 16 }, (_, index) => `n${request}-${index}=1`).join('&')}`);
    }
    expect(said()).toHaveLength(500);
  });
});

it('what the route table says that a route takes is not ignored there', () => {
  for (const route of world.routes) {
    const { configHeaders = [], query = [] } = route.takes ?? {};
    const ignored = new Ignored();
    const parameters = query.map(({ name }) => `${name}=1`).join('&');
    const headers = [...configHeaders, ...CLIENT_HEADERS].flatMap(({ name }) => [name, 'a']);
    new KnownOptions(route).findIgnored(headers, parameters, ignored);
    expect([route.path, ...ignored.options]).toEqual([route.path]);
  }
});

// Those for JavaScript run against whole servers, whose logs are looked at, in test/workflows and test/conformance.
it('what the clients for Python and Go send is not ignored', async () => {
  const run = { 'Upstash-Workflow-Init': 'true', 'Upstash-Workflow-Runid': 'wfr_py', 'Upstash-Workflow-Url': 'a' };
  const told = (kind: string): Record<string, string> => ({
    [`Upstash-${kind}`]: 'https://told.example',
    [`Upstash-${kind}-Forward-Upstash-Workflow-Is-Failure`]: 'true',
    [`Upstash-${kind}-Workflow-Runid`]: 'wfr_py',
    [`Upstash-${kind}-Workflow-Init`]: 'false',
    [`Upstash-${kind}-Workflow-Url`]: 'a',
    [`Upstash-${kind}-Workflow-Calltype`]: 'failureCall',
    [`Upstash-${kind}-Feature-Set`]: 'LazyFetch,InitialBody',
    [`Upstash-${kind}-Retries`]: '1',
  });
  const python = {
    ...{ ...run, 'Upstash-Feature-Set': 'LazyFetch', 'Upstash-Forward-Upstash-Workflow-Sdk-Version': '1' },
    ...{ 'Upstash-Workflow-CallType': 'step', 'Upstash-Timeout': '10s', 'Upstash-Method': 'POST' },
    ...{ ...told('Failure-Callback'), ...told('Callback'), ...told('Callback-Failure-Callback') },
  };
  expect(ignored(await post(TO, { ...LATER, ...python }))).toBeUndefined();
  const go = { 'Upstash-Workflow-Init': 'true', 'Upstash-Workflow-Runid': 'go', 'Upstash-Workflow-Sdk-Version': '1' };
  const flow = { 'Upstash-Flow-Control-Key': 'k', 'Upstash-Flow-Control-Value': 'rate=1' };
  expect(ignored(await post(TO, { ...LATER, ...go, ...flow, 'Upstash-Feature-Set': 'a' }))).toBeUndefined();
});
