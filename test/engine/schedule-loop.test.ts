/** Schedules over a real store in memory, with time, network and crashes simulated. */

import { expect, onTestFinished, test } from 'vitest';
import type { Engine } from '../../src/engine/commands.ts';
import { createEngine } from '../../src/engine/create.ts';
import type { ScheduleCommand } from '../../src/engine/schedules/commands.ts';
import type { ScheduleView } from '../../src/engine/schedules/store.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import type { Driver } from '../../src/store/driver.ts';
import type { Store } from '../../src/store/store.ts';
import { openDatabase, storeOver } from '../simulation/database.ts';
import { type CrashPoint, FaultyDriver } from '../simulation/faulty-driver.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SILENT } from '../support/silent-log.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { SimulatedNetwork } from '../support/simulated-network.ts';
import { NOW_MS } from './fixtures.ts';

const PROJECT = 1;
const ORIGIN = 'https://a.example';
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const SETTINGS: EngineSettings = {
  ...ENGINE_SETTINGS,
  inFlightMax: 50,
  inFlightPerOriginMax: 50,
  logRetentionMs: 300 * DAY_MS,
  dlqRetentionMs: 300 * DAY_MS,
  retentionIntervalMs: DAY_MS,
};

/** A database and a network that outlive the processes that use them, of which several may run at once. */
class Bench {
  readonly clock = new SimulatedClock(NOW_MS);
  readonly network = new SimulatedNetwork(this.clock, { travelMs: () => 0, timeoutMs: MINUTE_MS });
  readonly random = new SeededRandom(12);
  readonly driver: Driver;
  readonly store: Store;
  /** The statement of its next transaction at which a process dies. */
  crash: CrashPoint = 'none';
  crashAtStatement = 1;
  /** The duration of a transaction, during which others see the previous state. */
  commitMs = 0;
  #workers = 0;

  private constructor(driver: Driver) {
    this.driver = driver;
    this.store = storeOver(driver);
    this.network.setEndpoint(ORIGIN, () => ({ kind: 'answer', status: 200, afterMs: 10 }));
  }

  static async open(): Promise<Bench> {
    const driver = await openDatabase();
    onTestFinished(() => driver.close());
    return new Bench(driver);
  }

  async start(settings: Partial<EngineSettings> = {}): Promise<Process> {
    const sender = this.network.connect();
    const die = () => {
      driver.die();
      sender.die();
    };
    const driver = new FaultyDriver({
      awake: () => Promise.resolve(),
      inner: this.driver,
      clock: this.clock,
      nextFaults: () => {
        const { crash, crashAtStatement } = this;
        this.crash = 'none';
        return {
          commitMs: this.commitMs,
          responseMs: 0,
          unavailable: false,
          losesResponse: false,
          crash,
          crashAtStatement,
        };
      },
      crash: die,
    });
    this.#workers += 1;
    const engine = await createEngine({
      store: storeOver(driver),
      clock: this.clock,
      randomness: this.random.fork(),
      delivery: sender,
      log: SILENT,
      settings: { ...SETTINGS, ...settings },
      worker: `worker-${this.#workers}`,
    });
    await this.clock.settled();
    return { engine, die, driver };
  }

  /** The creation times of all messages, as minutes since the start. */
  async triggers(): Promise<number[]> {
    const page = { count: 1_000, order: 'earliestFirst' } as const;
    const { items } = await this.store.logs.listLogs({ projectId: PROJECT, filter: { state: ['CREATED'] }, page });
    return items.map(({ atMs }) => (atMs - NOW_MS) / MINUTE_MS);
  }

  async view(id = 's'): Promise<ScheduleView> {
    const view = await this.store.schedules.findSchedule({ projectId: PROJECT, id });
    if (!view) throw new Error(`there is no schedule ${id}`);
    return view;
  }
}

interface Process {
  engine: Engine;
  die: () => void;
  driver: FaultyDriver;
}

function command(
  changes: Partial<ScheduleCommand['options']> = {},
  others: Partial<ScheduleCommand> = {},
): ScheduleCommand {
  return {
    destination: { kind: 'url', url: `${ORIGIN}/hook` },
    body: new Uint8Array(),
    options: {
      cron: '*/10 * * * *',
      scheduleId: 's',
      method: 'POST',
      header: {},
      explicitHeader: {},
      settings: { dialect: 'upstash', maxRetries: 0 },
      ...changes,
    },
    ...others,
  };
}

const create = ({ engine }: Process, given = command()) => engine.createSchedule(PROJECT, given, 0);

test('a schedule saves a message at each of its times, which starts at once', async () => {
  const bench = await Bench.open();
  await create(await bench.start());
  await bench.clock.advanceBy(35 * MINUTE_MS);
  expect(await bench.triggers()).toEqual([10, 20, 30]);
  expect(bench.network.attempts.map(({ sentAtMs }) => sentAtMs - NOW_MS)).toEqual(
    [10, 20, 30].map((at) => at * MINUTE_MS),
  );
  const { schedule, lastMessages } = await bench.view();
  expect(schedule.state).toMatchObject({ nextAtMs: NOW_MS + 40 * MINUTE_MS, isPaused: false });
  expect(schedule.state.lastTrigger?.atMs).toBe(NOW_MS + 30 * MINUTE_MS);
  expect(lastMessages).toEqual([{ messageId: bench.network.attempts[2]?.messageId, state: 'delivered' }]);
});

test('the store is not read while nothing is due', async () => {
  const bench = await Bench.open();
  const process = await bench.start();
  await create(process, command({ cron: '0 0 * * *' }));
  await bench.clock.advanceBy(1); // a start runs a round of retention
  const { calls } = process.driver;
  await bench.clock.advanceBy(23 * HOUR_MS);
  expect(process.driver.calls).toBe(calls);
});

test('a schedule that is saved while the loop sleeps for another one is triggered on time', async () => {
  const bench = await Bench.open();
  const process = await bench.start();
  await create(process, command({ cron: '0 * * * *', scheduleId: 'hourly' }));
  await bench.clock.advanceBy(MINUTE_MS);
  await create(process);
  await bench.clock.advanceBy(10 * MINUTE_MS);
  expect(await bench.triggers()).toEqual([10]);
});

test.each([
  ['before', 1],
  ['inside', 1],
  ['inside', 2],
  ['inside', 4],
  ['inside', 9],
  ['after commit', 1],
] as const)(
  'each time makes one message when the process dies at it: %s, statement %i',
  async (crash, crashAtStatement) => {
    const bench = await Bench.open();
    await create(await bench.start());
    await bench.clock.advanceBy(15 * MINUTE_MS);
    Object.assign(bench, { crash, crashAtStatement });
    await bench.clock.advanceBy(6 * MINUTE_MS);
    await bench.start();
    await bench.clock.advanceBy(10 * MINUTE_MS);
    const triggers = await bench.triggers();
    expect(triggers.map(Math.floor)).toEqual([10, crash === 'after commit' ? 20 : 21, 30]);
    expect(new Set(bench.network.attempts.map(({ messageId }) => messageId)).size).toBe(3);
  },
);

test('two schedules that differ only in their ids both save their messages', async () => {
  const bench = await Bench.open();
  const process = await bench.start();
  await create(process, command({ scheduleId: 'a' }));
  await create(process, command({ scheduleId: 'b' }));
  await bench.clock.advanceBy(10 * MINUTE_MS);
  expect(await bench.triggers()).toEqual([10, 10]);
});

test.each([
  ['one', [65, 70]],
  ['skip', [70]],
  ['all', [65, 65, 65, 65, 65, 65, 70]],
] as const)(
  'after an outage a schedule that catches up %s saves the right messages',
  async (scheduleCatchUp, expected) => {
    const bench = await Bench.open();
    const process = await bench.start();
    await create(process, command({ scheduleCatchUp }));
    process.die();
    await bench.clock.advanceBy(65 * MINUTE_MS);
    await bench.start();
    await bench.clock.advanceBy(9 * MINUTE_MS);
    expect(await bench.triggers()).toEqual(expected);
    expect((await bench.view()).lastMessages).toHaveLength(1);
  },
);

test('catching up with thousands of times is done in chunks, and saves each of them', async () => {
  const bench = await Bench.open();
  const process = await bench.start();
  await create(process, command({ cron: '* * * * *', scheduleCatchUp: 'all' }));
  process.die();
  await bench.clock.advanceBy(950 * MINUTE_MS);
  const other = await bench.start();
  await bench.clock.advanceBy(1_000);
  expect(await bench.triggers()).toHaveLength(950);
  expect(other.driver.calls).toBeGreaterThan(10);
});

test('triggers without overlap wait until the messages of the previous one are finished', async () => {
  const bench = await Bench.open();
  bench.network.setEndpoint(ORIGIN, () => ({ kind: 'answer', status: 200, afterMs: 25 * MINUTE_MS }));
  const settings = { dialect: 'upstash' as const, maxRetries: 0, timeoutMs: HOUR_MS };
  const process = await bench.start();
  await create(process, command({ scheduleOverlap: 'skip', settings }));
  // Attempts time out after a minute.
  await bench.clock.advanceBy(45 * MINUTE_MS);
  expect(await bench.triggers()).toEqual([10, 20, 30, 40]);
  await create(
    process,
    command({ cron: '* * * * *', scheduleOverlap: 'skip', settings: { ...settings, maxRetries: 1 } }),
  );
  await bench.clock.advanceBy(10 * MINUTE_MS);
  const triggers = (await bench.triggers()).slice(4);
  expect(triggers.length).toBeLessThan(6);
  expect(bench.network.attempts.filter(({ outcome }) => outcome === undefined)).toHaveLength(1);
});

test('a paused schedule lets its times pass, shows the next one unchanged, and continues after the pause', async () => {
  const bench = await Bench.open();
  const process = await bench.start();
  await create(process);
  await bench.clock.advanceBy(15 * MINUTE_MS);
  const setPaused = (isPaused: boolean) => process.engine.setSchedulePaused(PROJECT, 's', isPaused);
  expect([await setPaused(true), await setPaused(true)]).toEqual(['saved', 'saved']);
  await bench.clock.advanceBy(30 * MINUTE_MS);
  expect((await bench.view()).schedule.state).toMatchObject({ isPaused: true, nextAtMs: NOW_MS + 20 * MINUTE_MS });
  expect([await setPaused(false), await setPaused(false)]).toEqual(['saved', 'saved']);
  expect((await bench.view()).schedule.state).toMatchObject({ isPaused: false, nextAtMs: NOW_MS + 50 * MINUTE_MS });
  await bench.clock.advanceBy(10 * MINUTE_MS);
  expect(await bench.triggers()).toEqual([10, 50]);
  expect(await process.engine.setSchedulePaused(PROJECT, 'nobody', true)).toBe('missing');
});

test('overwriting replaces everything but the creation, the pause and the last run', async () => {
  const bench = await Bench.open();
  const process = await bench.start();
  await create(process, command({ delayMs: 1_000, scheduleCatchUp: 'all' }, { body: new Uint8Array([1]) }));
  await bench.clock.advanceBy(15 * MINUTE_MS);
  const { schedule: before } = await bench.view();
  await create(process, command({ cron: '0 * * * *' }));
  const { schedule: after } = await bench.view();
  expect(after).toMatchObject({ key: before.key, createdAtMs: before.createdAtMs, plan: { cron: '0 * * * *' } });
  expect(after.plan.body).toHaveLength(0);
  expect(after.plan).not.toHaveProperty('delayMs');
  expect(after.plan).not.toHaveProperty('catchUp');
  expect(after.state).toMatchObject({ nextAtMs: NOW_MS + HOUR_MS, lastTrigger: before.state.lastTrigger });
  await process.engine.setSchedulePaused(PROJECT, 's', true);
  await create(process, command({ cron: '*/5 * * * *' }));
  expect((await bench.view()).schedule.state).toMatchObject({ isPaused: true, nextAtMs: NOW_MS + 20 * MINUTE_MS });
  await bench.clock.advanceBy(HOUR_MS);
  expect(await bench.triggers()).toEqual([10]);
});

test('a schedule that is overwritten, paused or deleted at its very time saves one message or none, never two', async () => {
  const bench = await Bench.open();
  const process = await bench.start();
  const { engine } = process;
  const changes = [
    (id: string) => create(process, command({ scheduleId: id })),
    (id: string) => engine.setSchedulePaused(PROJECT, id, true),
    (id: string) => engine.storeOf(PROJECT).schedules.deleteSchedule({ id }),
    async (id: string) => {
      await engine.setSchedulePaused(PROJECT, id, true);
      await engine.setSchedulePaused(PROJECT, id, false);
    },
  ];
  for (let index = 0; index < 12; index += 1) await create(process, command({ scheduleId: `s${index}` }));
  bench.commitMs = 3;
  await bench.clock.advanceBy(10 * MINUTE_MS - 1);
  const running = Array.from({ length: 12 }, async (_, index) => {
    await bench.clock.delay(index % 3 === 0 ? 0 : 1);
    await changes[index % 4]?.(`s${index}`);
  });
  await bench.clock.advanceBy(5_000);
  await Promise.all(running);
  const { items } = await bench.store.logs.listLogs({
    projectId: PROJECT,
    filter: { state: ['CREATED'] },
    page: { count: 99, order: 'earliestFirst' },
  });
  const ids = items.map(({ message }) => message.settings.scheduleId);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBeGreaterThan(3);
});

test('no time is triggered again when the clock is set back, by itself or by a change', async () => {
  const bench = await Bench.open();
  const process = await bench.start();
  await create(process);
  await bench.clock.advanceBy(20 * MINUTE_MS);
  bench.clock.jumpBy(-15 * MINUTE_MS);
  await bench.clock.advanceBy(8 * MINUTE_MS); // 13 minutes after the start, by the clock
  expect(bench.network.attempts).toHaveLength(2);
  await create(process);
  await process.engine.setSchedulePaused(PROJECT, 's', true);
  await process.engine.setSchedulePaused(PROJECT, 's', false);
  await bench.clock.advanceBy(16 * MINUTE_MS);
  expect(bench.network.attempts).toHaveLength(2);
  await bench.clock.advanceBy(MINUTE_MS);
  expect(bench.network.attempts).toHaveLength(3);
});

test('no time is triggered twice when the clock is set back by an hour, and the next one is when the clock shows it', async () => {
  const bench = await Bench.open();
  await create(await bench.start());
  await bench.clock.advanceBy(20 * MINUTE_MS);
  expect(bench.network.attempts).toHaveLength(2);
  bench.clock.jumpBy(-60 * MINUTE_MS);
  await bench.clock.advanceBy(70 * MINUTE_MS - 1);
  expect(bench.network.attempts).toHaveLength(2);
  await bench.clock.advanceBy(1);
  expect(bench.network.attempts).toHaveLength(3);
});

test.for([
  { how: 'while it runs', isDown: false },
  { how: 'while nobody runs', isDown: true },
])('a clock that ran far ahead strands no schedule: set back $how', async ({ isDown }) => {
  const bench = await Bench.open();
  const process = await bench.start();
  await create(process);
  bench.clock.jumpBy(1_000 * DAY_MS);
  await bench.clock.advanceBy(11 * MINUTE_MS);
  const before = bench.network.attempts.length;
  expect(before).toBeGreaterThan(0);
  if (isDown) process.die();
  bench.clock.jumpBy(-1_000 * DAY_MS);
  if (isDown) await bench.start();
  await bench.clock.advanceBy(10 * MINUTE_MS);
  expect(bench.network.attempts).toHaveLength(before + 1);
});

test('a clock that is set forward is an outage, and is noticed within half a minute', async () => {
  const bench = await Bench.open();
  await create(await bench.start());
  await bench.clock.advanceBy(MINUTE_MS);
  bench.clock.jumpBy(DAY_MS);
  await bench.clock.advanceBy(30_000);
  expect(bench.network.attempts).toHaveLength(1);
  expect((await bench.view()).schedule.state.nextAtMs).toBe(NOW_MS + DAY_MS + 10 * MINUTE_MS);
});

test('a schedule whose expression cannot be read any more reports it and stops', async () => {
  const bench = await Bench.open();
  const first = await bench.start();
  await create(first);
  first.die();
  const { schedule } = await bench.view();
  const plan = { ...schedule.plan, cron: 'CRON_TZ=Atlantis/Capital * * * * *' };
  await bench.store.schedules.saveSchedule({
    schedule: { ...schedule, plan },
    fromVersion: schedule.state.version,
    schedulesMax: 0,
  });
  await bench.clock.advanceBy(HOUR_MS);
  const process = await bench.start();
  await bench.clock.advanceBy(HOUR_MS);
  expect((await bench.view()).schedule.state.error).toMatch(/^Invalid cron expression .*Atlantis/);
  expect(await bench.triggers()).toEqual([]);
  await create(process);
  await bench.clock.advanceBy(10 * MINUTE_MS);
  expect(await bench.triggers()).toHaveLength(1);
});

test('many schedules of one minute all save their messages, even more of them than slots', async () => {
  const bench = await Bench.open();
  const process = await bench.start();
  for (let index = 0; index < 150; index += 1) await create(process, command({ scheduleId: `s${index}` }));
  await bench.clock.advanceBy(10 * MINUTE_MS + 5_000);
  expect(bench.network.attempts).toHaveLength(150);
  expect(new Set(await bench.triggers())).toEqual(new Set([10]));
});

test('a shutdown waits for the triggers in progress and starts no more', async () => {
  const bench = await Bench.open();
  const process = await bench.start();
  await create(process);
  await bench.clock.advanceBy(10 * MINUTE_MS);
  const drained = process.engine.drain(1_000);
  await bench.clock.advanceBy(2_000);
  await drained;
  await bench.clock.advanceBy(HOUR_MS);
  expect(await bench.triggers()).toEqual([10]);
});
