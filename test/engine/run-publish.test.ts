/** Publishes that start and continue workflow runs, while another worker changes runs that this one remembers. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Engine } from '../../src/engine/commands.ts';
import { createEngine } from '../../src/engine/create.ts';
import type { EngineDeps } from '../../src/engine/deps.ts';
import type { PublishCommand, Published } from '../../src/engine/messages/publish-command.ts';
import type { NewMessage } from '../../src/engine/model.ts';
import type { PublishOptions, RunRequest, RunStart } from '../../src/protocol/options/settings.ts';
import { openDatabase, storeOver } from '../simulation/database.ts';
import { alteredStore } from '../support/altered-store.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SILENT } from '../support/silent-log.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { SimulatedNetwork } from '../support/simulated-network.ts';
import { NOW_MS } from './fixtures.ts';

const PROJECT = 1;
const ORIGIN = 'https://a.example';
const ID = 'wfr_a';
const LIMITS = { queuesMax: 0, parallelismMax: 0, messagesPerDayMax: 0, journalBytesMax: 10_000 };
const RUN_OVER = { status: 400, code: 'run_over' };

let clock: SimulatedClock;
let network: SimulatedNetwork;
let here: Engine;
let elsewhere: Engine;
/** The number of reads of a run and of a journal, and of saved publishes, by all workers. */
let asked: { lookups: number; journals: number; saves: number };
/** The publishes that they have saved. */
let offered: NewMessage[];
/** Runs once, before the next publish is saved. */
let beforeSave: (() => Promise<unknown>) | undefined;
/** Opens another worker. */
let open: (worker: string, seed: number, deps?: Partial<EngineDeps>) => Promise<Engine>;
beforeEach(async () => {
  const driver = await openDatabase();
  onTestFinished(() => driver.close());
  clock = new SimulatedClock(NOW_MS);
  network = new SimulatedNetwork(clock, { travelMs: () => 0, timeoutMs: 60_000 });
  network.setEndpoint(ORIGIN, () => ({ kind: 'answer', status: 200, afterMs: 10 }));
  asked = { lookups: 0, journals: 0, saves: 0 };
  offered = [];
  beforeSave = undefined;
  open = (worker, seed, deps = {}) => {
    const plain = storeOver(driver, LIMITS);
    const store = alteredStore(plain, {
      findActiveRun: (args) => {
        asked.lookups += 1;
        return plain.runs.findActiveRun(args);
      },
      readJournal: (args) => {
        asked.journals += 1;
        return plain.runs.readJournal(args);
      },
      accept: async (args) => {
        asked.saves += 1;
        offered.push(...args.messages);
        const before = beforeSave;
        beforeSave = undefined;
        await before?.();
        return plain.messages.accept(args);
      },
    });
    return createEngine({
      ...{ clock, log: SILENT, worker, store, settings: ENGINE_SETTINGS },
      ...{ randomness: new SeededRandom(seed), delivery: network.connect() },
      ...deps,
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

/** Publishes a message that must not be refused. */
async function publish(engine: Engine, commands: PublishCommand[]): Promise<Published[]> {
  const outcomes = await engine.publish(PROJECT, commands);
  return outcomes.filter((outcome) => outcome !== 'tooManyQueues');
}

async function begin(engine: Engine, changes?: Partial<RunStart>): Promise<number> {
  const [begun] = await publish(engine, [start(changes)]);
  return begun?.run?.createdAtMs ?? 0;
}

/** The number of reads of the run while this step is published. */
async function lookupsFor(stepId: number, engine: Engine): Promise<number> {
  asked.lookups = 0;
  await publish(engine, [step(stepId)]);
  return asked.lookups;
}

/** A run that the run of these tests invokes in this step. */
function invoked(runId: string, stepId: number): PublishCommand {
  const settings = { dialect: 'upstash' as const, maxRetries: 0 };
  const invocation = {
    ...{ runId: ID, step: Buffer.from(JSON.stringify({ stepId, stepName: 'i', stepType: 'Invoke' })), features: [] },
    result: { url: `${ORIGIN}/wf`, header: {}, settings },
  };
  return { ...start({ runId, isInvoke: true }), invocation };
}

/** A message outside runs. */
function plain(): PublishCommand {
  const { run: _run, ...options } = step(1).options;
  return { ...step(1), options };
}

/** The bodies of the journal entries in the latest delivery. */
async function shown(): Promise<string[]> {
  await clock.advanceBy(100);
  const body = network.attempts.at(-1)?.claimed.deliveredBody;
  const entries = JSON.parse(Buffer.from(body ?? []).toString()) as { body: string }[];
  return entries.map((entry) => Buffer.from(entry.body, 'base64').toString());
}

/** The steps of the run, by id. */
async function stepsOf(): Promise<number[]> {
  const [, ...entries] = (await elsewhere.readJournal(PROJECT, ID)) ?? [];
  return entries.map(({ body }) => JSON.parse(Buffer.from(body).toString()).stepId);
}

describe('a step', () => {
  test('enters the journal once, in the order of its publish, under its own id', async () => {
    await begin(here);
    const published = await publish(here, [step(1), step(2), step(3)]);
    expect(await stepsOf()).toEqual([1, 2, 3]);
    expect(new Set(published.map(({ messageId }) => messageId)).size).toBe(3);
    const [again] = await publish(elsewhere, [step(2)]);
    expect(again).toEqual({ ...published[1], deduplicated: true });
    expect(await stepsOf()).toEqual([1, 2, 3]);
  });

  test('is saved without reading its run if the run has just started here, and with a read otherwise', async () => {
    await begin(here);
    expect([await lookupsFor(1, here), await lookupsFor(2, elsewhere), await lookupsFor(3, elsewhere)]).toEqual([
      0, 1, 0,
    ]);
    await here.cancelRun(PROJECT, ID);
    await publish(here, [start({}, { delayMs: 60_000 })]);
    expect(await lookupsFor(1, here)).toBe(1);
  });

  test('is saved without reading its run if the run was just read', async () => {
    await begin(here);
    await begin(here);
    expect(await lookupsFor(1, here)).toBe(0);
  });

  test('of a run that ends after it was read is refused without another read', async () => {
    await begin(here);
    asked.lookups = 0;
    beforeSave = () => here.cancelRun(PROJECT, ID);
    await expect(publish(elsewhere, [step(1)])).rejects.toMatchObject(RUN_OVER);
    expect(asked.lookups).toBe(1);
  });

  test('of a run that never existed, or that another worker has ended, is refused', async () => {
    await expect(publish(here, [step(1)])).rejects.toMatchObject(RUN_OVER);
    const createdAtMs = await begin(here);
    await elsewhere.cancelRun(PROJECT, ID);
    for (const given of [undefined, createdAtMs]) {
      await expect(publish(here, [step(1, given)])).rejects.toMatchObject(RUN_OVER);
    }
  });

  test('of a run that started at another time is refused, if it names the time', async () => {
    const createdAtMs = await begin(here);
    await expect(publish(here, [step(1, createdAtMs - 1)])).rejects.toMatchObject(RUN_OVER);
    await expect(publish(elsewhere, [step(1, createdAtMs - 1)])).rejects.toMatchObject(RUN_OVER);
    expect(await stepsOf()).toEqual([]);
  });

  test.each([true, false])(
    'reaches the run that another worker has restarted under its id; names the time: %s',
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

test('a plain message is saved together with a step of its publish', async () => {
  await begin(here);
  const published = await publish(here, [plain(), step(2)]);
  expect(published).toHaveLength(2);
  expect(await stepsOf()).toEqual([2]);
});

test('a run is invoked only by an active run', async () => {
  const child = invoked('wfr_child', 1);
  await expect(publish(here, [child])).rejects.toMatchObject(RUN_OVER);
  await begin(here);
  expect(await publish(here, [child])).toMatchObject([{ run: { id: 'wfr_child' } }]);
});

test('a run is not invoked by more than 100 that wait for its end', async () => {
  await begin(here);
  const invocations = Array.from({ length: 101 }, (_, nth) => invoked('wfr_child', nth + 1));
  await expect(publish(here, invocations)).rejects.toMatchObject({
    status: 412,
    message: expect.stringContaining('maxInvokers exceeded, current limit: 100'),
  });
  expect(await publish(here, invocations.slice(1))).toHaveLength(100);
});

test('messages have keys in the order of their publish, which no other messages have', async () => {
  await begin(here);
  await clock.advanceBy(100);
  let stepId = 0;
  const child = () => invoked(`wfr_${++stepId}`, stepId);
  const publishes = [
    [child(), child(), child()],
    [plain(), child(), child()],
    [plain(), plain(), plain()],
    [child(), plain(), child()],
    [plain(), plain(), plain()],
  ];
  for (const commands of publishes) {
    await publish(here, commands);
    await clock.advanceBy(100); // until the slots are free again, so that the next are saved as claimed
  }
  const keys = offered.map(({ message }) => message.key);
  expect(keys).toEqual(keys.toSorted((a, b) => a - b));
  const invocations = offered.flatMap(({ run }) => run?.invoker?.message.key ?? []);
  const claimTokens = offered.flatMap(({ state }) => (state.kind === 'claimed' ? state.claimToken : []));
  expect([keys.length, invocations.length, claimTokens.length]).toEqual([16, 7, 16]);
  const all = [...keys, ...invocations, ...claimTokens];
  expect(new Set(all).size).toBe(all.length);
});

test('a publish of many messages lets others run whenever it has taken long', async () => {
  let workedMs = 0;
  let turns = 0;
  const slow = new Proxy(clock, {
    get: (_, name) => {
      if (name === 'elapsedMs') return clock.elapsedMs + workedMs;
      const member: unknown = Reflect.get(clock, name);
      return typeof member === 'function' ? member.bind(clock) : member;
    },
  });
  const random = new SeededRandom(3);
  let workMs = 0;
  const randomness = {
    bytes: (count: number) => {
      workedMs += workMs;
      return random.bytes(count);
    },
  };
  const endOfTurn = async () => {
    turns += 1;
  };
  const engine = await open('worker-3', 3, { clock: slow, randomness, endOfTurn });
  await publish(engine, [plain(), plain(), plain(), plain()]);
  expect(turns).toBe(0);
  workMs = 3; // two messages are more than a slice
  await publish(engine, [plain(), plain(), plain(), plain()]);
  expect(turns).toBe(2);
});

describe('a run', () => {
  test('starts later than the previous one with its id, though in the same millisecond', async () => {
    const times = [];
    for (let nth = 0; nth < 3; nth += 1) {
      times.push(await begin(nth === 1 ? elsewhere : here));
      await here.cancelRun(PROJECT, ID);
    }
    expect(times).toEqual([NOW_MS, NOW_MS + 1, NOW_MS + 2]);
  });

  test('that sleeps before it starts can be continued and ended like any other', async () => {
    await publish(here, [start({}, { delayMs: 60_000 })]);
    await publish(here, [step(1)]);
    expect(await stepsOf()).toEqual([1]);
    expect(await here.cancelRun(PROJECT, ID)).toBe(true);
  });
});

describe('an SDK that identifies itself behind the URL', () => {
  const bySdk = () => start({ isBySdk: true, features: ['LazyFetch'] });

  test('takes over the run that asked for it, once, and the run continues', async () => {
    await begin(here, { isUnknownSdk: true });
    const [adopted] = await publish(elsewhere, [bySdk()]);
    expect(adopted?.deduplicated).toBe(false);
    expect(await publish(here, [bySdk()])).toMatchObject([{ deduplicated: true }]);
    await publish(here, [step(1)]);
    expect(await stepsOf()).toEqual([1]);
  });

  test('has the first step of the run that it takes over saved at the first try', async () => {
    await begin(here, { isUnknownSdk: true });
    await publish(here, [bySdk()]);
    asked.saves = 0;
    expect([await lookupsFor(1, here), asked.saves]).toEqual([1, 1]);
  });

  test('starts its own run if it names none', async () => {
    const none = { isInvoke: false, isUnknownSdk: false, isRest: false };
    const [begun] = await publish(here, [command({ kind: 'start', features: [], ...none, isBySdk: true }, 'payload')]);
    expect(begun).toMatchObject({ deduplicated: false, run: { id: expect.stringMatching(/^wfr_./) } });
  });

  test('does not take over a run that did not ask for it', async () => {
    const createdAtMs = await begin(here);
    expect(await publish(here, [bySdk()])).toMatchObject([{ deduplicated: true, run: { id: ID, createdAtMs } }]);
  });

  test('is refused if the run has ended', async () => {
    await expect(publish(here, [bySdk()])).rejects.toMatchObject(RUN_OVER);
    await begin(here, { isUnknownSdk: true });
    await elsewhere.cancelRun(PROJECT, ID);
    await expect(publish(here, [bySdk()])).rejects.toMatchObject(RUN_OVER);
  });
});

describe('the delivery of a step', () => {
  test('shows the journal that this worker has saved, and reads nothing of it', async () => {
    await begin(here);
    expect(await shown()).toEqual(['payload']);
    await publish(here, [step(1, undefined, 'one'), plain()]);
    const [, one] = await shown();
    expect(one).toContain('"out":"one"');
    await publish(here, [step(2)]);
    expect(await shown()).toHaveLength(3);
    expect(asked.journals).toBe(0);
  });

  test('reads entries that were saved to be delivered later, which are not remembered', async () => {
    await publish(here, [start({}, { delayMs: 60_000 })]);
    await publish(here, [step(1)]);
    expect(await shown()).toHaveLength(2);
    expect(asked.journals).toBe(1);
  });

  test('reads entries that another message may replace, so that it shows the one saved at another worker', async () => {
    await begin(here, { isUnknownSdk: true });
    expect(await shown()).toEqual(['payload']);
    const library = start({ isBySdk: true, features: ['LazyFetch'] });
    await publish(elsewhere, [{ ...library, body: Buffer.from('of the library') }]);
    expect(await shown()).toEqual(['of the library']);
    await publish(here, [step(1)]);
    expect((await shown())[0]).toBe('of the library');
  });

  test('reads nothing more after an SDK has taken over the run at this worker', async () => {
    await begin(here, { isUnknownSdk: true });
    await clock.advanceBy(100);
    await publish(here, [start({ isBySdk: true })]);
    asked.journals = 0;
    await publish(here, [step(1)]);
    expect(await shown()).toHaveLength(2);
    expect(asked.journals).toBe(0);
  });
});
