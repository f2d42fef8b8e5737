/** Publishes that begin and continue workflow runs, while another worker changes what this one remembers of them. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Engine } from '../../src/engine/commands.ts';
import { createEngine } from '../../src/engine/create.ts';
import type { PublishCommand, Published } from '../../src/engine/messages/publish-command.ts';
import type { PublishOptions, RunRequest, RunStart } from '../../src/protocol/settings.ts';
import { openDatabase, storeOver } from '../simulation/database.ts';
import { alteredStore } from '../support/altered-store.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { SimulatedNetwork } from '../support/simulated-network.ts';
import { NOW_MS, SETTINGS } from './fixtures.ts';

const PROJECT = 1;
const ORIGIN = 'https://a.example';
const ID = 'wfr_a';
const LIMITS = { queuesMax: 0, parallelismMax: 0, messagesPerDayMax: 0, journalBytesMax: 10_000 };
const RUN_OVER = { status: 400, code: 'run_over' };

let clock: SimulatedClock;
let here: Engine;
let elsewhere: Engine;
/** How often a worker has asked its store for a run. */
let lookups = 0;
beforeEach(async () => {
  const driver = await openDatabase();
  onTestFinished(() => driver.close());
  clock = new SimulatedClock(NOW_MS);
  const network = new SimulatedNetwork(clock, { travelMs: () => 0, timeoutMs: 60_000 });
  network.setEndpoint(ORIGIN, () => ({ kind: 'answer', status: 200, afterMs: 10 }));
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const open = (worker: string, seed: number) => {
    const plain = storeOver(driver, LIMITS);
    const store = alteredStore(plain, {
      findActiveRun: (...asked) => {
        lookups += 1;
        return plain.runs.findActiveRun(...asked);
      },
    });
    return createEngine({
      ...{ clock, log, worker, store, settings: SETTINGS },
      ...{ randomness: new SeededRandom(seed), delivery: network.connect() },
    });
  };
  here = await open('worker-1', 1);
  elsewhere = await open('worker-2', 2);
});

function command(run: RunRequest, body: string, options: Partial<PublishOptions> = {}): PublishCommand {
  const settings = { dialect: 'upstash' as const, maxRetries: 0 };
  const whole = { method: 'POST' as const, header: {}, explicitHeader: {}, settings, run, ...options };
  return { url: `${ORIGIN}/wf`, body: Buffer.from(body), options: whole };
}

function start(changes: Partial<RunStart> = {}, options?: Partial<PublishOptions>): PublishCommand {
  const none = { isInvoke: false, isBySdk: false, isUnknownSdk: false, isRest: false };
  return command({ kind: 'start', runId: ID, features: [], ...none, ...changes }, 'payload', options);
}

function step(stepId: number, createdAtMs?: number, out = 'x'): PublishCommand {
  const body = JSON.stringify({ stepId, stepName: `s${stepId}`, stepType: 'Run', out, concurrent: 1 });
  const which = createdAtMs === undefined ? {} : { createdAtMs };
  return command({ kind: 'append', runId: ID, callType: 'step', features: [], ...which }, body);
}

/** What is published is not refused here. */
async function publish(engine: Engine, commands: PublishCommand[]): Promise<Published[]> {
  const outcomes = await engine.publish(PROJECT, commands);
  return outcomes.filter((outcome) => outcome !== 'tooManyQueues');
}

async function begin(engine: Engine, changes?: Partial<RunStart>): Promise<number> {
  const [begun] = await publish(engine, [start(changes)]);
  return begun?.run?.createdAtMs ?? 0;
}

/** The steps that the run has, by their ids. */
async function stepsOf(): Promise<number[]> {
  const [, ...entries] = (await elsewhere.readJournal(PROJECT, ID)) ?? [];
  return entries.map(({ body }) => JSON.parse(Buffer.from(body).toString()).stepId);
}

describe('a step', () => {
  test('enters the journal once, in the order of its publish, under an id of its own', async () => {
    await begin(here);
    const published = await publish(here, [step(1), step(2), step(3)]);
    expect(await stepsOf()).toEqual([1, 2, 3]);
    expect(new Set(published.map(({ messageId }) => messageId)).size).toBe(3);
    const [again] = await publish(elsewhere, [step(2)]);
    expect(again).toEqual({ ...published[1], deduplicated: true });
    expect(await stepsOf()).toEqual([1, 2, 3]);
  });

  test('is saved without a look at its run where that has just begun here, and with one where it has not', async () => {
    const lookupsFor = async (stepId: number, engine: Engine) => {
      lookups = 0;
      await publish(engine, [step(stepId)]);
      return lookups;
    };
    await begin(here);
    expect([await lookupsFor(1, here), await lookupsFor(2, elsewhere), await lookupsFor(3, elsewhere)]).toEqual([
      0, 1, 0,
    ]);
    await here.cancelRun(PROJECT, ID);
    await publish(here, [start({}, { delayMs: 60_000 })]);
    expect(await lookupsFor(1, here)).toBe(1);
  });

  test('of a run that was never there, or that another worker has ended, is refused', async () => {
    await expect(publish(here, [step(1)])).rejects.toMatchObject(RUN_OVER);
    const createdAtMs = await begin(here);
    await elsewhere.cancelRun(PROJECT, ID);
    for (const given of [undefined, createdAtMs]) {
      await expect(publish(here, [step(1, given)])).rejects.toMatchObject(RUN_OVER);
    }
  });

  test('of a run that has begun at another time is refused, where it says when', async () => {
    const createdAtMs = await begin(here);
    await expect(publish(here, [step(1, createdAtMs - 1)])).rejects.toMatchObject(RUN_OVER);
    await expect(publish(elsewhere, [step(1, createdAtMs - 1)])).rejects.toMatchObject(RUN_OVER);
    expect(await stepsOf()).toEqual([]);
  });

  test.each([true, false])(
    'reaches the run that another worker has begun anew under its id; says when: %s',
    async (says) => {
      await begin(here);
      await elsewhere.cancelRun(PROJECT, ID);
      const createdAtMs = await begin(elsewhere);
      await publish(here, [step(1, says ? createdAtMs : undefined)]);
      expect(await stepsOf()).toEqual([1]);
    },
  );

  test('is refused with 412 when the journal would be too long, and with it the others of its publish', async () => {
    await begin(here);
    const large = step(2, undefined, 'x'.repeat(LIMITS.journalBytesMax));
    await expect(publish(here, [step(1), large])).rejects.toMatchObject({
      status: 412,
      message: expect.stringContaining('10000'),
    });
    expect(await stepsOf()).toEqual([]);
  });
});

test('a plain message goes out beside a step of its publish', async () => {
  await begin(here);
  const { run: _run, ...options } = step(1).options;
  const published = await publish(here, [{ ...step(1), options }, step(2)]);
  expect(published).toHaveLength(2);
  expect(await stepsOf()).toEqual([2]);
});

test('a run is invoked only by one that is active', async () => {
  const settings = { dialect: 'upstash' as const, maxRetries: 0 };
  const invocation = {
    ...{ runId: ID, step: Buffer.from('{"stepId":1,"stepName":"i","stepType":"Invoke"}'), features: [] },
    result: { url: `${ORIGIN}/wf`, header: {}, settings },
  };
  const child = { ...start({ runId: 'wfr_child', isInvoke: true }), invocation };
  await expect(publish(here, [child])).rejects.toMatchObject(RUN_OVER);
  await begin(here);
  expect(await publish(here, [child])).toMatchObject([{ run: { id: 'wfr_child' } }]);
});

describe('a run', () => {
  test('begins later than the one before that had its id, though in the same millisecond', async () => {
    const times = [];
    for (let nth = 0; nth < 3; nth += 1) {
      times.push(await begin(nth === 1 ? elsewhere : here));
      await here.cancelRun(PROJECT, ID);
    }
    expect(times).toEqual([NOW_MS, NOW_MS + 1, NOW_MS + 2]);
  });

  test('that is there already is named to who would begin it again', async () => {
    const [begun] = await publish(here, [start()]);
    expect(await publish(elsewhere, [start()])).toEqual([{ ...begun, deduplicated: true }]);
  });

  test('that sleeps before it begins can be continued and ended like any', async () => {
    await publish(here, [start({}, { delayMs: 60_000 })]);
    await publish(here, [step(1)]);
    expect(await stepsOf()).toEqual([1]);
    expect(await here.cancelRun(PROJECT, ID)).toBe(true);
  });
});

describe('a library that makes itself known behind the URL', () => {
  const bySdk = () => start({ isBySdk: true, features: ['LazyFetch'] });

  test('takes over the run that asked for it, once, and the run goes on', async () => {
    await begin(here, { isUnknownSdk: true });
    const [adopted] = await publish(elsewhere, [bySdk()]);
    expect(adopted?.deduplicated).toBe(false);
    expect(await publish(here, [bySdk()])).toMatchObject([{ deduplicated: true }]);
    await publish(here, [step(1)]);
    expect(await stepsOf()).toEqual([1]);
  });

  test('does not take over a run that nobody asked it for', async () => {
    const createdAtMs = await begin(here);
    expect(await publish(here, [bySdk()])).toMatchObject([{ deduplicated: true, run: { id: ID, createdAtMs } }]);
  });

  test('is refused where the run is over', async () => {
    await expect(publish(here, [bySdk()])).rejects.toMatchObject(RUN_OVER);
    await begin(here, { isUnknownSdk: true });
    await elsewhere.cancelRun(PROJECT, ID);
    await expect(publish(here, [bySdk()])).rejects.toMatchObject(RUN_OVER);
  });
});
