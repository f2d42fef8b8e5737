/** The daily limit of messages in the store. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import type { Accepted } from '../../src/engine/messages/accepted.ts';
import { openInlineSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import { type MessageOptions, OTHER_PROJECT, T0, World } from './conformance/world.ts';

const DAY_MS = 86_400_000;
const MIDNIGHT = (Math.floor(T0 / DAY_MS) + 1) * DAY_MS;

let world: World;
afterEach(() => world.store.close());

async function open(messagesPerDayMax: number, path = ':memory:'): Promise<void> {
  const limits = { queuesMax: 1, parallelismMax: 0, messagesPerDayMax, journalBytesMax: 0 };
  const onFatal = (error: Error) => {
    throw error;
  };
  world = await World.open(() => openInlineSqliteStore({ path, onFatal, limits }));
}

/** A publish of `count` messages. */
function publish(count: number, options: MessageOptions = {}): Promise<Accepted[]> {
  const newMessages = Array.from({ length: count }, () => world.message(options));
  return world.save(newMessages, options.createdAtMs ?? T0);
}

/** The results of a publish of `count` messages. */
async function kinds(count: number, options: MessageOptions = {}): Promise<string[]> {
  return (await publish(count, options)).map(({ kind }) => kind);
}

it('accepts messages up to the limit of a day, and refuses a whole publish that exceeds it', async () => {
  await open(3);
  expect(await kinds(2)).toEqual(['accepted', 'accepted']);
  const refused: Accepted = { kind: 'overDayLimit', limit: 3, remaining: 1 };
  expect(await publish(2)).toEqual([refused, refused]);
  expect(await kinds(1)).toEqual(['accepted']);
  expect(await publish(1)).toEqual([{ kind: 'overDayLimit', limit: 3, remaining: 0 }]);
});

it('saves nothing of a refused publish, including its deduplication id', async () => {
  await open(1);
  const deduplication = { hash: 'h', expiresAtMs: T0 + 2 * DAY_MS };
  await publish(1);
  const refused = world.message({ deduplication });
  expect(await world.save([refused])).toMatchObject([{ kind: 'overDayLimit' }]);
  expect(await world.find(refused.message)).toBeUndefined();
  expect(await world.statesOf(refused.message)).toEqual([]);
  expect(await kinds(1, { deduplication, createdAtMs: T0 + DAY_MS })).toEqual(['accepted']);
});

it('never exceeds the limit, however many publish at once', async () => {
  await open(25);
  const results = await Promise.all(Array.from({ length: 40 }, (_, index) => publish(1 + (index % 3))));
  expect(results.flat().filter(({ kind }) => kind === 'accepted')).toHaveLength(25);
});

it('continues counting after a restart', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-counts-'));
  const path = join(folder, 'waypost.db');
  try {
    await open(3, path);
    await publish(2);
    await world.store.close();
    await open(3, path);
    expect(await kinds(1)).toEqual(['accepted']);
    expect(await kinds(1)).toEqual(['overDayLimit']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('counts each project for itself', async () => {
  await open(1);
  expect(await kinds(1)).toEqual(['accepted']);
  expect(await kinds(1, { projectId: OTHER_PROJECT })).toEqual(['accepted']);
  expect(await kinds(1)).toEqual(['overDayLimit']);
});

it('starts again at midnight UTC, not before the last millisecond of the day', async () => {
  await open(1);
  expect(await kinds(1)).toEqual(['accepted']);
  expect(await kinds(1, { createdAtMs: MIDNIGHT - 1 })).toEqual(['overDayLimit']);
  expect(await kinds(1, { createdAtMs: MIDNIGHT })).toEqual(['accepted']);
  expect(await kinds(1, { createdAtMs: MIDNIGHT + 1 })).toEqual(['overDayLimit']);
});

it('does not count messages that are not saved: duplicates, and those over the limit of queues', async () => {
  await open(3);
  const deduplication = { hash: 'h', expiresAtMs: T0 + 1000 };
  expect(await kinds(1, { deduplication })).toEqual(['accepted']);
  expect(await kinds(2, { deduplication })).toEqual(['duplicate', 'duplicate']);
  expect(await kinds(1, { settings: { queueName: 'first' } })).toEqual(['accepted']);
  expect(await kinds(1, { settings: { queueName: 'second' } })).toEqual(['tooManyQueues']);
  expect(await kinds(1)).toEqual(['accepted']);
  expect(await kinds(1)).toEqual(['overDayLimit']);
});

it('counts retries from the DLQ, and never refuses them', async () => {
  await open(2);
  const { dlqId, message } = await world.acceptDead(T0);
  await publish(1);
  const successor = world.message({ url: message.url });
  expect(
    await world.store.dead.retryDead({ projectId: message.projectId, retries: [{ dlqId, successor }], nowMs: T0 }),
  ).toEqual([{ state: 'due' }]);
  expect(await publish(1)).toEqual([{ kind: 'overDayLimit', limit: 2, remaining: 0 }]);
});
