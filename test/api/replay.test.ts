import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openWorld, READ_ONLY_TOKEN, type Reply, type World } from './support/world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

function replay(id: string, payload: string | object = '', authorization = ''): Promise<Reply> {
  const headers = authorization ? { authorization } : {};
  return world.ask({ method: 'POST', url: `/v2/waypost/messages/${id}/replay`, payload, headers });
}

describe('replaying a message (contract M 22.41)', () => {
  it.each([
    [[], 'an object is needed'],
    [{ destinaton: 'https://a.example' }, 'destinaton is not one of destination, queue, headers, body, bodyBase64'],
    [{ destination: 'group' }, 'destination must be a URL'],
    [{ destination: 7 }, 'destination must be a string'],
    [{ destination: 'http://' }, 'invalid destination'],
    [{ queue: 'a/b' }, 'queue name'],
    [{ body: 'a', bodyBase64: 'YQ==' }, 'body and bodyBase64 exclude each other'],
    [{ bodyBase64: 'YQ' }, 'bodyBase64 must be padded base64'],
    [{ headers: { Authorization: 'x' } }, 'headers: Authorization is not an option; Upstash-Forward-Authorization'],
    [{ headers: { 'Upstash-Retries': null } }, 'headers: Upstash-Retries is an option, which null does not remove'],
    [{ headers: { 'Upstash-Cron': '* * * * *' } }, 'Upstash-Cron'],
    [{ headers: { 'Upstash-Workflow-Init': 'true' } }, 'Upstash-Workflow-Init'],
    [{ headers: { 'Upstash-Retries': '-1' } }, 'Upstash-Retries'],
  ])('refuses %j and publishes nothing', async (body, error) => {
    const id = await world.publish('https://ok.example/');
    const { status, json } = await replay(id, JSON.stringify(body));
    expect([status, json.error]).toEqual([400, expect.stringContaining(error)]);
    expect((await world.ask({ method: 'GET', url: `/v2/messages/${id}/explain` })).json).not.toHaveProperty('replays');
  });

  it('needs a message of the same project that is still stored, and a full token', async () => {
    expect((await replay('msg_unknown')).status).toBe(404);
    const id = await world.publish('https://ok.example/');
    expect((await replay(id, '', `Bearer ${READ_ONLY_TOKEN}`)).status).toBe(403);
  });

  it('sends a body that is not text, with another content type', async () => {
    const id = await world.publish('https://ok.example/', { 'content-type': 'text/plain' }, 'text');
    const headers = { 'content-type': 'application/octet-stream' };
    const { json } = await replay(id, { bodyBase64: '/w==', headers });
    const message = await world.ask({ method: 'GET', url: `/v2/messages/${json.messageId}` });
    expect(message.json).toMatchObject({
      bodyBase64: '/w==',
      header: { 'Content-Type': ['application/octet-stream'] },
    });
  });

  it('removes a header that is null', async () => {
    const id = await world.publish('https://ok.example/', { 'upstash-forward-a': '1', 'upstash-forward-b': '2' });
    const { json } = await replay(id, { headers: { 'Upstash-Forward-A': null, 'Content-Type': null } });
    const message = await world.ask({ method: 'GET', url: `/v2/messages/${json.messageId}` });
    expect(message.json.header).toEqual({ B: ['2'] });
  });

  it('keeps the URL group of a message unless it goes to another URL', async () => {
    const payload = JSON.stringify({ endpoints: [{ url: 'https://ok.example/', name: 'first' }] });
    await world.ask({ method: 'POST', url: '/v2/topics/group/endpoints', payload });
    const published = await world.ask({ method: 'POST', url: '/v2/publish/group' });
    const groupOf = async (changes: object) => {
      const { json } = await replay(published.json[0].messageId, changes);
      const { topicName, endpointName } = (await world.ask({ method: 'GET', url: `/v2/messages/${json.messageId}` }))
        .json;
      return [topicName, endpointName];
    };
    expect(await groupOf({})).toEqual(['group', 'first']);
    expect(await groupOf({ destination: 'https://other.example/' })).toEqual([undefined, undefined]);
  });

  it('takes a message out of its queue', async () => {
    const enqueued = await world.ask({ method: 'POST', url: '/v2/enqueue/queue/https://ok.example/' });
    const ofQueue = await replay(enqueued.json.messageId);
    const free = await replay(enqueued.json.messageId, { queue: null });
    const queueOf = async (id: string) =>
      (await world.ask({ method: 'GET', url: `/v2/messages/${id}` })).json.queueName;
    expect([await queueOf(ofQueue.json.messageId), await queueOf(free.json.messageId)]).toEqual(['queue', undefined]);
  });

  it('refuses a message of a workflow run, which is replayed with its run', async () => {
    const run = { 'upstash-workflow-init': 'true', 'upstash-workflow-runid': 'wfr_a' };
    const id = await world.publish('https://ok.example/', run);
    const { status, json } = await replay(id);
    expect([status, json.error]).toEqual([400, `message ${id} belongs to a workflow run`]);
  });
});
