/** When publishes start to be saved, and the log events when some are refused. */
import { beforeEach, describe, expect, test } from 'vitest';
import { LARGE_CLAIM, LaggingProjects } from '../../src/engine/admission/lagging-projects.ts';
import { PublishGate } from '../../src/engine/admission/publish-gate.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { Overloaded } from '../../src/protocol/rate-limits.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { claimed, message } from './fixtures.ts';

const BUSY = 1;
const QUIET = 2;
const TARGET_MS = 500;

let clock: SimulatedClock;
let logged: string[];
let gate: PublishGate;
let backlog: LaggingProjects;
/** The publishes that are being saved, in the order of their starts. */
let saving: { name: string; end: (error?: Error) => void }[];

beforeEach(() => {
  clock = new SimulatedClock();
  logged = [];
  saving = [];
  const note = (event: string, fields = {}): void => {
    logged.push(`${event} ${JSON.stringify(fields)}`);
  };
  backlog = new LaggingProjects();
  const log = { debug: note, info: note, warn: note, error: note };
  gate = new PublishGate(clock, log, TARGET_MS, backlog);
});

async function publish(projectId: number, name: string, count = 1): Promise<void> {
  const entered = gate.enter(projectId, count);
  const leave = entered instanceof Promise ? await entered : entered;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  saving.push({ name, end: (error) => (error ? reject(error) : resolve()) });
  promise.then(() => leave(), leave);
  return promise;
}

function many(projectId: number, name: string, count: number): Promise<void>[] {
  return Array.from({ length: count }, () => publish(projectId, name));
}

/** The number of publishes of each name that are being saved. */
function savingNow(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { name } of saving) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** Ends the saving of the first `count`, and returns those that are being saved then. */
async function save(count: number): Promise<Record<string, number>> {
  for (const { end } of saving.splice(0, count)) end();
  await clock.settled();
  return savingNow();
}

describe('publishes', () => {
  test('of a project are saved up to a limit, and the others wait', async () => {
    void many(BUSY, 'busy', 100);
    expect(savingNow()).toEqual({ busy: 64 });
    expect(await save(10)).toEqual({ busy: 64 });
    expect(await save(64)).toEqual({ busy: 26 });
    expect(await save(26)).toEqual({});
  });

  test('do not start more merely because none waits while others are saved', async () => {
    void many(BUSY, 'busy', 64);
    await save(1);
    void many(BUSY, 'later', 2);
    expect(savingNow()).toEqual({ busy: 63, later: 1 });
  });

  test('of another project start at once, however many of one are being saved and wait', () => {
    void many(BUSY, 'busy', 500);
    void many(QUIET, 'quiet', 3);
    expect(savingNow()).toEqual({ busy: 64, quiet: 3 });
  });

  test('count their messages, and those of a large batch as a quarter', async () => {
    for (const name of ['first', 'second', 'third', 'fourth', 'fifth']) void publish(BUSY, name, 1_000);
    expect(savingNow()).toEqual({ first: 1, second: 1, third: 1, fourth: 1 });
    expect(await save(1)).toEqual({ second: 1, third: 1, fourth: 1, fifth: 1 });
  });

  test('that could not be saved pass their capacity to the next', async () => {
    await clock.advanceBy(5_000);
    const [first] = many(BUSY, 'busy', 65);
    await clock.advanceBy(1_000);
    saving.shift()?.end(new StoreUnavailable('the disk is full'));
    await expect(first).rejects.toThrow('the disk is full');
    expect(savingNow()).toEqual({ busy: 64 });
  });

  test('do not wait behind those that a hanging store has refused', async () => {
    const publishes = many(BUSY, 'busy', 70);
    const outcomes = Promise.allSettled(publishes);
    await clock.advanceBy(5_000);
    for (const { end } of saving.splice(0)) end(new StoreUnavailable('no answer'));
    const refused = (await outcomes).filter(({ status }) => status === 'rejected');
    expect([refused.length, savingNow()]).toEqual([70, {}]);
  });
});

describe('while earlier messages wait for this worker', () => {
  const MANY = Array.from({ length: LARGE_CLAIM }, () => claimed({ message: message({ projectId: BUSY }) }));
  beforeEach(() => backlog.noteClaim([], MANY, clock.elapsedMs));

  test('no publish starts that would have to wait, until they are gone', async () => {
    void many(BUSY, 'busy', 100);
    expect([await save(60), await save(4)]).toEqual([{ busy: 4 }, {}]);
    backlog.noteIdle();
    await clock.settled();
    expect(savingNow()).toEqual({ busy: 36 });
    expect(clock.nextTimerAtMs).toBeUndefined();
  });

  test('nor does a later one that finds others waiting', async () => {
    void many(BUSY, 'busy', 65);
    await save(64);
    void publish(BUSY, 'later');
    expect(savingNow()).toEqual({});
    backlog.noteIdle();
    await clock.settled();
    expect(savingNow()).toEqual({ busy: 1, later: 1 });
  });

  test('publishes with capacity start at once, and so do those of another project', () => {
    void many(BUSY, 'busy', 64);
    void publish(QUIET, 'quiet');
    expect(savingNow()).toEqual({ busy: 64, quiet: 1 });
  });

  test('nothing is held back when no publish waits, and its end affects none', async () => {
    void many(BUSY, 'busy', 2);
    await save(1);
    expect(clock.nextTimerAtMs).toBeUndefined();
    backlog.noteIdle();
    backlog.noteClaim([], MANY, clock.elapsedMs);
    await save(1);
    backlog.noteIdle();
    void publish(BUSY, 'next');
    expect(savingNow()).toEqual({ next: 1 });
  });

  test('they wait no longer than a quarter of a second for it', async () => {
    void many(BUSY, 'busy', 65);
    await save(64);
    await clock.advanceBy(249);
    expect(savingNow()).toEqual({});
    await clock.advanceBy(1);
    expect(savingNow()).toEqual({ busy: 1 });
  });

  test('no publish is held back when the hanging store has refused all', async () => {
    const outcomes = Promise.allSettled(many(BUSY, 'busy', 65));
    await clock.advanceBy(5_000);
    await save(1);
    for (const { end } of saving.splice(0)) end(new StoreUnavailable('no answer'));
    await outcomes;
    expect(clock.nextTimerAtMs).toBeUndefined();
    void publish(BUSY, 'next');
    expect(savingNow()).toEqual({ next: 1 });
  });
});

describe('while nothing is saved', () => {
  /** 200 publishes, and enough time that they have waited too long. */
  async function standStill(): Promise<void> {
    void many(BUSY, 'busy', 200);
    await clock.advanceBy(2 * TARGET_MS);
  }

  test('further publishes are refused, with the time of the next try', async () => {
    gate.check(BUSY);
    await standStill();
    expect(() => gate.check(BUSY)).toThrow(Overloaded);
  });

  test('those of another project are not', async () => {
    await standStill();
    gate.check(QUIET);
  });

  test('it is logged once, and its end once', async () => {
    await standStill();
    for (let nth = 0; nth < 3; nth += 1) {
      expect(() => gate.check(BUSY)).toThrow(Overloaded);
      await clock.advanceBy(4_000);
    }
    expect(logged).toEqual(['shedding_started {}']);
    while (saving.length > 0) await save(64);
    gate.check(BUSY);
    await clock.advanceBy(5_999);
    expect(logged).toHaveLength(1);
    await clock.advanceBy(1);
    expect(logged).toEqual(['shedding_started {}', 'shedding_ended {"count":3,"durationMs":8000}']);
    expect(clock.nextTimerAtMs).toBeUndefined();
  });

  test('its end is not awaited any more when the server ends', async () => {
    await standStill();
    expect(() => gate.check(BUSY)).toThrow(Overloaded);
    gate.close();
    expect(clock.nextTimerAtMs).toBeUndefined();
    expect(() => gate.check(BUSY)).toThrow(Overloaded);
    expect(clock.nextTimerAtMs).toBeUndefined();
  });
});
