/** Two workers on one PostgreSQL, on machines with wrong clocks: one delivers what the other had in flight. */

import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/commands.ts';
import { createEngine } from '../../src/engine/create.ts';
import type { Claimed, Outcome } from '../../src/engine/model.ts';
import type { Delivery } from '../../src/engine/ports.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import { DatabaseClock } from '../../src/engine/workers/database-clock.ts';
import { SteadyClock } from '../../src/engine/workers/steady-clock.ts';
import type { MessageSettings } from '../../src/protocol/options/settings.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import type { Store } from '../../src/store/store.ts';
import { createSystemRandomness, systemClock } from '../../src/system/system.ts';
import { currentAccounts } from '../support/current-accounts.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { eventually } from '../support/eventually.ts';
import { freshDatabase } from '../support/postgres/shared.ts';

const TIMEOUT_MS = 1_500;
interface Peer {
  engine: Engine;
  store: Store;
  /** Its events, in order. */
  events: string[];
  /** The first message that it was to deliver, and a response to it. */
  delivering: Promise<Claimed>;
  /** The round of retention at its start has ended. */
  tidied: Promise<void>;
  respond: (status: number) => void;
}

let url: string;
let projectId: number;
/** The events of all workers, in order. */
let history: string[];
/** The operator events of all workers. */
let toldOperator: unknown[];
let peers: Peer[];

beforeEach(async () => {
  url = await freshDatabase();
  history = [];
  toldOperator = [];
  peers = [];
});

afterEach(async () => {
  for (const { engine, store } of peers) {
    await engine.drain(0);
    await closeOnce(store);
  }
});

const closed = new Set<Store>();

async function closeOnce(store: Store): Promise<void> {
  if (closed.has(store)) return;
  closed.add(store);
  await store.close();
}

async function start(name: string, skewMs: number, changes: Partial<EngineSettings> = {}): Promise<Peer> {
  const machine = new SteadyClock({
    wallMs: () => systemClock.wallMs() + skewMs,
    get elapsedMs() {
      return systemClock.elapsedMs;
    },
    startTimer: (delayMs, task) => systemClock.startTimer(delayMs, task),
  });
  const store = await openPostgresStore({
    url,
    clock: machine,
    sender: name,
    onFatal: (error) => {
      throw error;
    },
  });
  ({ projectId } = await store.projects.ensureProject({
    name: 'one',
    signingKeys: { current: 'c', next: 'n' },
    nowMs: 0,
  }));
  const delivering = Promise.withResolvers<Claimed>();
  const outcome = Promise.withResolvers<Outcome>();
  const delivery: Delivery = {
    attempt: (claimed, signal) => {
      if (claimed.message.settings.isOperatorEvent) {
        toldOperator.push(JSON.parse(Buffer.from(claimed.message.body).toString()));
        return Promise.resolve({ kind: 'responded', status: 200, header: {}, body: new Uint8Array(0) });
      }
      history.push(`${name} begins`);
      delivering.resolve(claimed);
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          history.push(`${name} ends`);
          resolve({ kind: 'interrupted' });
        });
        void outcome.promise.then(resolve);
      });
    },
    close: async () => {},
  };
  const tidied = Promise.withResolvers<void>();
  const dropExpired = store.retention.dropExpired.bind(store);
  store.retention.dropExpired = async (bounds) => {
    const mayLeaveMore = await dropExpired(bounds);
    if (!mayLeaveMore) tidied.resolve();
    return mayLeaveMore;
  };
  const events: string[] = [];
  const note = (event: string) => void events.push(event);
  const clock = new DatabaseClock(machine);
  const engine = await createEngine({
    store,
    clock,
    randomness: createSystemRandomness(),
    delivery,
    log: { debug: note, info: note, warn: note, error: note },
    settings: { ...ENGINE_SETTINGS, ...changes },
    worker: name,
    recovery: { kind: 'heartbeat', clock, timeoutMs: TIMEOUT_MS, accounts: currentAccounts() },
    operatorEvents: {
      ...{ url: 'https://operator.example/', projectId, thresholds: { worker_lost: 1 }, quietMs: 60_000 },
      ...{ projectName: String, storage: { bytesMax: 0, freeBytesMin: 0 } },
    },
  });
  const respond = (status: number) =>
    outcome.resolve({ kind: 'responded', status, header: {}, body: new Uint8Array(0) });
  const peer: Peer = { engine, store, events, delivering: delivering.promise, tidied: tidied.promise, respond };
  peers.push(peer);
  return peer;
}

async function publish({ engine }: Peer, changes: Partial<MessageSettings> = {}): Promise<string> {
  const settings = { dialect: 'upstash', maxRetries: 0, ...changes } as const;
  const options = { method: 'POST', header: {}, explicitHeader: {}, settings } as const;
  const [published] = await engine.publish(projectId, [
    { url: 'https://a.example/', body: new Uint8Array(1), options: { ...options, header: {}, explicitHeader: {} } },
  ]);
  if (!published || published === 'tooManyQueues') throw new Error('nothing was published');
  return published.messageId;
}

test('a worker whose heartbeats fail releases its claims before another one delivers them, and both use the clock of the database', async () => {
  const lost = await start('lost', 90_000);
  const survivor = await start('survivor', -60_000);
  const messageId = await publish(lost);
  const first = await lost.delivering;
  expect(Math.abs(first.claimedAtMs - systemClock.nowMs())).toBeLessThan(5_000);
  await closeOnce(lost.store); // from now on it gets no responses
  const second = await survivor.delivering;
  expect(history).toEqual(['lost begins', 'lost ends', 'survivor begins']);
  expect(second.message.id).toBe(messageId);
  expect(Math.abs(second.claimedAtMs - systemClock.nowMs())).toBeLessThan(5_000);
  expect(lost.events).toContain('fence_closed');
  expect(survivor.events).toEqual(expect.arrayContaining(['worker_gone', 'rescued']));
  survivor.respond(200);
});

test('a lost worker is reported to the operator by one of the others, one that ends properly by none', async () => {
  const lost = await start('lost', 0);
  const leaver = await start('leaver', 0);
  await start('first', 0);
  await start('second', 0);
  await leaver.engine.drain(0);
  await closeOnce(lost.store);
  await eventually('the operator to be told', () => toldOperator.length > 0);
  expect(toldOperator).toMatchObject([{ kind: 'worker_lost', count: 1, example: 'lost' }]);
});

test('a worker that ends properly is noticed at once, and leaves no claims to be released', async () => {
  const leaver = await start('leaver', 0);
  const stayer = await start('stayer', 0);
  await publish(leaver);
  await leaver.delivering;
  await leaver.engine.drain(0);
  const { message } = await stayer.delivering;
  expect(message.url).toBe('https://a.example/');
  expect(stayer.events).not.toContain('rescued');
  stayer.respond(200);
});

test('a worker that was lost while the clock of the database was more than a day ahead is late after one timeout', async () => {
  const openAt = (aheadMs: number) =>
    openPostgresStore({
      ...{ url, listenUrl: '', clock: systemClock, sender: 'w', nowMs: () => systemClock.wallMs() + aheadMs },
      onFatal: (error) => {
        throw error;
      },
    });
  const heartbeat = { timeoutMs: 60_000, isLeaving: false, accountsVersion: 1 };
  const ahead = await openAt(30 * 3_600_000);
  await ahead.workers.heartbeat({ ...heartbeat, worker: 'lost' });
  await ahead.close();
  const store = await openAt(0);
  const { wallMs, leadMs } = await store.workers.heartbeat({ ...heartbeat, worker: 'live' });
  expect(leadMs).toBe(0);
  expect(await store.workers.expireWorkers({ nowMs: wallMs })).toEqual([]);
  expect((await store.workers.expireWorkers({ nowMs: wallMs + 60_001 })).sort()).toEqual(['live', 'lost']);
  await store.close();
});

test('a full worker leaves its backlogged messages to another one with capacity, within a heartbeat', async () => {
  const full = await start('full', 0, { inFlightMax: 1 });
  const idle = await start('idle', 0);
  await publish(full);
  await full.delivering;
  const inBacklog = await publish(full);
  expect((await idle.delivering).message.id).toBe(inBacklog);
  expect(history).toEqual(['full begins', 'idle begins']);
  idle.respond(200);
  full.respond(200);
});

test('a queue whose deletion a lost worker has not finished is emptied by another worker', async () => {
  const lost = await start('lost', 0);
  const survivor = await start('survivor', 0);
  await lost.engine.storeOf(projectId).queues.saveQueue({ name: 'q', parallelism: 1, isPaused: true });
  const messageId = await publish(lost, { queueName: 'q' });
  await survivor.tidied;
  await lost.store.queues.deleteQueue({ projectId, name: 'q', nowMs: systemClock.nowMs() });
  await closeOnce(lost.store);
  await eventually('the message to be cancelled', async () => {
    const { items } = await survivor.store.logs.listLogs({
      projectId,
      filter: { messageId: [messageId] },
      page: { count: 10, order: 'latestFirst' },
    });
    return items.some(({ state }) => state === 'CANCELED');
  });
  expect(history).toEqual([]);
});
