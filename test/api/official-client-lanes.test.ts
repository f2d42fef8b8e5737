/** Queues and flow control with the official client, unchanged, against a listening server. */
import { Client } from '@upstash/qstash';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/system/system.ts';
import { openWorld, TOKEN, type World } from './support/world.ts';

let world: World;
let client: Client;
beforeEach(async () => {
  world = await openWorld();
  const { url } = await world.listen();
  client = new Client({ baseUrl: url, token: TOKEN, retry: false });
});
afterEach(() => world.close());

it('makes, reads, lists, pauses, resumes and deletes queues', async () => {
  const queue = client.queue({ queueName: 'orders' });
  await queue.upsert({ parallelism: 2 });
  const made = await queue.get();
  expect(made).toEqual({
    name: 'orders',
    createdAt: expect.any(Number),
    updatedAt: expect.any(Number),
    parallelism: 2,
    paused: false,
    lag: 0,
  });
  await queue.pause();
  expect((await queue.get()).paused).toBe(true);
  await queue.resume();
  expect((await queue.get()).paused).toBe(false);
  await queue.upsert({ parallelism: 1, paused: true });
  expect(await client.queue().list()).toEqual([expect.objectContaining({ parallelism: 1, paused: true })]);
  await queue.delete();
  await queue.delete();
  expect(await queue.list()).toEqual([]);
  await expect(queue.get()).rejects.toThrow('queue orders not found');
  await expect(queue.pause()).rejects.toThrow('queue orders not found');
  await expect(queue.upsert({ parallelism: 11 })).rejects.toThrow('quota maxQueueParallelism exceeded');
});

it('enqueues to a URL, to a URL group and in a batch', async () => {
  const queue = client.queue({ queueName: 'orders' });
  await queue.upsert({ parallelism: 1, paused: true });
  const endpoints = [{ url: 'https://slow.example/1' }, { url: 'https://slow.example/2' }];
  await client.urlGroups.addEndpoints({ name: 'group', endpoints });
  const { messageId } = await queue.enqueueJSON({ url: 'https://slow.example/a', body: { n: 1 }, retries: 1 });
  const fanned = await queue.enqueue({ urlGroup: 'group', body: 'x' });
  expect(fanned.length).toBe(2);
  const [inBatch, free] = await client.batchJSON([
    { url: 'https://slow.example/b', queueName: 'orders', body: { n: 2 } },
    { url: 'https://slow.example/c', delay: 60 },
  ]);
  expect((await queue.get()).lag).toBe(4);
  expect(await client.messages.get(messageId)).toMatchObject({ queueName: 'orders', body: '{"n":1}', maxRetries: 1 });
  expect(await client.messages.get(inBatch?.messageId ?? '')).toMatchObject({ queueName: 'orders' });
  expect(await client.messages.get(free?.messageId ?? '')).not.toHaveProperty('queueName');
  expect(await client.messages.cancel({ filter: { queueName: 'orders' } })).toEqual({ cancelled: 4 });
  expect((await queue.get()).lag).toBe(0);
  await expect(queue.enqueue({ url: 'https://slow.example/', delay: 5 })).rejects.toThrow(
    'Upstash-Delay is not supported for queues',
  );
});

it('publishes under a flow-control key and looks at it', async () => {
  const flowControl = { key: 'crm', parallelism: 1, rate: 5, period: '1m' } as const;
  const { messageId } = await client.publish({ url: 'https://slow.example/1', flowControl });
  const second = await client.publish({ url: 'https://slow.example/2', flowControl });
  const fields = { flowControlKey: 'crm', parallelism: 1, rate: 5, period: 60 };
  expect(await client.messages.get(messageId)).toMatchObject(fields);
  const startedBefore = Math.ceil(systemClock.nowMs() / 1000);
  const shown = await client.flowControl.get('crm');
  expect(shown).toEqual({
    flowControlKey: 'crm',
    waitListSize: 1,
    parallelismMax: 1,
    parallelismCount: 1,
    rateMax: 5,
    rateCount: 1,
    ratePeriod: 60,
    ratePeriodStart: expect.any(Number),
    isPaused: false,
    isPinnedParallelism: false,
    isPinnedRate: false,
  });
  expect(shown.ratePeriodStart).toBeGreaterThan(startedBefore - 60);
  expect(shown.ratePeriodStart).toBeLessThanOrEqual(startedBefore);
  expect(await client.flowControl.getGlobalParallelism()).toEqual({ parallelismMax: 0, parallelismCount: 1 });
  const { logs } = await client.logs({ filter: { flowControlKey: 'crm' } });
  expect(new Set(logs.map((log) => log.messageId))).toEqual(new Set([messageId, second.messageId]));
});

it('pauses, resumes, pins, unpins and resets a flow-control key', async () => {
  const { flowControl } = client;
  await expect(flowControl.get('crm')).rejects.toThrow('flow control key crm not found');
  await flowControl.pause('crm');
  expect((await flowControl.get('crm')).isPaused).toBe(true);
  await flowControl.resume('crm');
  await flowControl.pin('crm', { parallelism: 3, rate: 4, period: 5 });
  const pinned = { parallelismMax: 3, rateMax: 4, ratePeriod: 5, isPinnedParallelism: true, isPinnedRate: true };
  expect(await flowControl.get('crm')).toMatchObject({ isPaused: false, ...pinned });
  await client.publish({ url: 'https://slow.example/', flowControl: { key: 'crm', rate: 9 } });
  expect(await flowControl.get('crm')).toMatchObject({ ...pinned, rateCount: 1 });
  await flowControl.resetRate('crm');
  expect((await flowControl.get('crm')).rateCount).toBe(0);
  await flowControl.unpin('crm', { rate: true });
  expect(await flowControl.get('crm')).toMatchObject({ ...pinned, isPinnedRate: false });
  await flowControl.unpin('crm', { parallelism: true, rate: true });
  await client.publish({ url: 'https://slow.example/', flowControl: { key: 'crm', rate: 9 } });
  expect(await flowControl.get('crm')).toMatchObject({ parallelismMax: 0, rateMax: 9, ratePeriod: 1 });
  await expect(flowControl.pin('crm', {})).rejects.toThrow('invalid query parameter parallelism');
});
