/** The official client's `schedules`, unchanged, against a listening server. */
import { Client } from '@upstash/qstash';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openWorld, TOKEN, type World } from './support/world.ts';

const DESTINATION = 'https://slow.example/report';

let world: World;
let client: Client;
beforeEach(async () => {
  world = await openWorld();
  const { url } = await world.listen();
  client = new Client({ baseUrl: url, token: TOKEN, retry: false });
});
afterEach(() => world.close());

it('creates, reads, lists and deletes schedules', async () => {
  const { scheduleId } = await client.schedules.create({
    destination: DESTINATION,
    cron: ' CRON_TZ=America/New_York 0 4 * * * ',
    body: JSON.stringify({ hello: 'world' }),
    headers: { 'My-Header': 'mine' },
    method: 'PUT',
    retries: 2,
    retryDelay: '1000 * retried',
    delay: 10,
    timeout: 60,
    label: ['nightly', 'report'],
  });
  const schedule = await client.schedules.get(scheduleId);
  expect(schedule).toMatchObject({
    scheduleId,
    destination: DESTINATION,
    cron: 'CRON_TZ=America/New_York 0 4 * * *',
    body: '{"hello":"world"}',
    header: { 'Content-Type': ['application/json'], 'My-Header': ['mine'] },
    method: 'PUT',
    retries: 2,
    retryDelayExpression: '1000 * retried',
    delay: 10,
    timeout: 60_000,
    labels: ['nightly', 'report'],
    isPaused: false,
  });
  expect(new Date(schedule.nextScheduleTime ?? 0).getUTCHours()).toBeOneOf([8, 9]);
  expect(schedule).not.toHaveProperty('lastScheduleTime');
  expect(await client.schedules.list()).toEqual([schedule]);
  await client.schedules.delete(scheduleId);
  await client.schedules.delete(scheduleId);
  expect(await client.schedules.list()).toEqual([]);
  await expect(client.schedules.get(scheduleId)).rejects.toThrow(`schedule ${scheduleId} not found`);
});

it('overwrites a schedule of its own id', async () => {
  const first = { destination: DESTINATION, scheduleId: 'my-schedule', cron: '*/5 * * * *' };
  expect(await client.schedules.create({ ...first, body: 'x', queueName: 'q' })).toEqual({ scheduleId: 'my-schedule' });
  const { createdAt } = await client.schedules.get('my-schedule');
  await client.schedules.create({ ...first, cron: '@hourly', destination: 'a-group' });
  const after = await client.schedules.get('my-schedule');
  expect(after).toMatchObject({ createdAt, cron: '@hourly', destination: 'a-group' });
  expect([after.body, after.queueName]).toEqual([undefined, undefined]);
  expect(await client.schedules.list()).toHaveLength(1);
});

it('pauses and resumes', async () => {
  const { scheduleId } = await client.schedules.create({ destination: DESTINATION, cron: '* * * * *' });
  await client.schedules.pause({ schedule: scheduleId });
  expect((await client.schedules.get(scheduleId)).isPaused).toBe(true);
  await client.schedules.resume({ schedule: scheduleId });
  expect((await client.schedules.get(scheduleId)).isPaused).toBe(false);
  await expect(client.schedules.pause({ schedule: 'nobody' })).rejects.toThrow('schedule nobody not found');
});

it('is told what is wrong', async () => {
  const create = (cron: string) => client.schedules.create({ destination: DESTINATION, cron });
  await expect(create('')).rejects.toThrow('Invalid cron expression empty spec string');
  await expect(create('* * * * *x')).rejects.toThrow('Invalid cron expression failed to parse int from *x');
});
