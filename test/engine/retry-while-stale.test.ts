/** Writes that require an unchanged value: how often they are tried, and the response to the client. */

import { describe, expect, onTestFinished, test } from 'vitest';
import type { Engine } from '../../src/engine/commands.ts';
import { createEngine } from '../../src/engine/create.ts';
import { retryWhileStale, STALE } from '../../src/engine/loops/retry-while-stale.ts';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import type { WaitCommand } from '../../src/engine/runs/stores.ts';
import type { ScheduleCommand } from '../../src/engine/schedules/commands.ts';
import type { Store } from '../../src/store/store.ts';
import { openDatabase, storeOver } from '../simulation/database.ts';
import { altered } from '../simulation/planted-bugs.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SILENT } from '../support/silent-log.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { SimulatedNetwork } from '../support/simulated-network.ts';
import { NOW_MS } from './fixtures.ts';

const PROJECT = 1;
const RUN = 'wfr_a';
const ORIGIN = 'https://a.example';
/** More rounds than these mean an endless loop. */
const SPINNING = 100;

describe('a value that has changed since it was read', () => {
  /** Each round gets its number. */
  const rounds = (answerOf: (round: number) => string | typeof STALE) => {
    let round = 0;
    return { play: async () => answerOf(++round), count: () => round };
  };

  test('is read again, until the decision is saved', async () => {
    const { play, count } = rounds((round) => (round < 5 ? STALE : 'saved'));
    expect(await retryWhileStale('the schedule', play)).toBe('saved');
    expect(count()).toBe(5);
  });

  test('is given up after a number of rounds, with a response to try again later', async () => {
    const { play, count } = rounds(() => STALE);
    const refusal = { status: 503, message: 'the schedule changes too often, try again shortly' };
    await expect(retryWhileStale('the schedule', play)).rejects.toMatchObject(refusal);
    expect(count()).toBe(20);
  });
});

describe('a store that always returns that a value has changed causes a 503:', () => {
  const settings = { dialect: 'upstash' as const, maxRetries: 0 };
  const headers = { header: {}, explicitHeader: {} };
  const schedule: ScheduleCommand = {
    destination: { kind: 'url', url: `${ORIGIN}/hook` },
    body: new Uint8Array(),
    options: { cron: '0 0 1 1 *', scheduleId: 's', method: 'POST', ...headers, settings },
  };
  const begin = publishing({
    ...{ kind: 'start', runId: RUN, features: [] },
    ...{ isInvoke: false, isBySdk: false, isUnknownSdk: false, isRest: false },
  });
  const append = publishing({ kind: 'append', runId: RUN, callType: 'step', features: [] });
  const part = { url: `${ORIGIN}/wf`, header: {}, settings };
  const wait: WaitCommand = {
    ...{ runId: RUN, eventId: 'e', timeout: '1d', timeoutMs: 86_400_000, stepId: 1, features: [] },
    step: Buffer.from(JSON.stringify({ stepId: 1, stepName: 'w', stepType: 'Wait', concurrent: 1 })),
    ...{ notified: part, timedOut: part, headers: {}, timeoutHeaders: {} },
  };
  const event = new Uint8Array();

  function publishing(run: NonNullable<PublishCommand['options']['run']>): PublishCommand {
    const step = Buffer.from(JSON.stringify({ stepId: 1, stepName: 's', stepType: 'Run', concurrent: 1 }));
    return { url: `${ORIGIN}/wf`, body: step, options: { method: 'POST', ...headers, settings, run } };
  }

  /** Saves a schedule and a run; from then on, every write to the store is stale. */
  async function bench(): Promise<{ engine: Engine; isStale: { now: boolean }; rounds: () => number }> {
    const driver = await openDatabase();
    onTestFinished(() => driver.close());
    const clock = new SimulatedClock(NOW_MS);
    const network = new SimulatedNetwork(clock, { travelMs: () => 0, timeoutMs: 60_000 });
    const isStale = { now: false };
    let count = 0;
    const stale = <T>(answer: T): Promise<T> => {
      count += 1;
      return count > SPINNING ? Promise.reject(new Error('it spins')) : Promise.resolve(answer);
    };
    const { store: over = (store: Store) => store } = altered((store) => ({
      saveSchedule: (args) => (isStale.now ? stale('stale') : store.schedules.saveSchedule(args)),
      changeSchedules: (args) =>
        isStale.now ? stale(args.changes.map(() => 'stale')) : store.schedules.changeSchedules(args),
      endRuns: (args) =>
        isStale.now ? stale(args.endings.map(() => ({ kind: 'changed' }))) : store.runs.endRuns(args),
      addWaiter: (args) => (isStale.now ? stale({ kind: 'changed' }) : store.waiters.addWaiter(args)),
      savePendingEvent: (args) => (isStale.now ? stale('waited') : store.waiters.savePendingEvent(args)),
      accept: (args) =>
        isStale.now ? stale(args.messages.map(() => ({ kind: 'runChanged' }))) : store.messages.accept(args),
    }));
    const engine = await createEngine({
      store: over(storeOver(driver)),
      clock,
      randomness: new SeededRandom(1),
      delivery: network.connect(),
      log: SILENT,
      settings: ENGINE_SETTINGS,
      worker: 'worker-1',
    });
    await engine.createSchedule(PROJECT, schedule, 0);
    await engine.publish(PROJECT, [begin]);
    return { engine, isStale, rounds: () => count };
  }

  test.for<[string, (engine: Engine) => Promise<unknown>]>([
    ['a schedule is overwritten', (engine) => engine.createSchedule(PROJECT, schedule, 0)],
    ['a schedule is paused', (engine) => engine.setSchedulePaused(PROJECT, 's', true)],
    ['a step of a run is published', (engine) => engine.publish(PROJECT, [append])],
    ['a run returns', (engine) => engine.completeRun(PROJECT, RUN, event)],
    ['a run is cancelled', (engine) => engine.cancelRun(PROJECT, RUN)],
    ['runs are cancelled by their ids', (engine) => engine.cancelRuns(PROJECT, [RUN])],
    ['runs that match are cancelled', (engine) => engine.cancelRunsMatching(PROJECT, {})],
    ['a run waits for an event', (engine) => engine.wait(PROJECT, wait)],
    ['a run is notified', (engine) => engine.notifyRun(PROJECT, RUN, 'e', event, { oldestOnly: false })],
  ])('%s', async ([, ask]) => {
    const { engine, isStale, rounds } = await bench();
    isStale.now = true;
    await expect(ask(engine)).rejects.toMatchObject({ status: 503, message: expect.stringContaining('too often') });
    expect(rounds()).toBe(20);
    isStale.now = false;
    await ask(engine); // nothing of it is left
  });
});
