/** Scenarios in the simulated world, each about one case that random runs reach only rarely. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { CallbackSettings, MessageSettings } from '../../src/protocol/options/settings.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import type { Attempt } from '../support/simulated-network.ts';
import { openDatabase } from './database.ts';
import { historiesOf } from './histories.ts';
import { PROJECT, World } from './world.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const SETTINGS: EngineSettings = {
  ...ENGINE_SETTINGS,
  inFlightMax: 50,
  inFlightBytesMax: 10_000_000,
  logRetentionMs: 7 * DAY_MS,
  dlqRetentionMs: 7 * DAY_MS,
  retentionIntervalMs: DAY_MS,
};

/** A world without faults, with its server running. */
async function runningWorld(settings: Partial<EngineSettings> = {}, shared: { workers?: number } = {}): Promise<World> {
  const driver = await openDatabase();
  onTestFinished(() => driver.close());
  const world = new World({
    random: new SeededRandom(1),
    drivers: [driver],
    settings: { ...SETTINGS, ...settings },
    ...shared,
  });
  void world.start();
  await world.clock.runUntil(() => world.isUp, 1_000);
  return world;
}

function command(origin: string, changes: Partial<PublishCommand['options']> = {}, maxRetries = 3): PublishCommand {
  const options = { method: 'POST' as const, header: {}, explicitHeader: {}, ...changes };
  return {
    url: `${origin}/hook`,
    body: new Uint8Array(),
    options: { settings: { dialect: 'upstash', maxRetries, retryDelayExpression: '1000' }, ...options },
  };
}

async function publish(world: World, commands: PublishCommand[]): Promise<string[]> {
  const engine = world.engine;
  if (!engine) throw new Error('the server is down');
  let ids: string[] | undefined;
  const publishing = engine.publish(PROJECT, commands).then((published) => {
    ids = published.flatMap((outcome) => (outcome === 'tooManyQueues' ? [] : [outcome.messageId]));
  });
  publishing.catch(() => {}); // awaited below, after time has passed
  await world.clock.runUntil(() => ids !== undefined, 60_000);
  await publishing;
  return ids ?? [];
}

function answering(world: World, origin: string, status: number, afterMs: number): void {
  world.network.setEndpoint(origin, () => ({ kind: 'answer', status, afterMs }));
}

async function lettersOf(world: World, id: string): Promise<string | undefined> {
  const page = await world.store?.logs.listLogs({
    projectId: PROJECT,
    filter: { messageId: [id] },
    page: { count: 100, order: 'earliestFirst' },
  });
  return historiesOf(page?.items ?? []).get(id)?.letters;
}

function retriedOf(attempts: Attempt[], id: string): number[] {
  return attempts.filter(({ messageId }) => messageId === id).map(({ retried }) => retried);
}

test('P7: an answer that arrives as the process dies is repeated once, with the same id and the same count', async () => {
  const world = await runningWorld();
  answering(world, 'https://a.example', 200, 500);
  const [id = ''] = await publish(world, [command('https://a.example')]);
  await world.clock.advanceBy(300);
  world.crash('while the endpoint answers');
  await world.clock.advanceBy(60_000);
  expect(retriedOf(world.network.attempts, id)).toEqual([0, 0]);
  expect(await lettersOf(world, id)).toBe('CAAD');
});

/** Resolves to the numbers of accepted and of delivered messages in the counts by minute. */
async function counted(world: World): Promise<number[]> {
  const minutes = await world.store?.minutes.listMinutes({ projectId: PROJECT, fromMs: 0, toMs: 1e15, count: 100 });
  const sum = (name: 'accepted' | 'delivered') => (minutes ?? []).reduce((all, minute) => all + minute[name], 0);
  return [sum('accepted'), sum('delivered')];
}

test('what is counted by the minute survives restarts: a crash loses the last ten seconds of it, a shutdown nothing', async () => {
  const world = await runningWorld();
  answering(world, 'https://a.example', 200, 10);
  await publish(world, [command('https://a.example'), command('https://a.example')]);
  await world.clock.advanceBy(10_000);
  await publish(world, [command('https://a.example')]);
  await world.clock.advanceBy(9_000);
  world.crash('with counts that are not saved');
  await world.clock.advanceBy(60_000);
  expect(await counted(world)).toEqual([2, 2]);
  await publish(world, [command('https://a.example')]);
  await world.clock.advanceBy(1_000);
  void world.shutDown(1_000);
  await world.clock.advanceBy(60_000);
  expect(await counted(world)).toEqual([3, 3]);
});

test('an answer after our time limit counts as a failure: the endpoint sees the message again, as a retry', async () => {
  const world = await runningWorld();
  answering(world, 'https://a.example', 200, 5_000);
  const settings = { dialect: 'upstash' as const, maxRetries: 1, retryDelayExpression: '0', timeoutMs: 2_000 };
  const [id = ''] = await publish(world, [command('https://a.example', { settings })]);
  await world.clock.advanceBy(60_000);
  expect(retriedOf(world.network.attempts, id)).toEqual([0, 1]);
  expect(await lettersOf(world, id)).toBe('CAERAEF');
});

test('a shutdown under load loses nothing and counts nothing against those that it cuts off', async () => {
  const world = await runningWorld({ inFlightMax: 200 });
  answering(world, 'https://quick.example', 200, 50);
  world.network.setEndpoint('https://slow.example', () => ({ kind: 'answer', status: 200, afterMs: 20_000 }));
  const origins = ['https://quick.example', 'https://slow.example'];
  const commands = Array.from({ length: 60 }, (_, index) => command(origins[index % 2] ?? ''));
  const ids = await publish(world, commands);
  await world.clock.advanceBy(10);
  void world.shutDown(1_000);
  await world.clock.advanceBy(2 * 60_000 + 30_000);
  const letters = await Promise.all(ids.map((id) => lettersOf(world, id)));
  expect(letters.filter((each) => each === 'CAD').length).toBe(54);
  expect(letters.filter((each) => each === 'CAAD').length).toBe(6);
  expect(world.network.attempts.every(({ retried }) => retried === 0)).toBe(true);
});

test('a refused publish leaves nothing behind', async () => {
  const world = await runningWorld();
  world.makeUnavailable(10_000);
  await expect(publish(world, [command('https://a.example')])).rejects.toThrow(StoreUnavailable);
  await world.clock.advanceBy(60_000);
  expect(await world.queryAll('select * from messages')).toEqual([]);
  expect(await world.queryAll('select * from contents')).toEqual([]);
  expect(world.network.attempts).toEqual([]);
});

test('P9: hundreds of messages to a dead endpoint cost its neighbour nothing, and the store little', async () => {
  const world = await runningWorld();
  world.network.setEndpoint('https://dead.example', () => ({ kind: 'silence' }));
  answering(world, 'https://healthy.example', 200, 20);
  const settings = { dialect: 'upstash' as const, maxRetries: 2, retryDelayExpression: '1000', timeoutMs: 5_000 };
  const dead = Array.from({ length: 300 }, () => command('https://dead.example', { settings }));
  await publish(world, dead);
  const waits: number[] = [];
  for (let minute = 0; minute < 60; minute += 1) {
    const publishedAtMs = world.clock.elapsedMs;
    const [id = ''] = await publish(world, [command('https://healthy.example')]);
    await world.clock.advanceBy(60_000);
    const first = world.network.attempts.find(({ messageId }) => messageId === id);
    waits.push((first ? (world.startOf.get(first)?.atMs ?? Infinity) : Infinity) - publishedAtMs);
  }
  expect(Math.max(...waits)).toBeLessThan(50);
  // Each attempt causes at most a settle, a claim of newly due messages and a claim from the endpoint backlog. A few more
  // calls are made in total.
  expect(world.driverCalls).toBeLessThan(3 * world.network.attempts.length + 500);
});

test('a backlog that falls due at once goes out oldest first, within the limits, and all of it', async () => {
  const world = await runningWorld();
  answering(world, 'https://a.example', 200, 5);
  const ids: string[] = [];
  for (let batch = 0; batch < 10; batch += 1) {
    ids.push(
      ...(await publish(
        world,
        Array.from({ length: 100 }, () => command('https://a.example', { delayMs: HOUR_MS })),
      )),
    );
  }
  await world.clock.advanceBy(2 * HOUR_MS);
  expect(world.violations).toEqual([]);
  expect(world.network.attempts.map(({ messageId }) => messageId)).toEqual(ids);
});

test('a wall clock that is set forward by an hour sends what is due by it, and no timer is lost', async () => {
  const world = await runningWorld();
  answering(world, 'https://a.example', 200, 5);
  const [soon = '', later = ''] = await publish(world, [
    command('https://a.example', { delayMs: HOUR_MS / 2 }),
    command('https://a.example', { delayMs: 2 * HOUR_MS }),
  ]);
  world.jumpClock(HOUR_MS);
  await world.clock.advanceBy(60_000);
  expect([await lettersOf(world, soon), await lettersOf(world, later)]).toEqual(['CAD', 'C']);
  await world.clock.advanceBy(HOUR_MS);
  expect(await lettersOf(world, later)).toBe('CAD');
});

test('delays and retries count the time that passes when the wall clock is set back by an hour', async () => {
  const world = await runningWorld();
  answering(world, 'https://a.example', 200, 5);
  answering(world, 'https://b.example', 500, 5);
  const [delayed = '', retried = ''] = await publish(world, [
    command('https://a.example', { delayMs: 60_000 }),
    command('https://b.example', {}, 1),
  ]);
  await world.clock.advanceBy(1_000);
  world.jumpClock(-HOUR_MS);
  await world.clock.advanceBy(60_000); // the first back-off is 12 seconds
  expect([await lettersOf(world, delayed), await lettersOf(world, retried)]).toEqual(['CAD', 'CAERAEF']);
});

test('after a restart the wall clock counts', async () => {
  const world = await runningWorld();
  answering(world, 'https://a.example', 200, 5);
  const [waiting = ''] = await publish(world, [command('https://a.example', { delayMs: 60_000 })]);
  await world.clock.advanceBy(1_000);
  world.jumpClock(-HOUR_MS);
  world.crash('after the wall clock was set back');
  await world.clock.runUntil(() => world.isUp, 60_000);
  await world.clock.advanceBy(HOUR_MS);
  expect(await lettersOf(world, waiting)).toBe('C');
  await world.clock.advanceBy(60_000);
  expect(await lettersOf(world, waiting)).toBe('CAD');
});

test('workers go on together when the clock of their database is set back by an hour, and notice who dies then', async () => {
  const world = await runningWorld({}, { workers: 3 });
  answering(world, 'https://a.example', 200, 5);
  world.network.setEndpoint('https://slow.example', () => ({ kind: 'answer', status: 200, afterMs: 10_000 }));
  const [delayed = ''] = await publish(world, [command('https://a.example', { delayMs: 60_000 })]);
  const ids = await publish(
    world,
    Array.from({ length: 6 }, () => command('https://slow.example')),
  );
  world.clock.jumpBy(-HOUR_MS);
  world.crash('as the clock was set back');
  await world.clock.advanceBy(30_000); // longer than a worker may go without a heartbeat
  expect(world.counts['dismissals']).toBe(1);
  await world.clock.advanceBy(31_000);
  expect(await lettersOf(world, delayed)).toBe('CAD');
  expect(world.counts['dismissals']).toBe(1);
  const letters = await Promise.all(ids.map((id) => lettersOf(world, id)));
  expect(letters.filter((each) => /^CA+D$/.test(each ?? ''))).toHaveLength(6);
});

test('what is not to be sent before a time that a client names is sent by the wall clock', async () => {
  const world = await runningWorld();
  answering(world, 'https://a.example', 200, 5);
  world.jumpClock(-HOUR_MS);
  const notBeforeMs = world.clock.wallMs() + 60_000;
  const [id = ''] = await publish(world, [command('https://a.example', { notBeforeMs })]);
  await world.clock.advanceBy(notBeforeMs - 1 - world.clock.wallMs());
  expect(await lettersOf(world, id)).toBe('C');
  await world.clock.advanceBy(100);
  expect(await lettersOf(world, id)).toBe('CAD');
});

test('logs of a message stay in order though the wall clock is set back in the middle of its attempt', async () => {
  const world = await runningWorld();
  answering(world, 'https://a.example', 500, 1_000);
  const [id = ''] = await publish(world, [command('https://a.example', {}, 1)]);
  await world.clock.advanceBy(500);
  world.jumpClock(-HOUR_MS);
  await world.clock.advanceBy(2 * HOUR_MS);
  expect(await lettersOf(world, id)).toBe('CAERAEF');
});

test('P6: the result of a dead process changes nothing, before and after the message was claimed anew', async () => {
  const world = await runningWorld();
  answering(world, 'https://a.example', 200, 10_000);
  const [id = ''] = await publish(world, [command('https://a.example')]);
  await world.clock.advanceBy(100);
  world.crash('with one attempt running');
  const [orphan] = world.orphans;
  await world.clock.runUntil(() => world.network.attempts.length === 2, 60_000);
  const answers: string[] = [];
  const nowMs = world.clock.nowMs();
  const settling = world.store?.messages.settle({
    settlement: {
      key: orphan?.message.key ?? 0,
      projectId: PROJECT,
      claimToken: orphan?.claimToken ?? 0,
      change: { next: { kind: 'finished' }, events: [{ atMs: nowMs, state: 'DELIVERED' }] },
    },
    nowMs,
  });
  void settling?.then(({ kind }) => answers.push(kind));
  await world.clock.advanceBy(1_000);
  expect(answers).toEqual(['stale']);
  expect(await lettersOf(world, id)).toBe('CAA');
  await world.clock.advanceBy(60_000);
  expect(await lettersOf(world, id)).toBe('CAAD');
});

describe('callback chains', () => {
  const to = (name: string): CallbackSettings => ({ url: `https://${name}.example/`, method: 'POST', header: {} });

  async function publishTold(world: World, settings: Partial<MessageSettings>): Promise<string> {
    const full = { dialect: 'upstash' as const, maxRetries: 0, ...settings };
    const [id = ''] = await publish(world, [command('https://a.example', { settings: full })]);
    return id;
  }

  /** The logged states of each message to the callback `name`, in order of creation. */
  async function lettersAt(world: World, name: string): Promise<string[]> {
    const filter = { url: [to(name).url] };
    const page = await world.store?.logs.listLogs({
      projectId: PROJECT,
      filter,
      page: { count: 1_000, order: 'earliestFirst' },
    });
    return [...historiesOf(page?.items ?? []).values()].map(({ letters }) => letters);
  }

  test('a callback whose endpoint is down is retried by itself, dies by itself, and its source stays delivered', async () => {
    const world = await runningWorld();
    answering(world, 'https://a.example', 200, 10);
    answering(world, 'https://down.example', 503, 10);
    const id = await publishTold(world, { callback: { ...to('down'), maxRetries: 2, retryDelayExpression: '1000' } });
    await world.clock.advanceBy(60_000);
    expect(await lettersOf(world, id)).toBe('CAD');
    expect(retriedOf(world.network.attempts, id)).toEqual([0]);
    expect(await lettersAt(world, 'down')).toEqual(['CAERAERAEF']);
    const dead = await world.store?.dead.listDead({
      projectId: PROJECT,
      filter: {},
      page: { count: 10, order: 'latestFirst' },
    });
    expect(dead?.items.map(({ message }) => message.url)).toEqual([to('down').url]);
  });

  test('a callback of a callback of a callback reports each attempt before it, and then the chain ends', async () => {
    const world = await runningWorld();
    for (const name of ['a', 'third']) answering(world, `https://${name}.example`, 200, 10);
    for (const name of ['first', 'second']) answering(world, `https://${name}.example`, 500, 10);
    const once = { maxRetries: 1, retryDelayExpression: '1000' };
    const second = { ...to('second'), ...once, callback: { ...to('third'), ...once } };
    await publishTold(world, { callback: { ...to('first'), ...once, callback: second } });
    await world.clock.advanceBy(DAY_MS);
    expect(await lettersAt(world, 'first')).toEqual(['CAERAEF']);
    expect(await lettersAt(world, 'second')).toEqual(['CAERAEF', 'CAERAEF']);
    expect(await lettersAt(world, 'third')).toEqual(['CAD', 'CAD', 'CAD', 'CAD']);
    expect(await world.queryAll('select key from messages')).toEqual([]);
  });

  test('the failure callback of a dead message that dies as well tells its own failure callback, once', async () => {
    const world = await runningWorld();
    for (const name of ['a', 'first']) answering(world, `https://${name}.example`, 500, 10);
    answering(world, 'https://last.example', 200, 10);
    const id = await publishTold(world, { failureCallback: { ...to('first'), failureCallback: to('last') } });
    await world.clock.advanceBy(DAY_MS);
    expect([await lettersOf(world, id), await lettersAt(world, 'first'), await lettersAt(world, 'last')]).toEqual([
      'CAEF',
      ['CAEF'],
      ['CAD'],
    ]);
  });

  test('a message that tells its own destination ends after the levels that were given', async () => {
    const world = await runningWorld();
    answering(world, 'https://a.example', 200, 10);
    const deep = { ...to('a'), callback: { ...to('a'), callback: to('a') } };
    await publishTold(world, { callback: deep });
    await world.clock.advanceBy(DAY_MS);
    expect(world.network.attempts.length).toBe(4);
  });
});
