/**
 * The engine in the simulated world without faults, driven in ticks, and its comparison with the reference.
 *
 * Each command runs slightly earlier in its tick than the previous one did in its own, so that effects of an earlier command
 * that fall into this tick follow it, as in the reference. The comparison is late in the tick, when all effects have happened.
 */
import { expect } from 'vitest';
import type { Engine } from '../../src/engine/commands.ts';
import type { PageRequest } from '../../src/engine/lists/page.ts';
import type { Explanation } from '../../src/engine/messages/explain.ts';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import type { MessageId, Millis } from '../../src/engine/model.ts';
import type { LogEntry } from '../../src/engine/stores.ts';
import { openDatabase } from '../simulation/database.ts';
import { historiesOf } from '../simulation/histories.ts';
import { PROJECT, World } from '../simulation/world.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import {
  DEDUPLICATION_TICKS,
  type Item,
  isUnfinished,
  type Key,
  type Kind,
  type Reference,
  SLOW_TICKS,
  type Wish,
} from './reference.ts';

/** A few of them are less than the limit of an attempt. */
const TICK_MS: Millis = 15_000;
/** How much earlier in its tick each command runs than the previous one did. */
const STEP_MS: Millis = 20;
/** More than a server needs to restart. */
const COMPARED_AT_MS: Millis = 10_000;
const DAY_MS: Millis = 86_400_000;

const SETTINGS = {
  inFlightMax: 1_000,
  inFlightPerOriginMax: 1_000,
  inFlightBytesMax: 10_000_000,
  deduplicationWindowMs: DEDUPLICATION_TICKS * TICK_MS,
  deliveredGraceMs: 5_000,
  logRetentionMs: 7 * DAY_MS,
  dlqRetentionMs: 7 * DAY_MS,
  retentionIntervalMs: DAY_MS,
  publishDelayTargetMs: 500,
  lazyFetchBytes: 3 * 1024 * 1024,
};

export class System {
  readonly #world: World;
  readonly #idOf = new Map<Item, MessageId>();
  readonly #close: () => Promise<void>;
  #ticks = 0;

  private constructor(world: World, close: () => Promise<void>) {
    this.#world = world;
    this.#close = close;
  }

  static async open(): Promise<System> {
    const driver = await openDatabase();
    const world = new World({ random: new SeededRandom(1), drivers: [driver], settings: SETTINGS });
    const answer = (status: number, afterMs = 5) => ({ kind: 'answer', status, afterMs }) as const;
    world.network.setEndpoint(originOf('ok'), () => answer(200));
    world.network.setEndpoint(originOf('bad'), () => answer(500));
    world.network.setEndpoint(originOf('slow'), () => answer(200, SLOW_TICKS * TICK_MS));
    world.network.setEndpoint(originOf('flaky'), ({ retried }) => answer(retried === 0 ? 500 : 200));
    const system = new System(world, () => driver.close());
    void world.start();
    await world.clock.advanceTo(TICK_MS);
    return system;
  }

  close(): Promise<void> {
    return this.#close();
  }

  get engine(): Engine {
    const { engine } = this.#world;
    if (!engine) throw new Error('the server is down');
    return engine;
  }

  /** Runs `action` while time passes; its answer comes within moments. */
  async ask<T>(action: (engine: Engine) => Promise<T>): Promise<T> {
    let answer: { value: T } | undefined;
    const asking = action(this.engine).then((value) => {
      answer = { value };
    });
    asking.catch(() => {}); // heard below
    await this.#world.clock.runUntil(() => answer !== undefined, 10_000);
    await asking;
    if (!answer) throw new Error('the engine did not answer');
    return answer.value;
  }

  /** Publishes a batch; `items` are what the reference made of it. */
  async publish(wishes: Wish[], items: Item[]): Promise<void> {
    const outcomes = await this.ask((engine) => engine.publish(PROJECT, wishes.map(commandOf)));
    for (const [index, item] of items.entries()) {
      const outcome = outcomes[index];
      if (!outcome || outcome === 'tooManyQueues') throw new Error('a publish was refused');
      const first = this.#idOf.get(item);
      expect(outcome.deduplicated).toBe(first !== undefined);
      if (first !== undefined) expect(outcome.messageId).toBe(first);
      else this.#idOf.set(item, outcome.messageId);
    }
  }

  async retryDead(item: Item, successor: Item): Promise<void> {
    const dlqId = await this.#dlqIdOf(item);
    const [id] = (await this.ask((engine) => engine.retryDead(PROJECT, [dlqId]))) ?? [];
    if (id === undefined) throw new Error('the DLQ entry is gone');
    this.#idOf.set(successor, id);
  }

  async deleteDead(item: Item): Promise<void> {
    const dlqId = await this.#dlqIdOf(item);
    expect(await this.ask((engine) => engine.storeOf(PROJECT).dead.deleteDead({ dlqIds: [dlqId] }))).toBe(1);
  }

  /** Answers how many were cancelled. */
  cancel(item: Item): Promise<number> {
    return this.ask((engine) => engine.storeOf(PROJECT).messages.cancelById({ ids: [this.#id(item)] }));
  }

  /** The process dies and comes back before the tick is over. */
  restart(): void {
    this.#world.crash('as a command');
  }

  /** Lets the tick pass up to the moment at which all is compared. */
  async settle(): Promise<void> {
    await this.#world.clock.advanceTo((this.#ticks + 1) * TICK_MS + COMPARED_AT_MS);
  }

  async nextTick(): Promise<void> {
    this.#ticks += 1;
    await this.#world.clock.advanceTo((this.#ticks + 1) * TICK_MS - this.#ticks * STEP_MS);
  }

  /** Everything that the interface shows is as the reference says. */
  async compare(reference: Reference): Promise<void> {
    expect(this.#world.violations).toEqual([]);
    await this.#compareLogs(reference);
    await this.#compareReasons(reference);
    await this.#compareDead(reference);
    await this.#compareQueues(reference);
    await this.#compareKeys(reference);
    const inFlight = reference.items.filter(({ state }) => state === 'inFlight').length;
    expect(await this.ask((engine) => engine.storeOf(PROJECT).keys.countInFlight())).toBe(inFlight);
    const groups = await this.ask((engine) => engine.storeOf(PROJECT).urlGroups.listUrlGroups());
    expect(groups.map(({ name, endpoints }) => [name, endpoints.map(({ url }) => url)])).toEqual(
      [...reference.groups].toSorted(byName).map(([name, urls]) => [name, [...urls]]),
    );
  }

  /** The log of each message, and pages that put together are the whole, in both orders. */
  async #compareLogs(reference: Reference): Promise<void> {
    const earliest = await this.#page('earliestFirst', 7);
    const latest = await this.#page('latestFirst', 11);
    expect(latest.toReversed().map(nameOf)).toEqual(earliest.map(nameOf));
    const histories = historiesOf(earliest);
    const told = reference.items.map((item) => [item.number, histories.get(this.#id(item))?.letters]);
    expect(told).toEqual(reference.items.map(({ number, letters }) => [number, letters]));
    expect(histories.size).toBe(reference.items.length);
  }

  async #page(order: PageRequest['order'], count: number): Promise<LogEntry[]> {
    const entries: LogEntry[] = [];
    let page: PageRequest = { order, count };
    for (;;) {
      const { items, cursor } = await this.ask((engine) => engine.storeOf(PROJECT).logs.listLogs({ filter: {}, page }));
      entries.push(...items);
      if (cursor === undefined) return entries;
      page = { order, count, cursor };
    }
  }

  async #compareReasons(reference: Reference): Promise<void> {
    for (const item of reference.items) {
      const id = this.#id(item);
      const explanation = await this.ask((engine) => engine.explainMessage(PROJECT, id));
      expect([item.number, explanation?.reason]).toEqual([item.number, reasonOf(reference, item)]);
      const found = await this.ask((engine) => engine.findMessage(PROJECT, id));
      if (isUnfinished(item)) expect(found?.id).toBe(id);
    }
  }

  async #compareDead(reference: Reference): Promise<void> {
    const { items } = await this.ask((engine) =>
      engine.storeOf(PROJECT).dead.listDead({ filter: {}, page: { count: 1_000, order: 'latestFirst' } }),
    );
    const dead = reference.items.filter(({ state }) => state === 'dead').map((item) => this.#id(item));
    expect(items.map(({ message }) => message.id).toSorted()).toEqual(dead.toSorted());
  }

  async #compareQueues(reference: Reference): Promise<void> {
    const queues = await this.ask((engine) => engine.storeOf(PROJECT).queues.listQueues({}));
    expect(queues.map(({ name, parallelism, isPaused, lag }) => ({ name, parallelism, isPaused, lag }))).toEqual(
      [...reference.queues.values()]
        .toSorted((a, b) => (a.name < b.name ? -1 : 1))
        .map((queue) => {
          const { name, parallelism, isPaused } = queue;
          return { name, parallelism, isPaused, lag: reference.lagOf(queue) };
        }),
    );
  }

  async #compareKeys(reference: Reference): Promise<void> {
    const keys = await this.ask((engine) =>
      engine.storeOf(PROJECT).keys.listKeys({ search: '', after: '', count: 100 }),
    );
    const shown = keys.map((key) => [key.key, key.parallelism, key.rate, key.isPaused, key.isParallelismPinned]);
    const counted = keys.map(({ inFlight, waitListSize }) => [inFlight, waitListSize]);
    const expected = [...reference.keys.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    expect(shown).toEqual(
      expected.map((key) => [key.name, key.parallelism, key.rate, key.isPaused, key.isParallelismPinned]),
    );
    expect(counted).toEqual(expected.map((key) => [reference.inFlightOf(key), reference.waitListOf(key).length]));
  }

  async #dlqIdOf(item: Item): Promise<string> {
    const { items } = await this.ask((engine) =>
      engine
        .storeOf(PROJECT)
        .dead.listDead({ filter: { messageId: [this.#id(item)] }, page: { count: 1, order: 'latestFirst' } }),
    );
    const [entry] = items;
    if (!entry) throw new Error('a dead message is not in the DLQ');
    return entry.dlqId;
  }

  #id(item: Item): MessageId {
    const id = this.#idOf.get(item);
    if (id === undefined) throw new Error('a message was never published');
    return id;
  }
}

/** By the last letter of its log. */
const REASONS_OF_ENDS: Readonly<Record<string, Explanation['reason']>> = { D: 'delivered', F: 'dead', X: 'cancelled' };

function reasonOf(reference: Reference, item: Item): Explanation['reason'] | undefined {
  const { state, queue, hasPermit, wish } = item;
  if (state === 'inFlight') return 'attempting';
  if (state !== 'waiting') return REASONS_OF_ENDS[item.letters.at(-1) ?? ''];
  if (queue?.isPaused) return 'queue_paused';
  if (queue && !hasPermit) return 'queued';
  if (!reference.isReady(item)) return item.retried > 0 ? 'retrying' : 'delayed';
  const key = wish.key && reference.keys.get(wish.key.name);
  return key && keyReasonOf(reference, key);
}

function keyReasonOf(reference: Reference, key: Key): Explanation['reason'] {
  if (key.isPaused) return 'key_paused';
  return reference.inFlightOf(key) >= (key.parallelism ?? Infinity) ? 'key_full' : 'key_rate';
}

function commandOf({ kind, delayTicks, queueName, key, deduplicationId }: Wish): PublishCommand {
  const settings: PublishCommand['options']['settings'] = {
    dialect: 'upstash',
    maxRetries: kind === 'flaky' ? 1 : 0,
    retryDelayExpression: String(TICK_MS),
  };
  if (queueName !== undefined) settings.queueName = queueName;
  if (key) {
    const { name, ...limits } = key;
    settings.flowControl = { key: name, periodS: TICK_MS / 1000, ...limits };
  }
  const options: PublishCommand['options'] = { method: 'POST', header: {}, explicitHeader: {}, settings };
  if (delayTicks > 0) options.delayMs = delayTicks * TICK_MS;
  if (deduplicationId !== undefined) options.deduplication = { by: 'id', id: deduplicationId };
  return { url: `${originOf(kind)}/hook`, body: new Uint8Array(), options };
}

function originOf(kind: Kind): string {
  return `https://${kind}.example`;
}

function nameOf({ message, state, atMs }: LogEntry): string {
  return `${atMs} ${message.id} ${state}`;
}

function byName([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}
