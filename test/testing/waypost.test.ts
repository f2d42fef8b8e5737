/** The test kit with the official client: time, faults, restarts, projects. */
import { Client, Receiver } from '@upstash/qstash';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { TestApp } from './app.ts';

const DAY_MS = 86_400_000;

let waypost: Waypost;
let client: Client;
let app: TestApp;
/** The statuses that the app answers with, one after the other, and then 200. */
let answers: number[];
beforeEach(async () => {
  answers = [];
  waypost = await startWaypost();
  client = new Client({ baseUrl: waypost.url, token: waypost.token });
  app = await TestApp.open(() => answers.shift() ?? 200);
});
afterEach(async () => {
  await waypost.stop();
  await app.close();
});

/** Virtual time since `from`. */
const passedMs = (from: Date): number => waypost.now().getTime() - from.getTime();

describe('time', () => {
  it('does not pass until it is advanced', async () => {
    const start = waypost.now();
    await client.publishJSON({ url: app.url, body: {}, delay: '7d' });
    await waypost.advance(0);
    expect([passedMs(start), app.calls.length]).toEqual([0, 0]);
    await waypost.advance('6d23h59m59s');
    expect(app.calls).toHaveLength(0);
    await waypost.advance('1s');
    expect([passedMs(start), app.calls.length]).toEqual([7 * DAY_MS, 1]);
  });

  it('starts at the time that the test sets', async () => {
    const startAt = new Date('2030-01-01T00:00:00Z');
    const other = await startWaypost({ startAt });
    expect(other.now()).toEqual(startAt);
    await other.stop();
  });

  it('jumps from one due time to the next, and stops at the last', async () => {
    const start = waypost.now();
    answers = [500, 500];
    await client.publishJSON({ url: app.url, body: {}, retries: 3, retryDelay: '3 * 3600000' });
    await waypost.runUntilIdle();
    expect(passedMs(start)).toBe(6 * 3_600_000);
    const [message] = await waypost.messages();
    expect(message).toMatchObject({ state: 'DELIVERED', attempts: 3, body: '{}', url: app.url });
    expect(message?.entries.map(({ state }) => state).join(' ')).toBe(
      'CREATED ACTIVE ERROR RETRY ACTIVE ERROR RETRY ACTIVE DELIVERED',
    );
  });

  it('rejects if work is left after the limit', async () => {
    await client.publishJSON({ url: app.url, body: {}, delay: '3d' });
    await expect(waypost.runUntilIdle({ limit: '2d' })).rejects.toThrow('something still waits after 2d');
    expect(app.calls).toHaveLength(0);
  });

  it('triggers a schedule at each of its times in a month, without waiting for its end', async () => {
    const other = await startWaypost({ startAt: new Date('2030-04-01T12:00:00Z') });
    await new Client({ baseUrl: other.url, token: other.token }).schedules.create({
      destination: app.url,
      cron: '0 9 * * *',
    });
    await other.runUntilIdle();
    expect(app.calls).toHaveLength(0);
    await other.advance('30d');
    expect(app.calls).toHaveLength(30);
    await other.stop();
  });

  it.each(['soon', '-1d', -5, Number.NaN])('is not advanced by %s', async (duration) => {
    await expect(waypost.advance(duration)).rejects.toThrow('is no duration');
  });
});

it('signs with the time of the real clock, so that the official receiver accepts it', async () => {
  // By virtual time the signature was over long ago.
  const other = await startWaypost({ startAt: new Date('2020-01-01T00:00:00Z') });
  await new Client({ baseUrl: other.url, token: other.token }).publishJSON({ url: app.url, body: {}, delay: '90d' });
  await other.advance('90d');
  const { current, next } = other.signingKeys;
  await other.stop();
  const receiver = new Receiver({ currentSigningKey: current, nextSigningKey: next });
  const [call] = app.calls;
  const signature = String(call?.headers['upstash-signature']);
  await expect(receiver.verify({ signature, body: call?.body ?? '', url: app.url })).resolves.toBe(true);
});

it('shows dead messages in the dead letter queue', async () => {
  answers = [503, 503];
  await client.publishJSON({ url: app.url, body: { a: 1 }, retries: 1 });
  await waypost.runUntilIdle();
  expect(await waypost.dlq()).toEqual([
    expect.objectContaining({ url: app.url, responseStatus: 503, body: '{"a":1}' }),
  ]);
});

describe('a disturbance', () => {
  it('responds instead of the endpoint', async () => {
    waypost.disturb({ answer: 503, body: 'busy' });
    await client.publishJSON({ url: app.url, body: {} });
    await waypost.runUntilIdle();
    expect(app.calls).toHaveLength(1);
    const [message] = await waypost.messages();
    expect(message?.entries.find(({ state }) => state === 'ERROR')).toMatchObject({
      responseStatus: 503,
      responseBody: 'busy',
    });
  });

  it('delays a response', async () => {
    const start = waypost.now();
    waypost.disturb({ delay: '20s' });
    await client.publishJSON({ url: app.url, body: {} });
    await waypost.advance('19s');
    expect((await waypost.messages())[0]?.state).toBe('ACTIVE');
    await waypost.runUntilIdle();
    expect((await waypost.messages())[0]?.state).toBe('DELIVERED');
    expect(passedMs(start)).toBe(20_000);
  });

  it.each([{ answer: 'lost' }, { delay: '31s' }] as const)(
    'makes an attempt time out that reached the endpoint (%o)',
    async (disturbance) => {
      waypost.disturb(disturbance);
      await client.publishJSON({ url: app.url, body: {}, timeout: '30s', retries: 1, retryDelay: '1000' });
      await waypost.runUntilIdle();
      expect(app.calls).toHaveLength(2);
      const [message] = await waypost.messages();
      expect(message?.entries.find(({ state }) => state === 'ERROR')?.error).toContain('within 30000 ms');
      expect(message?.state).toBe('DELIVERED');
    },
  );

  it('applies to matching URLs only, and as many times as requested', async () => {
    waypost.disturb({ answer: 500, to: `${app.url}/b`, times: 2 });
    await client.publishJSON({ url: `${app.url}/a`, body: {} });
    await client.publishJSON({ url: `${app.url}/b`, body: {} });
    await waypost.runUntilIdle();
    const attempts = Object.fromEntries((await waypost.messages()).map((each) => [each.url.at(-1), each.attempts]));
    expect(attempts).toEqual({ a: 1, b: 3 });
  });
});

it('disturbs attempts of one project only', async () => {
  const project = await waypost.project();
  project.disturb({ answer: 500 });
  await client.publishJSON({ url: app.url, body: {} });
  await new Client({ baseUrl: project.url, token: project.token }).publishJSON({ url: app.url, body: {} });
  await waypost.runUntilIdle();
  const attempts = [await waypost.messages(), await project.messages()].map(([message]) => message?.attempts);
  expect(attempts).toEqual([1, 2]);
});

it('continues with the stored data after a restart', async () => {
  const { url, signingKeys } = waypost;
  waypost.disturb({ answer: 'lost' });
  await client.publishJSON({ url: `${app.url}/now`, body: {} });
  await client.publishJSON({ url: `${app.url}/later`, body: {}, delay: '1d' });
  await waypost.restart();
  expect([waypost.url, waypost.signingKeys]).toEqual([url, signingKeys]);
  await waypost.advance('1d');
  // The attempt that was under way was interrupted, and is made again.
  expect(app.calls.map(({ path }) => path)).toEqual(['/now', '/now', '/later']);
  expect(app.calls[1]?.headers['upstash-retried']).toBe('0');
});

it('isolates projects from each other', async () => {
  const project = await waypost.project();
  await new Client({ baseUrl: project.url, token: project.token }).publishJSON({ url: app.url, body: {} });
  await waypost.runUntilIdle();
  expect([(await project.messages()).length, (await waypost.messages()).length]).toEqual([1, 0]);
  expect(project.env()).toEqual({
    QSTASH_URL: waypost.url,
    QSTASH_TOKEN: project.token,
    QSTASH_CURRENT_SIGNING_KEY: project.signingKeys.current,
    QSTASH_NEXT_SIGNING_KEY: project.signingKeys.next,
  });
  expect(project.signingKeys).not.toEqual(waypost.signingKeys);
  const receiver = new Receiver({
    currentSigningKey: project.signingKeys.current,
    nextSigningKey: project.signingKeys.next,
  });
  const [call] = app.calls;
  await expect(
    receiver.verify({ signature: String(call?.headers['upstash-signature']), body: call?.body ?? '' }),
  ).resolves.toBe(true);
});

it('accepts settings by the names of their variables, and passes on log events', async () => {
  const events: string[] = [];
  const other = await startWaypost({
    settings: { WAYPOST_ALLOW_DESTINATIONS: 'all' },
    log: (level, event) => events.push(`${level} ${event}`),
  });
  await other.stop();
  expect(events).toContain('warn all_destinations_allowed');
  await expect(startWaypost({ settings: { WAYPOST_RETENTION_INTERVAL: 'often' } })).rejects.toThrow(
    'WAYPOST_RETENTION_INTERVAL',
  );
});
