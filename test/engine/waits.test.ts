/** Waits, notifications and timeouts with a store that others change between reads and writes. */

import { describe, expect, test } from 'vitest';
import { type BoundFunctions, bindContext, type EngineContext } from '../../src/engine/context.ts';
import type { BacklogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { DueLoop } from '../../src/engine/loops/due-loop.ts';
import type { Saved } from '../../src/engine/messages/accepted.ts';
import { type DeliverySlots, Intake } from '../../src/engine/messages/intake.ts';
import { type NewMessage, NUMBERS_OF_CELL } from '../../src/engine/model.ts';
import { ActiveRuns } from '../../src/engine/runs/active-runs.ts';
import type {
  NewWaiter,
  NotificationResult,
  PendingEvent,
  PendingEventLimits,
  WaitCommand,
  Waiter,
  WaitOutcome,
} from '../../src/engine/runs/stores.ts';
import * as waits from '../../src/engine/runs/waits/waits.ts';
import { waiterLoop } from '../../src/engine/runs/waits/wakes.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { Numbers } from '../../src/engine/workers/numbers.ts';
import type { Store } from '../../src/store/store.ts';
import type { Run } from '../../src/workflow/model.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SILENT } from '../support/silent-log.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { NOW_MS } from './fixtures.ts';

const PROJECT = 1;
const EVENT = 'e';
const DAY_MS = 86_400_000;
const NOTHING = new Uint8Array();

function run(key: number): Run {
  return {
    key,
    projectId: PROJECT,
    id: `wfr_${key}`,
    url: 'https://a.example/wf',
    createdAtMs: NOW_MS,
    state: 'RUN_STARTED',
    version: 1,
    config: {
      dialect: 'upstash',
      features: [],
      isKept: true,
      isRest: false,
      isUnknownSdk: false,
      header: { 'X-User': ['u'] },
      maxRetries: 7,
    },
    entries: 1,
    messageId: `msg_${key}`,
    invokers: [],
  };
}

type WaiterStore = Omit<Store['waiters'], 'listAllWaiters'>;

/** Journals as lists of entry keys, waiters and pending events, with the results that the interface promises. */
class MemoryStore implements WaiterStore {
  readonly runs = new Map<string, Run>();
  readonly slots = new Map<string, string>();
  readonly results: NewMessage[] = [];
  waiters: Waiter[] = [];
  pendingEvents: (PendingEvent & { runKey: number; eventId: string })[] = [];
  readonly calls: string[] = [];
  /** Runs once, before the next call of that name. */
  before: { [name: string]: () => void | Promise<void> } = {};

  add(one: Run): Run {
    this.runs.set(one.id, one);
    return one;
  }

  /** Like the end of a run. */
  end(one: Run): void {
    this.runs.delete(one.id);
    this.waiters = this.waiters.filter(({ record }) => record.settings.run?.key !== one.key);
    this.pendingEvents = this.pendingEvents.filter(({ runKey }) => runKey !== one.key);
  }

  async findActiveRun({ id }: { id: string }): Promise<Run | undefined> {
    await this.#called('findActiveRun');
    return this.runs.get(id);
  }

  async nextPendingEvent({ runKey, eventId }: { runKey: number; eventId: string }): Promise<PendingEvent | undefined> {
    await this.#called('nextPendingEvent');
    return this.#mailFor(runKey, eventId);
  }

  async addWaiter({
    waiter: {
      record: { message, entry },
      eventId,
      deadlineMs,
    },
    taken,
  }: {
    waiter: NewWaiter;
    taken?: { pendingEventKey: number; result: NewMessage } | undefined;
  }): Promise<WaitOutcome> {
    await this.#called('addWaiter');
    const active = [...this.runs.values()].find(({ key }) => key === entry.runKey);
    if (!active) return { kind: 'over' };
    const present = this.slots.get(`${entry.runKey} ${entry.entryKey}`);
    if (present !== undefined) return { kind: 'duplicate', messageId: present };
    if (entry.runVersion !== active.version) return { kind: 'changed' };
    if (this.#mailFor(entry.runKey, eventId)?.key !== taken?.pendingEventKey) return { kind: 'changed' };
    this.slots.set(`${entry.runKey} ${entry.entryKey}`, message.id);
    if (!taken) {
      this.waiters.push({ eventId, deadlineMs, record: message });
      return { kind: 'registered' };
    }
    this.pendingEvents = this.pendingEvents.filter(({ key }) => key !== taken.pendingEventKey);
    return { kind: 'notified', saved: this.#save(taken.result) };
  }

  async listWaiters({
    eventId,
    runKey,
    afterKey = -1,
    count,
  }: { eventId: string } & { runKey?: number; afterKey?: number; count: number }): Promise<Waiter[]> {
    await this.#called('listWaiters');
    const isMeant = ({ record }: Waiter): boolean => runKey === undefined || record.settings.run?.key === runKey;
    return this.waiters
      .filter((waiter) => waiter.eventId === eventId && waiter.record.key > afterKey && isMeant(waiter))
      .slice(0, count);
  }

  async resolveWaiters({
    resolutions,
  }: {
    resolutions: { waiterKey: number; result: NewMessage }[];
  }): Promise<(Saved | 'gone')[]> {
    await this.#called('resolveWaiters');
    return resolutions.map(({ waiterKey, result }) => {
      if (!this.waiters.some(({ record }) => record.key === waiterKey)) return 'gone';
      this.waiters = this.waiters.filter(({ record }) => record.key !== waiterKey);
      return this.#save(result);
    });
  }

  async savePendingEvent({
    runKey,
    eventId,
    limits: { events },
    ...pendingEvent
  }: { runKey: number; eventId: string; limits: PendingEventLimits } & PendingEvent): Promise<
    'saved' | 'over' | 'waited' | 'tooMuch'
  > {
    await this.#called('savePendingEvent');
    if (![...this.runs.values()].some(({ key }) => key === runKey)) return 'over';
    if (this.waiters.some((waiter) => waiter.eventId === eventId && waiter.record.settings.run?.key === runKey)) {
      return 'waited';
    }
    if (this.pendingEvents.length >= events) return 'tooMuch';
    this.pendingEvents.push({ ...pendingEvent, runKey, eventId });
    return 'saved';
  }

  async dueWaiters({ nowMs, limit }: { nowMs: number; limit: number }) {
    await this.#called('dueWaiters');
    const byDeadline = this.waiters.toSorted((a, b) => a.deadlineMs - b.deadlineMs);
    const due = byDeadline.filter(({ deadlineMs }) => deadlineMs <= nowMs).slice(0, limit);
    return { due, nextAtMs: due.length > 0 ? undefined : byDeadline[0]?.deadlineMs };
  }

  #mailFor(runKey: number, eventId: string): PendingEvent | undefined {
    const found = this.pendingEvents.find(
      (pendingEvent) => pendingEvent.runKey === runKey && pendingEvent.eventId === eventId,
    );
    return found && { key: found.key, body: found.body };
  }

  #save(result: NewMessage): Saved {
    const { runKey, entryKey } = result.entry ?? { runKey: 0, entryKey: '' };
    if (this.slots.has(`${runKey} ${entryKey}`)) return { state: 'dropped' };
    this.slots.set(`${runKey} ${entryKey}`, result.message.id);
    this.results.push(result);
    return { state: result.state.kind, journal: { position: this.slots.size, bytes: 1 } };
  }

  async #called(name: string): Promise<void> {
    this.calls.push(name);
    const action = this.before[name];
    delete this.before[name];
    await action?.();
  }
}

class Bench {
  readonly clock = new SimulatedClock(NOW_MS);
  readonly store = new MemoryStore();
  readonly waits: BoundFunctions<typeof waits>;
  readonly loop: DueLoop;
  /** Delivery slots that are reserved, and neither used nor released. */
  reserved = 0;
  /** Delivery slots that are used. */
  started = 0;
  /** Backlogs with waiting messages, as reported to the dispatcher. */
  readonly lines = new Set<BacklogKey>();

  constructor() {
    let next = 1_000;
    const reserveNumbers = ({ count }: { count: number }): Promise<number> => {
      next += count;
      return Promise.resolve(next - count);
    };
    const numbers = new Numbers({ messages: { reserveNumbers } });
    const randomness = new SeededRandom(1);
    const slots: DeliverySlots = {
      worker: 'worker-1',
      tryReserve: () => {
        this.reserved += 1;
        return 'reserved';
      },
      giveBack: () => {
        this.reserved -= 1;
      },
      start: () => {
        this.reserved -= 1;
        this.started += 1;
      },
      noteDue: () => {},
      noteWaitingBacklog: (line) => this.lines.add(line),
    };
    const { clock } = this;
    const store = { waiters: this.store, runs: this.store };
    const settings = { ...ENGINE_SETTINGS, lazyFetchBytes: 1_000 };
    const intake = new Intake({ numbers, clock, randomness, settings, reports: { accepted: () => {} } }, slots);
    const reports = { woken: () => {} };
    const context = {
      ...{ store, clock, log: SILENT, numbers, randomness, reports, settings: {} },
      dispatcher: { intake, noteWaitingBacklog: (backlog: BacklogKey) => this.lines.add(backlog) },
      active: new ActiveRuns(store),
    } as unknown as EngineContext;
    this.loop = context.waiters = waiterLoop(context);
    this.waits = bindContext(waits, context);
    this.loop.wake();
  }

  wait(of: Run, stepId = 1, changes: Partial<WaitCommand> = {}): Promise<{ messageId: string; deduplicated: boolean }> {
    const part = (url: string) => ({
      url,
      header: { 'X-Own': ['o'] },
      settings: { dialect: 'upstash' as const, maxRetries: 3 },
    });
    return this.waits.wait(PROJECT, {
      runId: of.id,
      eventId: EVENT,
      timeout: '1d',
      timeoutMs: DAY_MS,
      step: Buffer.from(JSON.stringify({ stepId, stepName: 'w', stepType: 'Wait', concurrent: 1 })),
      stepId,
      features: ['LazyFetch'],
      notified: part('https://a.example/wf'),
      timedOut: part('https://a.example/late'),
      headers: {},
      timeoutHeaders: {},
      ...changes,
    });
  }

  async notify(event = 'data'): Promise<NotificationResult[]> {
    const all: NotificationResult[] = [];
    await this.waits.notify(PROJECT, EVENT, Buffer.from(event), (piece) => all.push(...piece));
    return all;
  }

  notifyRun(of: Run, event = 'data', oldestOnly = false): Promise<NotificationResult | undefined> {
    return this.waits.notifyRun(PROJECT, of.id, EVENT, Buffer.from(event), { oldestOnly });
  }

  /** The results of each run: `<run> <entry key>: <event>`, `late` after a timeout. */
  told(): string[] {
    return this.store.results.map(({ message, entry }) => {
      const { out, waitTimeout } = JSON.parse(Buffer.from(message.body).toString()) as Record<string, unknown>;
      const event = waitTimeout === true ? 'late' : Buffer.from(String(out ?? ''), 'base64').toString();
      return `${message.settings.run?.id} ${entry?.entryKey}: ${event}`;
    });
  }
}

describe('a wait', () => {
  test('is registered with the settings of its run, and ends with the event', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    const { messageId, deduplicated } = await bench.wait(one);
    expect(deduplicated).toBe(false);
    expect(bench.store.waiters).toMatchObject([
      { eventId: EVENT, deadlineMs: NOW_MS + DAY_MS, record: { id: messageId } },
    ]);
    const [notified] = await bench.notify();
    expect(notified).toMatchObject({ runId: 'wfr_1', runCreatedAtMs: NOW_MS, waiter: { record: { id: messageId } } });
    const [result] = bench.store.results;
    expect(result?.message).toMatchObject({
      id: notified?.messageId,
      url: 'https://a.example/wf',
      method: 'POST',
      header: { 'X-Own': ['o'], 'X-User': ['u'], 'Content-Type': ['application/json'] },
      settings: { maxRetries: 7, run: { key: 1, id: 'wfr_1', callType: 'step', features: ['LazyFetch'] } },
    });
    expect(result?.entry).toMatchObject({ runKey: 1, kind: 'step', entryKey: 's1', lazyAboveBytes: 1_000 });
    expect(bench.reserved).toBe(0);
  });

  test('of a run that has ended, never existed, or started at another time, is refused as SDKs expect', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    const text = 'failed to publish to url: can not append to a a cancelled workflow';
    await expect(bench.wait(run(2))).rejects.toMatchObject({ status: 400, message: text });
    await expect(bench.wait(one, 1, { createdAtMs: NOW_MS - 1 })).rejects.toMatchObject({ status: 400, message: text });
    await bench.wait(one);
    bench.store.end(one); // while the engine remembers it
    await expect(bench.wait(one, 2)).rejects.toMatchObject({ status: 400, message: text });
    bench.store.add(one);
    bench.store.before['addWaiter'] = () => bench.store.end(one);
    await expect(bench.wait(one, 3)).rejects.toMatchObject({ status: 400, message: text });
  });

  test('is decided again when its run has changed since it was read', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    await bench.wait(one, 1);
    bench.store.add({ ...one, version: 2, config: { ...one.config, maxRetries: 9 } });
    await bench.wait(one, 2);
    expect(bench.store.waiters.map(({ record }) => record.settings.maxRetries)).toEqual([7, 9]);
  });

  test('ends at once with a pending event, first in, first out', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    expect(await bench.notifyRun(one, 'first')).toEqual({ runId: 'wfr_1', runCreatedAtMs: NOW_MS });
    await bench.notifyRun(one, 'second');
    const answers = [];
    for (const stepId of [1, 2, 3]) answers.push(await bench.wait(one, stepId));
    expect(bench.told()).toEqual(['wfr_1 s1: first', 'wfr_1 s2: second']);
    expect(answers.map(({ deduplicated }) => deduplicated)).toEqual([false, false, false]);
    expect(bench.store.waiters).toHaveLength(1);
    expect([bench.reserved, bench.started]).toEqual([0, 2]);
  });

  test('that has ended at once leaves no deadline', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    await bench.clock.settled();
    await bench.notifyRun(one);
    await bench.wait(one);
    bench.store.calls.length = 0;
    await bench.clock.advanceBy(2 * DAY_MS);
    expect(bench.store.calls).toEqual([]);
  });

  test('of a run that ends after it was read is refused without another read', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    bench.store.before['addWaiter'] = () => bench.store.end(one);
    await expect(bench.wait(one)).rejects.toMatchObject({ status: 400 });
    expect(bench.store.calls.filter((name) => name === 'findActiveRun')).toHaveLength(1);
  });

  test('reads no run for which a notification was just saved on this worker', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    await bench.notifyRun(one);
    bench.store.calls.length = 0;
    await bench.wait(one);
    expect(bench.store.calls).not.toContain('findActiveRun');
  });

  test('is registered with a run that was restarted under the id of a remembered one', async () => {
    const bench = new Bench();
    await bench.wait(bench.store.add(run(1)));
    const anew = bench.store.add({ ...run(2), id: 'wfr_1', createdAtMs: NOW_MS + 5 });
    await bench.wait(anew, 1, { createdAtMs: NOW_MS + 5 });
    expect(bench.store.waiters.map(({ record }) => record.settings.run?.key)).toEqual([1, 2]);
  });

  test('is refused when the journal of its run is full', async () => {
    const bench = new Bench();
    bench.store.addWaiter = async () => ({ kind: 'journalFull', limit: 7 });
    await expect(bench.wait(bench.store.add(run(1)))).rejects.toMatchObject({
      status: 412,
      message: expect.stringContaining('7'),
    });
  });

  test('releases the reservation of its result when that cannot be saved, and returns the reason', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    await bench.notifyRun(one);
    bench.store.before['addWaiter'] = () => {
      throw new Error('the disk is full');
    };
    await expect(bench.wait(one)).rejects.toThrow('the disk is full');
    expect([bench.reserved, bench.started]).toEqual([0, 0]);
  });

  test('keeps the caller, and leaves no body to be fetched by an SDK that cannot', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    await bench.wait(one, 1, { callerIp: '192.0.2.1', features: [] });
    await bench.wait(one, 2);
    expect(bench.store.waiters.map(({ record }) => record.callerIp)).toEqual(['192.0.2.1', undefined]);
    await bench.notify();
    expect(bench.store.results.map(({ entry }) => entry?.lazyAboveBytes)).toEqual([undefined, 1_000]);
  });

  test('finds a notification that arrives between its lookup of pending events and its registration', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    bench.store.before['addWaiter'] = async () => {
      await bench.notifyRun(one);
    };
    await bench.wait(one);
    expect(bench.told()).toEqual(['wfr_1 s1: data']);
    expect([bench.store.waiters, bench.store.pendingEvents]).toEqual([[], []]);
  });

  test('is registered without a pending event that another wait of its run has consumed since', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    await bench.notifyRun(one);
    bench.store.before['addWaiter'] = async () => {
      await bench.wait(one, 2);
    };
    await bench.wait(one, 1);
    expect(bench.told()).toEqual(['wfr_1 s2: data']);
    expect(bench.store.waiters).toHaveLength(1);
    expect(bench.reserved).toBe(0);
  });
});

describe('a notification', () => {
  test('wakes all waiters of the event, and is lost when there are none', async () => {
    const bench = new Bench();
    expect(await bench.notify()).toEqual([]);
    const [one, two] = [bench.store.add(run(1)), bench.store.add(run(2))];
    await bench.wait(one);
    await bench.wait(two);
    await bench.wait(two, 2, { eventId: 'other' });
    expect((await bench.notify()).map(({ runId }) => runId)).toEqual(['wfr_1', 'wfr_2']);
    expect(bench.store.waiters).toHaveLength(1);
    expect(await bench.notify()).toEqual([]);
  });

  test('wakes any number of waiters in chunks, and only those that waited when it arrived', async () => {
    const bench = new Bench();
    for (let key = 1; key <= 1_050; key += 1) await bench.wait(bench.store.add(run(key)));
    bench.store.calls.length = 0;
    // Each woken run waits for the same event again, before the next page is read.
    const { resolveWaiters } = bench.store;
    bench.store.resolveWaiters = async (args) => {
      const answers = await resolveWaiters.call(bench.store, args);
      for (const { result } of args.resolutions) await bench.wait(run(result.entry?.runKey ?? 0), 2);
      return answers;
    };
    expect(await bench.notify()).toHaveLength(1_050);
    expect(bench.store.calls.filter((name) => name === 'resolveWaiters')).toHaveLength(6);
    expect(bench.store.waiters).toHaveLength(1_050);
  });

  test('wakes waiters that came with a move from a cell with larger numbers, and skips later ones', async () => {
    const bench = new Bench();
    for (const key of [1, 2, 3]) await bench.wait(bench.store.add(run(key)));
    const ofAnotherCell = ({ record, ...rest }: Waiter, nth: number): Waiter => ({
      ...rest,
      record: { ...record, key: 5 * NUMBERS_OF_CELL + nth + 1 },
    });
    const [here, ...moved] = bench.store.waiters as [Waiter, ...Waiter[]];
    bench.store.waiters = [here, ...moved.map(ofAnotherCell)];
    const { resolveWaiters } = bench.store;
    bench.store.resolveWaiters = async (args) => {
      bench.store.resolveWaiters = resolveWaiters;
      const answers = await resolveWaiters.call(bench.store, args);
      await bench.wait(run(1), 2); // it waits for the same event again
      bench.store.waiters.sort((a, b) => a.record.key - b.record.key);
      return answers;
    };
    expect((await bench.notify('x'.repeat(2 * 1024 * 1024))).map(({ runId }) => runId)).toEqual([
      'wfr_1',
      'wfr_2',
      'wfr_3',
    ]);
    expect(bench.store.waiters).toHaveLength(1);
  });

  test('saves the chunks of a page one after another, before the messages of the first one start', async () => {
    const bench = new Bench();
    for (let key = 1; key <= 450; key += 1) await bench.wait(bench.store.add(run(key)));
    const { resolveWaiters } = bench.store;
    const all = Promise.withResolvers<void>();
    let asked = 0;
    bench.store.resolveWaiters = async (args) => {
      asked += 1;
      if (asked === 3) all.resolve();
      await all.promise; // none is resolved before all have started
      return resolveWaiters.call(bench.store, args);
    };
    expect(await bench.notify()).toHaveLength(450);
    expect(asked).toBe(3);
  });

  test('reads a page while the previous one is saved', async () => {
    const bench = new Bench();
    for (const key of [1, 2]) await bench.wait(bench.store.add(run(key)));
    bench.store.calls.length = 0;
    await bench.notify('x'.repeat(2 * 1024 * 1024)); // a page for each
    const both = ['listWaiters', 'resolveWaiters'];
    expect(bench.store.calls).toEqual(['listWaiters', ...both, ...both]);
  });

  test('of at most one page lets each chunk continue once it is saved', async () => {
    const bench = new Bench();
    for (let key = 1; key <= 250; key += 1) await bench.wait(bench.store.add(run(key)));
    await bench.notify();
    expect(bench.started).toBe(250);
    expect(bench.lines).toEqual(new Set());
  });

  test('of more than one page lets none continue before all are woken', async () => {
    const bench = new Bench();
    for (let key = 1; key <= 1_050; key += 1) await bench.wait(bench.store.add(run(key)));
    const seen: number[] = [];
    const { resolveWaiters } = bench.store;
    bench.store.resolveWaiters = (args) => {
      seen.push(bench.started + bench.lines.size);
      return resolveWaiters.call(bench.store, args);
    };
    await bench.notify();
    expect(seen).toEqual([0, 0, 0, 0, 0, 0]);
    expect(bench.started).toBe(0);
    expect(bench.lines).toEqual(new Set(['1 https://a.example']));
  });

  test('of very many pages lets the first continue before the last are woken', async () => {
    const bench = new Bench();
    for (let key = 1; key <= 12; key += 1) await bench.wait(bench.store.add(run(key)));
    const seen: number[] = [];
    const { resolveWaiters } = bench.store;
    bench.store.resolveWaiters = (args) => {
      seen.push(bench.lines.size);
      return resolveWaiters.call(bench.store, args);
    };
    await bench.notify('x'.repeat(2 * 1024 * 1024)); // a page for each
    expect(seen).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
  });

  test('that fails midway lets the woken runs continue, including those saved after the failure', async () => {
    const bench = new Bench();
    for (let key = 1; key <= 1_050; key += 1) await bench.wait(bench.store.add(run(key)));
    const refused = Promise.withResolvers<void>();
    const { resolveWaiters } = bench.store;
    bench.store.resolveWaiters = async (args) => {
      if (args.resolutions[0]?.result.message.settings.run?.key === 1) throw new StoreUnavailable('full');
      await refused.promise;
      return resolveWaiters.call(bench.store, args);
    };
    await expect(bench.notify()).rejects.toThrow('full');
    expect(bench.lines).toEqual(new Set());
    refused.resolve();
    await bench.clock.settled();
    expect(bench.store.waiters).toHaveLength(250);
    expect(bench.lines).toEqual(new Set(['1 https://a.example']));
  });

  test('writes a large event for few waiters at a time', async () => {
    const bench = new Bench();
    for (let key = 1; key <= 9; key += 1) await bench.wait(bench.store.add(run(key)));
    bench.store.calls.length = 0;
    await bench.notify('x'.repeat(1024 * 1024));
    expect(bench.store.calls.filter((name) => name === 'resolveWaiters')).toHaveLength(3);
    expect(bench.store.results).toHaveLength(9);
  });

  test('without data is written for many waiters at a time', async () => {
    const bench = new Bench();
    for (let key = 1; key <= 9; key += 1) await bench.wait(bench.store.add(run(key)));
    bench.store.calls.length = 0;
    await bench.notify('');
    expect(bench.store.calls.filter((name) => name === 'resolveWaiters')).toHaveLength(1);
  });

  test('of one run wakes all its waiters, however few at a time', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    for (const stepId of [1, 2, 3, 4, 5]) await bench.wait(one, stepId);
    const answer = await bench.notifyRun(one, 'x'.repeat(2 * 1024 * 1024));
    expect(bench.store.results).toHaveLength(5);
    expect(answer?.messageId).toBe(bench.store.results[0]?.message.id);
  });

  test('of one run wakes all its waiters for the event, or only the oldest', async () => {
    const bench = new Bench();
    const [one, two] = [bench.store.add(run(1)), bench.store.add(run(2))];
    await bench.wait(two);
    for (const stepId of [1, 2, 3]) await bench.wait(one, stepId);
    const answer = await bench.notifyRun(one, 'oldest', true);
    expect(answer?.messageId).toBe(bench.store.results[0]?.message.id);
    await bench.notifyRun(one, 'all');
    expect(bench.told()).toEqual(['wfr_1 s1: oldest', 'wfr_1 s2: all', 'wfr_1 s3: all']);
    expect(bench.store.waiters).toHaveLength(1);
  });

  test('of an ended run finds no waiters', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    bench.store.before['savePendingEvent'] = () => bench.store.end(one);
    expect(await bench.notifyRun(one)).toBeUndefined();
    expect(await bench.notifyRun(run(2))).toBeUndefined();
  });

  test('is not saved when a waiter was registered since, but wakes it', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    bench.store.before['savePendingEvent'] = async () => {
      await bench.wait(one);
    };
    expect(await bench.notifyRun(one)).toHaveProperty('messageId');
    expect(bench.told()).toEqual(['wfr_1 s1: data']);
    expect(bench.store.pendingEvents).toEqual([]);
  });

  test('is saved for the next wait when another notification was first to resolve the waiter', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    await bench.wait(one);
    bench.store.before['resolveWaiters'] = async () => {
      await bench.notifyRun(one, 'first');
    };
    await bench.notifyRun(one, 'second');
    await bench.wait(one, 2);
    expect(bench.told()).toEqual(['wfr_1 s1: first', 'wfr_1 s2: second']);
    expect(bench.reserved).toBe(0);
  });

  test('is refused when too many are saved for a run already', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    for (let sent = 0; sent < 1_000; sent += 1) await bench.notifyRun(one);
    await expect(bench.notifyRun(one)).rejects.toMatchObject({ status: 412 });
    await bench.wait(one);
    expect(await bench.notifyRun(one)).toBeDefined();
  });
});

describe('the list of the waiters of an event', () => {
  /** With 1,100 waiters and at most `perRead` per read: the listed ones, and the number of reads. */
  async function listed(perRead: number): Promise<{ count: number; reads: number }> {
    const bench = new Bench();
    for (let key = 1; key <= 1_100; key += 1) await bench.wait(bench.store.add(run(key)));
    bench.store.calls.length = 0;
    const { listWaiters } = bench.store;
    bench.store.listWaiters = (args) =>
      listWaiters.call(bench.store, { ...args, count: Math.min(perRead, args.count) });
    const waiters = await bench.waits.listWaiters(PROJECT, EVENT);
    expect(waiters).toEqual(bench.store.waiters.slice(0, waiters.length));
    return { count: waiters.length, reads: bench.store.calls.length };
  }

  test('has a thousand of them at most, and takes four reads at most', async () => {
    expect(await listed(1_000)).toEqual({ count: 1_000, reads: 1 });
    expect(await listed(300)).toEqual({ count: 1_000, reads: 4 });
    expect(await listed(100)).toEqual({ count: 400, reads: 4 });
  });

  test('ends with the last of them', async () => {
    const bench = new Bench();
    for (let key = 1; key <= 3; key += 1) await bench.wait(bench.store.add(run(key)));
    bench.store.calls.length = 0;
    expect(await bench.waits.listWaiters(PROJECT, EVENT)).toHaveLength(3);
    expect(bench.store.calls).toEqual(['listWaiters', 'listWaiters']);
    expect(await bench.waits.listWaiters(PROJECT, 'another')).toEqual([]);
  });
});

describe('a timeout', () => {
  test('ends a wait at its deadline, elsewhere and without an event, and reads the store only then', async () => {
    const bench = new Bench();
    const one = bench.store.add(run(1));
    await bench.clock.settled();
    await bench.wait(one);
    await bench.clock.settled();
    const calls = bench.store.calls.length;
    await bench.clock.advanceBy(DAY_MS - 1);
    expect(bench.store.calls.length).toBeLessThanOrEqual(calls + 1);
    expect(bench.told()).toEqual([]);
    await bench.clock.advanceBy(1);
    expect(bench.told()).toEqual(['wfr_1 s1: late']);
    expect(bench.store.results[0]?.message.url).toBe('https://a.example/late');
    expect(await bench.notify()).toEqual([]);
  });

  test('may have its own body', async () => {
    const bench = new Bench();
    await bench.wait(bench.store.add(run(1)), 1, { timeoutBody: Buffer.from('{"own":1}').toString('base64') });
    await bench.clock.advanceBy(DAY_MS);
    expect(Buffer.from(bench.store.results[0]?.message.body ?? NOTHING).toString()).toBe('{"own":1}');
  });

  test.each([
    ['the notification', 'resolveWaiters', ['wfr_1 s1: data']],
    ['the time-out', 'listWaiters', ['wfr_1 s1: late']],
  ])('and a notification at the same moment add one entry: %s came first', async (_first, _call, told) => {
    const bench = new Bench();
    await bench.wait(bench.store.add(run(1)));
    if (told[0]?.endsWith('data')) {
      bench.store.before['resolveWaiters'] = async () => {
        await bench.notify();
      };
      await bench.clock.advanceBy(DAY_MS);
    } else {
      bench.store.before['resolveWaiters'] = () => bench.clock.advanceBy(DAY_MS);
      expect(await bench.notify()).toEqual([]);
    }
    expect(bench.told()).toEqual(told);
    expect(bench.reserved).toBe(0);
  });

  test('of many waits at once continues until all have ended', async () => {
    const bench = new Bench();
    for (let key = 1; key <= 450; key += 1) await bench.wait(bench.store.add(run(key)));
    await bench.clock.advanceBy(DAY_MS);
    expect(bench.told()).toHaveLength(450);
  });
});

test('the end of a run leaves no waiters', async () => {
  const bench = new Bench();
  const one = bench.store.add(run(1));
  await bench.wait(one);
  bench.store.before['resolveWaiters'] = () => bench.store.end(one);
  expect(await bench.notify()).toEqual([]);
  await bench.clock.advanceBy(DAY_MS);
  expect(bench.told()).toEqual([]);
  expect(bench.reserved).toBe(0);
});
