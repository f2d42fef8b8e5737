/** The official client, unchanged, against a listening server. */
import { Client } from '@upstash/qstash';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openWorld, TOKEN, type World } from './support/world.ts';

let world: World;
let url: string;
let client: Client;
beforeEach(async () => {
  world = await openWorld();
  ({ url } = await world.listen());
  client = new Client({ baseUrl: url, token: TOKEN, retry: false });
});
afterEach(() => world.close());

it('publishes, reads and cancels', async () => {
  const { messageId } = await client.publishJSON({
    url: 'https://slow.example/a?b=c',
    body: { hello: 'world' },
    headers: { 'My-Header': 'mine' },
    delay: 60,
    retries: 2,
    timeout: 10,
    label: 'greeting',
    deduplicationId: 'once',
  });
  expect(await client.messages.get(messageId)).toMatchObject({
    messageId,
    url: 'https://slow.example/a?b=c',
    body: '{"hello":"world"}',
    header: { 'Content-Type': ['application/json'], 'My-Header': ['mine'] },
    maxRetries: 2,
    label: 'greeting',
  });
  const again = await client.publish({ url: 'https://slow.example/', deduplicationId: 'once' });
  expect(again).toEqual({ messageId, url: 'https://slow.example/', deduplicated: true });
  expect(await client.messages.cancel(messageId)).toEqual({ cancelled: 1 });
  await expect(client.messages.get(messageId)).rejects.toThrow(`message ${messageId} not found`);
});

it('publishes a batch and cancels everything', async () => {
  const answers = await client.batchJSON([
    { url: 'https://slow.example/1', body: { n: 1 }, delay: 60 },
    { url: 'https://slow.example/2', body: { n: 2 }, delay: 60, headers: { x: 'y' } },
    { url: 'https://slow.example/3', body: { n: 3 }, delay: 60, label: 'third' },
  ]);
  expect(answers).toHaveLength(3);
  expect(await client.messages.cancel({ filter: { label: 'third' } })).toEqual({ cancelled: 1 });
  expect(await client.messages.deleteAll()).toBe(2);
});

it('lists logs by filter and cursor', async () => {
  const { messageId } = await client.publish({ url: 'https://ok.example/', body: 'x' });
  await client.publish({ url: 'https://slow.example/', delay: 60 });
  const { logs, cursor } = await client.logs({ filter: { messageId } });
  expect([logs.map(({ state }) => state), cursor]).toEqual([['DELIVERED', 'ACTIVE', 'CREATED'], undefined]);
  expect((await client.events({ filter: { state: 'DELIVERED' } })).events).toHaveLength(1);
  expect((await client.logs({ messageIds: [messageId] })).logs).toHaveLength(3);
  const first = await client.logs({ count: 1 });
  const second = await client.logs({ count: 3, cursor: first.cursor ?? '' });
  expect([first.logs.length, second.logs.length, second.cursor]).toEqual([1, 3, undefined]);
});

it('lists, retries and deletes dead messages', async () => {
  const first = await world.bury('https://fail.example/1');
  const second = await world.bury('https://fail.example/2');
  const third = await world.bury('https://fail.example/3');
  const { messages } = await client.dlq.listMessages({ filter: { url: 'https://fail.example/1' } });
  expect(messages.map(({ dlqId, responseBody }) => [dlqId, responseBody])).toEqual([[first, 'broken']]);
  expect((await client.dlq.listMessages({ dlqIds: [first, second] })).messages).toHaveLength(2);
  expect(await client.dlq.retry(first)).toEqual({ responses: [{ messageId: expect.stringMatching(/^msg_/) }] });
  expect(await client.dlq.delete(second)).toEqual({ deleted: 1 });
  expect(await client.dlq.deleteMany({ dlqIds: [third, second] })).toEqual({ deleted: 1 });
  await expect(client.dlq.delete(second)).rejects.toThrow(`dlq message ${second} not found`);
});

it('is told what is wrong', async () => {
  const wrong = new Client({ baseUrl: url, token: 'wrong', retry: false });
  await expect(wrong.logs()).rejects.toThrow('unable to authenticate: invalid token');
  await expect(client.publish({ url: 'https://slow.example/', retries: 5000 })).rejects.toThrow(
    'quota maxRetries exceeded, current limit: 999',
  );
  await expect(client.publish({ url: 'https://slow.example/', body: 'x'.repeat(2_000_000) })).rejects.toThrow(
    'quota maxMessageSize exceeded',
  );
});

it('makes, changes and removes URL groups, and publishes to them', async () => {
  const first = { url: 'https://slow.example/1', name: 'one' };
  const second = { url: 'https://slow.example/2' };
  await client.urlGroups.addEndpoints({ name: 'group', endpoints: [first, second] });
  const group = await client.urlGroups.get('group');
  expect(group).toMatchObject({ name: 'group', endpoints: [first, second] });
  expect(await client.urlGroups.list()).toEqual([group]);
  const published = await client.publishJSON({ urlGroup: 'group', body: { hello: 'all' }, delay: 60 });
  expect(published.map(({ url }) => url)).toEqual([first.url, second.url]);
  expect(await client.messages.get(published[0]?.messageId ?? '')).toMatchObject({
    topicName: 'group',
    urlGroup: 'group',
    endpointName: 'one',
  });
  const batch = await client.batchJSON([
    { urlGroup: 'group', body: 1, delay: 60 },
    { url: first.url, delay: 60 },
  ]);
  expect(batch).toMatchObject([[{ url: first.url }, { url: second.url }], { url: first.url }]);
  expect(await client.messages.cancel({ filter: { urlGroup: 'group' } })).toEqual({ cancelled: 4 });
  await client.urlGroups.removeEndpoints({ name: 'group', endpoints: [{ name: 'one' }] });
  expect((await client.urlGroups.get('group')).endpoints).toEqual([second]);
  await client.urlGroups.delete('group');
  await client.urlGroups.delete('group');
  await expect(client.urlGroups.get('group')).rejects.toThrow('topic group not found');
  await expect(client.publishJSON({ urlGroup: 'group', body: 1 })).rejects.toThrow('topic group not found');
});
