/**
 * When the operator is notified, of which events, and how often. Over a real store in memory, with time and network
 * simulated.
 */

import { describe, expect, onTestFinished, test } from 'vitest';
import type { Engine } from '../../src/engine/commands.ts';
import { createEngine } from '../../src/engine/create.ts';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import { OPERATOR_EVENTS, type OperatorEventKind } from '../../src/engine/operator-events/kinds.ts';
import type { OperatorEventsOptions } from '../../src/engine/operator-events/model.ts';
import type { ScheduleCommand } from '../../src/engine/schedules/commands.ts';
import { StoreFull, StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { Store } from '../../src/store/store.ts';
import { openDatabase, storeOver } from '../simulation/database.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { type Endpoint, SimulatedNetwork, type SimulatedSender } from '../support/simulated-network.ts';
import { message, NOW_MS } from './fixtures.ts';

const PROJECT = 1;
const OPERATOR = 9;
const QUIET_MS = 300_000;
const FAILING = 'https://fails.example';
const OPERATOR_URL = 'https://operator.example/events?secret=1';

interface ReportedEvent {
  kind: OperatorEventKind;
  project: string | null;
  count: number;
  firstAt: number;
  lastAt: number;
  example: string;
  text: string;
}

/** A server that can be restarted on its store, and an operator that records its events. */
class Bench {
  readonly store: Store;
  /** Stopped: simulated time is not set and does not sleep, so that days cost nothing. */
  readonly clock = Object.assign(new SimulatedClock(NOW_MS), { isSimulated: true });
  readonly network = new SimulatedNetwork(this.clock, { travelMs: () => 0, timeoutMs: 60_000 });
  readonly reported: ReportedEvent[] = [];
  /** The statuses of the operator's responses in order, and then 200. */
  operatorStatuses: number[] = [];
  readonly log: string[] = [];
  engine: Engine | undefined;
  sender: SimulatedSender | undefined;
  readonly #checkEveryMs: number;
  readonly #options: Partial<OperatorEventsOptions>;
  readonly #random = new SeededRandom(1);
  #starts = 0;

  private constructor(store: Store, options: Partial<OperatorEventsOptions>, lookEveryMs: number) {
    this.#checkEveryMs = lookEveryMs;
    this.store = store;
    this.#options = options;
    this.network.setEndpoint(FAILING, () => ({ kind: 'answer', status: 500, afterMs: 10 }));
    this.network.setEndpoint('https://operator.example', this.operator);
  }

  static async open(
    { lookEveryMs = 1e9, ...options }: Partial<OperatorEventsOptions> & { lookEveryMs?: number } = {},
    wrap = (store: Store): Store => store,
  ): Promise<Bench> {
    const driver = await openDatabase();
    const store = storeOver(driver);
    onTestFinished(async () => {
      await store.close();
      await driver.close();
    });
    const bench = new Bench(wrap(store), options, lookEveryMs);
    await bench.start();
    return bench;
  }

  async start(): Promise<void> {
    const { store, clock } = this;
    this.#starts += 1;
    this.sender = this.network.connect();
    const note = (event: string) => void this.log.push(event);
    this.engine = await createEngine({
      ...{ store, clock, randomness: this.#random, delivery: this.sender, worker: `worker-${this.#starts}` },
      log: { debug: note, info: note, warn: note, error: note },
      settings: {
        ...ENGINE_SETTINGS,
        inFlightMax: 1_000,
        inFlightPerOriginMax: 500,
        retentionIntervalMs: this.#checkEveryMs,
      },
      operatorEvents: {
        url: OPERATOR_URL,
        projectId: OPERATOR,
        projectName: (id) => `project-${id}`,
        thresholds: Object.fromEntries(OPERATOR_EVENTS.map((kind) => [kind, 1])),
        quietMs: QUIET_MS,
        storage: { bytesMax: 0, freeBytesMin: 0 },
        ...this.#options,
      },
    });
    await this.clock.settled();
  }

  /** Publishes `count` messages that die. */
  async bury(
    count = 1,
    projectId = PROJECT,
    settings: Partial<PublishCommand['options']['settings']> = {},
  ): Promise<void> {
    const options: PublishCommand['options'] = {
      ...{ method: 'POST', header: {}, explicitHeader: {} },
      settings: { dialect: 'upstash', maxRetries: 0, ...settings },
    };
    const command: PublishCommand = { url: `${FAILING}/secret-path`, body: Buffer.from('secret body'), options };
    await this.engine?.publish(
      projectId,
      Array.from({ length: count }, () => command),
    );
    await this.clock.advanceBy(20);
  }

  readonly operator: Endpoint = ({ claimed }) => {
    this.reported.push(JSON.parse(Buffer.from(claimed.message.body).toString()));
    return { kind: 'answer', status: this.operatorStatuses.shift() ?? 200, afterMs: 10 };
  };

  /** Publishes more to `origin`, which does not respond, than its concurrency window holds. Each is tried twice. */
  async overload(origin: string): Promise<void> {
    this.network.setEndpoint(origin, () => ({ kind: 'reset', afterMs: 1 }));
    const options: PublishCommand['options'] = {
      ...{ method: 'POST', header: {}, explicitHeader: {} },
      settings: { dialect: 'upstash', maxRetries: 9 },
    };
    const command: PublishCommand = { url: `${origin}/`, body: new Uint8Array(), options };
    const ids = await this.engine?.publish(
      PROJECT,
      Array.from({ length: 60 }, () => command),
    );
    await this.clock.advanceBy(10);
    await this.engine?.cancelMatching(PROJECT, {});
    if (ids?.length !== 60) throw new Error('not all were published');
  }

  kinds(): string[] {
    return this.reported.map(({ kind, count }) => `${kind} ${count}`);
  }

  async deadOf(projectId: number): Promise<string[]> {
    const page = { count: 100, order: 'earliestFirst' } as const;
    return (await this.store.dead.listDead({ projectId, filter: {}, page })).items.map(({ dlqId }) => dlqId);
  }
}

describe('dead messages', () => {
  test('are reported at once, then together with all that died in the quiet period, and no more while none dies', async () => {
    const bench = await Bench.open();
    await bench.bury(3);
    await bench.clock.advanceBy(1_100);
    expect(bench.kinds()).toEqual(['message_buried 3']);
    for (let minute = 0; minute < 4; minute += 1) {
      await bench.bury(60);
      await bench.clock.advanceBy(60_000);
    }
    expect(bench.kinds()).toHaveLength(1);
    await bench.clock.advanceBy(60_000);
    expect(bench.kinds()).toEqual(['message_buried 3', 'message_buried 240']);
    await bench.clock.advanceBy(10 * QUIET_MS);
    expect(bench.kinds()).toHaveLength(2);
    await bench.bury();
    await bench.clock.advanceBy(1_100);
    expect(bench.kinds().at(-1)).toBe('message_buried 1');
  });

  test('are reported by project, time and DLQ id, in a sentence, without their content', async () => {
    const bench = await Bench.open();
    await bench.bury();
    await bench.bury(2, 2);
    await bench.clock.advanceBy(1_100);
    const [dlqId = ''] = await bench.deadOf(PROJECT);
    const time = new Date(NOW_MS).toISOString().replace('.000', '');
    expect(bench.reported).toMatchObject([
      {
        ...{
          kind: 'message_buried',
          project: 'project-1',
          count: 1,
          firstAt: NOW_MS + 10,
          lastAt: NOW_MS + 10,
          example: dlqId,
        },
        text: `project project-1: 1 message went into the DLQ; the first: ${dlqId}, at ${time}`,
      },
      { project: 'project-2', count: 2 },
    ]);
    expect(JSON.stringify(bench.reported)).not.toMatch(/secret|example\.|https/);
  });

  test('are not reported while a retry is still planned', async () => {
    const bench = await Bench.open();
    await bench.bury(1, PROJECT, { maxRetries: 1 });
    await bench.clock.advanceBy(5_000);
    expect(bench.reported).toEqual([]);
  });

  test('are reported from the threshold on; fewer in a quiet period are forgotten', async () => {
    const bench = await Bench.open({ thresholds: { message_buried: 10 } });
    await bench.bury(9);
    await bench.clock.advanceBy(QUIET_MS + 1_000);
    await bench.bury(9);
    await bench.clock.advanceBy(2_000);
    expect(bench.reported).toEqual([]);
    await bench.bury(1);
    await bench.clock.advanceBy(1_100);
    expect(bench.kinds()).toEqual(['message_buried 10']);
  });

  test('are reported after a crash that came first', async () => {
    const bench = await Bench.open();
    await bench.bury(2);
    bench.sender?.die(); // the first engine must not be polled again: its timers would find the reported tally
    await bench.start();
    await bench.clock.advanceBy(2_000);
    expect(bench.kinds()).toEqual(['message_buried 2']);
  });

  test('are reported by one of several workers, whichever they died at', async () => {
    const bench = await Bench.open();
    const engines = [bench.engine];
    for (const _ of [2, 3]) {
      await bench.start();
      engines.push(bench.engine);
    }
    for (const engine of engines) {
      bench.engine = engine;
      await bench.bury();
    }
    await bench.clock.advanceBy(QUIET_MS + 5_000);
    expect(bench.kinds()).toEqual(['message_buried 3']);
  });
});

describe('the message of an event', () => {
  const DAYS = 3 * 86_400_000;

  /** For an operator that never responds with success, until no work is left. */
  async function playDeadOperator(bench: Bench): Promise<void> {
    bench.operatorStatuses = new Array(1_000).fill(500);
    await bench.bury();
    await bench.clock.advanceBy(DAYS);
  }

  test('causes no event when it dies, before and after a restart and a retry from the DLQ', async () => {
    const bench = await Bench.open();
    await playDeadOperator(bench);
    expect(bench.kinds()).toEqual(new Array(6).fill('message_buried 1')); // one message, five retries
    const dead = await bench.deadOf(OPERATOR);
    expect(dead).toHaveLength(1);
    await bench.start();
    await bench.engine?.retryDead(OPERATOR, dead, { maxRetries: 0 });
    await bench.clock.advanceBy(DAYS);
    expect(bench.kinds()).toHaveLength(7);
    expect(await bench.deadOf(OPERATOR)).toHaveLength(1);
  });

  test('planted: without its mark it causes events without end', async () => {
    const bench = await Bench.open({}, (store) => {
      const { reportTally } = store.operatorEvents;
      store.operatorEvents.reportTally = (args) => {
        delete args.message.message.settings.isOperatorEvent;
        return reportTally(args);
      };
      return store;
    });
    await playDeadOperator(bench);
    expect(new Set(bench.reported.map(({ project }) => project))).toContain('project-9');
  });

  test('is an event when the operator publishes it: only messages of Waypost are marked', async () => {
    const bench = await Bench.open();
    await bench.bury(1, OPERATOR);
    await bench.clock.advanceBy(2_000);
    expect(bench.reported).toMatchObject([{ kind: 'message_buried', project: 'project-9' }]);
  });

  test('is sent to an origin that is not reported when it is held back', async () => {
    const bench = await Bench.open();
    await bench.overload('https://operator.example');
    expect(bench.log).toContain('origin_held_back');
    bench.network.setEndpoint('https://operator.example', bench.operator);
    await bench.bury();
    await bench.clock.advanceBy(QUIET_MS);
    expect(bench.kinds()).toEqual(['message_buried 1']);
  });
});

describe('an origin that is held back', () => {
  test('is reported once in a quiet period, whichever workers notice', async () => {
    const bench = await Bench.open();
    await bench.overload('https://gone.example');
    await bench.clock.advanceBy(2_000);
    await bench.start();
    await bench.overload('https://gone.example');
    await bench.clock.advanceBy(QUIET_MS);
    expect(bench.log.filter((event) => event === 'origin_held_back')).toHaveLength(2);
    expect(bench.reported).toMatchObject([
      { kind: 'origin_held', project: null, count: 1, example: 'https://gone.example' },
    ]);
  });
});

describe('a schedule', () => {
  const hourly: ScheduleCommand = {
    ...{ destination: { kind: 'url', url: `${FAILING}/` }, body: new Uint8Array() },
    options: {
      ...{ cron: '0 * * * *', scheduleId: 'hourly', method: 'POST', header: {}, explicitHeader: {} },
      settings: { dialect: 'upstash', maxRetries: 9 },
    },
  };

  test('whose time passed while no worker ran is reported, one that is on time is not', async () => {
    const bench = await Bench.open();
    await bench.engine?.createSchedule(PROJECT, hourly, 0);
    await bench.clock.advanceBy(3_600_000 + 2_000);
    expect(bench.reported).toEqual([]);
    await bench.engine?.drain(0);
    bench.clock.jumpBy(2 * 3_600_000);
    await bench.start();
    await bench.clock.advanceBy(2_000);
    expect(bench.reported).toMatchObject([
      { kind: 'schedule_missed', project: 'project-1', count: 1, example: 'hourly' },
    ]);
  });
});

describe('a worker', () => {
  test('that was not stopped is reported when the next one starts, one that was stopped is not', async () => {
    const bench = await Bench.open();
    await bench.engine?.drain(0);
    await bench.start();
    await bench.clock.advanceBy(2_000);
    expect(bench.reported).toEqual([]);
    const newMessage = message({ key: await bench.store.messages.reserveNumbers({ count: 2 }), url: FAILING });
    await bench.store.messages.accept({
      messages: [
        { message: newMessage, state: { kind: 'claimed', claimToken: newMessage.key + 1, worker: 'dead' }, events: [] },
      ],
      nowMs: NOW_MS,
    });
    await bench.start();
    await bench.clock.advanceBy(2_000);
    expect(bench.reported).toMatchObject([
      { kind: 'worker_lost', project: null, example: 'the process before, with 1 attempts under way' },
    ]);
  });
});

describe('the store', () => {
  test('is reported when it is larger than it should be, and again once it was smaller', async () => {
    let free = 10_000;
    const storage = { bytesMax: 0, freeBytesMin: 5_000, readFreeBytes: async () => free };
    const bench = await Bench.open({ storage, lookEveryMs: 60_000 });
    await bench.clock.advanceBy(120_000);
    expect(bench.reported).toEqual([]);
    free = 4_999;
    await bench.clock.advanceBy(30 * 60_000);
    expect(bench.reported).toMatchObject([{ kind: 'store_filling', example: 'its disk has 4999 bytes left' }]);
    free = 10_000;
    await bench.clock.advanceBy(60_000);
    free = 4_000;
    await bench.clock.advanceBy(61_500);
    expect(bench.kinds()).toHaveLength(2);
  });

  test('is checked again, and nothing is reported twice, after the size of its disk could not be read', async () => {
    let readFreeBytes = async () => 4_999;
    const storage = { bytesMax: 0, freeBytesMin: 5_000, readFreeBytes: () => readFreeBytes() };
    const bench = await Bench.open({ storage, lookEveryMs: 60_000 });
    await bench.clock.advanceBy(60_000);
    expect(bench.kinds()).toEqual(['store_filling 1']);
    readFreeBytes = () => Promise.reject(new Error('EACCES: permission denied, statfs'));
    await bench.clock.advanceBy(60_000);
    expect(bench.log).toContain('operator_events_failed');
    readFreeBytes = async () => 4_998;
    await bench.clock.advanceBy(2 * QUIET_MS);
    expect(bench.kinds()).toHaveLength(1);
    readFreeBytes = async () => 10_000;
    await bench.clock.advanceBy(60_000);
    readFreeBytes = async () => 4_997;
    await bench.clock.advanceBy(61_500);
    expect(bench.reported.map(({ example }) => example)).toEqual([
      'its disk has 4999 bytes left',
      'its disk has 4997 bytes left',
    ]);
  });

  test('is reported by an unsaved request when it is full, until the operator responds with success', async () => {
    let isFull = false;
    const bench = await Bench.open({ lookEveryMs: 60_000 }, (store) => {
      const { ping } = store;
      store.ping = () => (isFull ? Promise.reject(new StoreFull('the disk is full')) : ping.call(store));
      return store;
    });
    bench.operatorStatuses = [500, 503];
    isFull = true;
    await bench.clock.advanceBy(60_000 + 70_000 + 100);
    expect(bench.reported).toMatchObject(
      new Array(3).fill({ kind: 'store_full', project: null, example: 'the disk is full' }),
    );
    const ids = bench.network.attempts.map(({ messageId }) => messageId);
    expect(new Set(ids).size).toBe(1);
    const page = { count: 10, order: 'latestFirst' } as const;
    expect((await bench.store.logs.listLogs({ projectId: OPERATOR, filter: {}, page })).items).toEqual([]);
    await bench.clock.advanceBy(QUIET_MS - 70_000);
    expect(bench.reported).toHaveLength(3);
    isFull = false;
    await bench.clock.advanceBy(2 * QUIET_MS);
    expect(bench.reported).toHaveLength(3);
  });
});

describe('in one of several cells', () => {
  test('an event is saved where the operator has a project, and its tally is reset only then', async () => {
    const saved: { hash: string; told: unknown }[] = [];
    let isAway = true;
    const cell = {
      name: 'second',
      saveElsewhere: async ({ body }: { body: Uint8Array }, hash: string) => {
        saved.push({ hash, told: JSON.parse(Buffer.from(body).toString()) });
        if (isAway) throw new StoreUnavailable('the cell of the operator is away');
      },
    };
    const bench = await Bench.open({ cell: () => cell });
    await bench.bury(2);
    await bench.clock.advanceBy(3_000);
    isAway = false;
    await bench.clock.advanceBy(2 * QUIET_MS);
    expect(bench.reported).toEqual([]);
    expect(saved.length).toBeGreaterThan(1);
    expect(new Set(saved.map(({ hash }) => hash)).size).toBe(1);
    expect(saved.at(-1)?.told).toMatchObject({
      ...{ kind: 'message_buried', project: 'project-1', cell: 'second', count: 2 },
      text: expect.stringMatching(/^cell second: project project-1: 2 messages went into the DLQ; /),
    });
    const count = saved.length;
    await bench.bury();
    await bench.clock.advanceBy(2_000);
    expect(saved.slice(count).map(({ told }) => told)).toMatchObject([{ count: 1 }]);
  });

  test('an event of another cell is saved and delivered once, however often it arrives', async () => {
    const bench = await Bench.open();
    const event = {
      ...message({ key: 77, projectId: OPERATOR, url: OPERATOR_URL, origin: new URL(OPERATOR_URL).origin }),
      body: Buffer.from('{"count":5}'),
    };
    await bench.engine?.saveEvent(OPERATOR, event, 'hash');
    await bench.engine?.saveEvent(OPERATOR, { ...event, key: 78 }, 'hash');
    await bench.clock.advanceBy(100);
    expect(bench.reported).toMatchObject([{ count: 5 }]);
  });
});
