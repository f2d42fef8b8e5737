/** When publishes begin to be saved, and what the operator hears when some are turned away. */
import { beforeEach, describe, expect, test } from 'vitest';
import { PublishGate } from '../../src/engine/publish-gate.ts';
import { Overloaded } from '../../src/protocol/rate-limits.ts';
import { SimulatedClock } from '../../src/testing/simulated-clock.ts';

const BUSY = 1;
const QUIET = 2;
const TARGET_MS = 500;

let clock: SimulatedClock;
let logged: string[];
let gate: PublishGate;
/** Those that wait for the turn of the event loop to end. */
let endOfTurn: (() => void)[];
/** Names in the order in which they began. */
let begun: string[];

beforeEach(() => {
  clock = new SimulatedClock();
  logged = [];
  endOfTurn = [];
  begun = [];
  const note = (event: string, fields = {}): void => {
    logged.push(`${event} ${JSON.stringify(fields)}`);
  };
  gate = new PublishGate({
    clock,
    log: { info: note, warn: note, error: note },
    settings: { publishDelayTargetMs: TARGET_MS },
    endOfTurn: () => new Promise((resolve) => endOfTurn.push(resolve)),
  });
});

/** Publishes that are saved when `saved` resolves. */
function publish(projectId: number, name: string, { count = 1, saved = Promise.resolve() } = {}): Promise<void> {
  return gate.pass(projectId, count, () => {
    begun.push(name);
    return saved;
  });
}

function many(projectId: number, name: string, count: number, saved?: Promise<void>): void {
  for (let nth = 0; nth < count; nth += 1) void publish(projectId, name, saved && { saved });
}

/** What has begun meanwhile, by name. */
async function nextTurn(): Promise<Record<string, number>> {
  begun.length = 0;
  for (const end of endOfTurn.splice(0)) end();
  await clock.settled();
  return begunNow();
}

function begunNow(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of begun) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

describe('in one turn of the event loop', () => {
  test('a few publishes begin at once, and the rest waits for the next turns', async () => {
    many(BUSY, 'busy', 70);
    expect(begunNow()).toEqual({ busy: 32 });
    expect(await nextTurn()).toEqual({ busy: 32 });
    expect(await nextTurn()).toEqual({ busy: 6 });
    expect(await nextTurn()).toEqual({});
    expect(endOfTurn).toEqual([]);
  });

  test('those of a project that sends little begin with the next, however many of another wait', async () => {
    many(BUSY, 'busy', 500);
    many(QUIET, 'quiet', 3);
    expect(begunNow()).toEqual({ busy: 32 });
    expect(await nextTurn()).toEqual({ busy: 29, quiet: 3 });
  });

  test('messages count, not requests', async () => {
    void publish(BUSY, 'batch', { count: 1_000 });
    void publish(BUSY, 'second', { count: 20 });
    void publish(BUSY, 'third', { count: 20 });
    void publish(BUSY, 'fourth');
    expect(begunNow()).toEqual({ batch: 1 });
    expect(await nextTurn()).toEqual({ second: 1, third: 1 });
    expect(await nextTurn()).toEqual({ fourth: 1 });
  });
});

describe('while nothing is saved', () => {
  let save: () => void;

  /** 200 publishes that are saved when `save` is called, and time enough for them to have waited for too long. */
  async function standStill(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    save = resolve;
    many(BUSY, 'busy', 200, promise);
    await clock.advanceBy(2 * TARGET_MS);
  }

  test('more are turned away, and told when to come back', async () => {
    gate.check(BUSY);
    await standStill();
    expect(() => gate.check(BUSY)).toThrow(Overloaded);
  });

  test('another project is not', async () => {
    await standStill();
    gate.check(QUIET);
  });

  test('the operator hears of it once, and once when it is over', async () => {
    await standStill();
    for (let nth = 0; nth < 3; nth += 1) {
      expect(() => gate.check(BUSY)).toThrow(Overloaded);
      await clock.advanceBy(4_000);
    }
    expect(logged).toEqual(['shedding_started {}']);
    save();
    while (endOfTurn.length > 0) await nextTurn();
    gate.check(BUSY);
    await clock.advanceBy(10_000);
    expect(logged).toEqual(['shedding_started {}', 'shedding_ended {"count":3,"durationMs":8000}']);
    expect(clock.nextTimerAtMs).toBeUndefined();
  });
});
