/** The names `.` and `..`, which URL parsers remove from paths: refused for new items, accepted for existing ones. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProjectId } from '../../src/engine/model.ts';
import { exchange } from './support/raw-http.ts';
import { openWorld, TOKEN, type World } from './support/world.ts';

let world: World;
let port: number;
/** The first of two projects. */
const PROJECT = 1 as ProjectId;

beforeAll(async () => {
  world = await openWorld();
  ({ port } = await world.listen());
});
afterAll(() => world.close());

/** Asks with the path exactly as it is written. */
async function ask(target: string, headers: Record<string, string> = {}, body?: unknown) {
  const [method, path] = target.split(' ');
  const content = body === undefined ? '' : JSON.stringify(body);
  const lines = Object.entries({ ...headers, 'content-length': String(content.length) }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const head = `${method} /v2/${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: Bearer ${TOKEN}\r\n`;
  const { status, text } = await exchange(port, `${head}${lines.join('')}\r\n${content}`);
  return { status, text };
}

const ENDPOINTS = { endpoints: [{ url: 'https://ok.example/' }] };
const RUN = { 'Upstash-Workflow-RunId': 'wfr_1', 'Upstash-Workflow-Init': 'false' };

type Creation = [kind: string, target: string, headers?: Record<string, string>, body?: unknown];

describe.each(['.', '..'])('the name %s', (name) => {
  it.each<Creation>([
    ['queue name', 'POST queues', {}, { queueName: name }],
    ['queue name', `POST enqueue/${name}/https://ok.example/`],
    ['queue name', 'POST schedules/https://ok.example/', { 'Upstash-Cron': '@daily', 'Upstash-Queue-Name': name }],
    ['schedule id', 'POST schedules/https://ok.example/', { 'Upstash-Cron': '@daily', 'Upstash-Schedule-Id': name }],
    ['topic name', `POST topics/${name}/endpoints`, {}, ENDPOINTS],
    ['flow control key', `POST flowControl/${name}/pin?parallelism=1`],
    ['flow control key', `POST flowControl/${name}/pause`],
    [
      'flow control key',
      'POST publish/https://ok.example/',
      { 'Upstash-Flow-Control-Key': name, 'Upstash-Flow-Control-Value': 'parallelism=1' },
    ],
    ['event id', `POST wait/${name}`, RUN, {}],
  ])('is refused as a new %s by %s', async (kind, target, headers, body) => {
    const { status, text } = await ask(target, headers, body);
    expect(status, text).toBe(kind === 'event id' ? 422 : 400);
    expect(JSON.parse(text).error).toContain(`invalid ${kind} ${name}: . and .. are not allowed, since URL parsers`);
  });

  it('is refused as the queue of one batch item', async () => {
    const { text } = await ask('POST batch', {}, [{ destination: 'https://ok.example/', queue: name }]);
    expect(text).toContain(`invalid queue name ${name}: . and .. are not allowed`);
  });

  it('is fine as a label, which no path has', async () => {
    expect(await ask('POST publish/https://ok.example/', { 'Upstash-Label': name })).toMatchObject({ status: 200 });
  });
});

describe('what an older version has named ..', () => {
  it('is a queue that can be read, paused and deleted', async () => {
    const store = world.engine.storeOf(PROJECT);
    await store.queues.saveQueue({ name: '..', parallelism: 1, isPaused: false });
    expect((await ask('GET queues/..')).status).toBe(200);
    expect((await ask('POST queues/../pause')).status).toBe(200);
    expect((await ask('DELETE queues/..')).status).toBe(200);
    expect(await store.queues.listQueues({})).toEqual([]);
  });

  it('is a URL group that can be read and deleted', async () => {
    const store = world.engine.storeOf(PROJECT);
    const limits = { groupsMax: 0, endpointsMax: 0 };
    await store.urlGroups.addEndpoints({ name: '..', endpoints: [{ url: 'https://ok.example/' }], limits });
    expect((await ask('GET topics/..')).status).toBe(200);
    expect((await ask('DELETE topics/..')).status).toBe(200);
    expect(await store.urlGroups.listUrlGroups()).toEqual([]);
  });

  it('is a flow-control key that can be read, resumed and released from its limits', async () => {
    await world.engine.storeOf(PROJECT).keys.pinKey({ key: '..', pin: { parallelism: 1 } });
    expect((await ask('GET flowControl/..')).status).toBe(200);
    expect((await ask('POST flowControl/../resume')).status).toBe(200);
    expect((await ask('POST flowControl/../unpin?parallelism=true')).status).toBe(200);
  });
});
