/** The operations of a client, as commands that run on the reference and on the real engine. */

import { PROJECT } from '../simulation/world.ts';
import { fc } from '../support/fast-check.ts';
import { type Item, isUnfinished, type Reference, type Wish } from './reference.ts';
import type { System } from './system.ts';

export type Command = fc.AsyncCommand<Reference, System>;

/** Does one thing at the beginning of a tick, lets the rest of the tick happen, and compares everything. */
class ClientCommand implements Command {
  readonly #text: string;
  readonly #canRun: (reference: Readonly<Reference>) => boolean;
  readonly #act: (reference: Reference, system: System) => Promise<void> | void;

  constructor(
    text: string,
    act: (reference: Reference, system: System) => Promise<void> | void,
    canRun: (reference: Readonly<Reference>) => boolean = () => true,
  ) {
    this.#text = text;
    this.#act = act;
    this.#canRun = canRun;
  }

  check(reference: Readonly<Reference>): boolean {
    return this.#canRun(reference);
  }

  async run(reference: Reference, system: System): Promise<void> {
    await this.#act(reference, system);
    reference.settle();
    reference.finishTick();
    await system.settle();
    await system.compare(reference);
    reference.nextTick();
    await system.nextTick();
  }

  toString(): string {
    return this.#text;
  }
}

const QUEUES = ['first', 'second'];
const KEYS = ['joint', 'rate', 'slots'];
const queueName = fc.constantFrom(...QUEUES);
const keyName = fc.constantFrom(...KEYS);
const quick = fc.constantFrom('ok' as const, 'bad' as const, 'slow' as const);
const anyKind = fc.constantFrom('ok' as const, 'bad' as const, 'slow' as const, 'flaky' as const);
const delayTicks = fc.constantFrom(0, 0, 1, 2);

/**
 * Messages whose lot is the same whatever moment of a tick their attempts end at: retries and delays meet only lanes in
 * which nothing else may come at the same moment in another order.
 */
const wish: fc.Arbitrary<Wish> = fc.oneof(
  fc.record({ kind: anyKind, delayTicks }),
  fc.record({ kind: anyKind, delayTicks: fc.constant(0), deduplicationId: fc.constantFrom('a', 'b') }),
  { weight: 2, arbitrary: fc.record({ kind: anyKind, delayTicks: fc.constant(0), queueName }) },
  fc.record({
    kind: quick,
    delayTicks,
    key: fc.record({ name: fc.constant('slots'), parallelism: fc.constantFrom(1, 2) }),
  }),
  fc.record({
    kind: quick,
    delayTicks: fc.constant(0),
    key: fc.record({ name: fc.constant('rate'), rate: fc.constantFrom(1, 2) }),
  }),
  fc.record({
    kind: quick,
    delayTicks: fc.constant(0),
    queueName: fc.constant('first'),
    key: fc.record({ name: fc.constant('joint'), parallelism: fc.constant(1) }),
  }),
);

/** Some of each, or several of one. */
const wishes = fc.oneof(
  fc.array(wish, { minLength: 1, maxLength: 4 }),
  fc.tuple(wish, fc.integer({ min: 2, max: 5 })).map(([each, count]) => Array.from({ length: count }, () => each)),
);

const publish = wishes.map(
  (batch) =>
    new ClientCommand(`publish ${JSON.stringify(batch)}`, async (reference, system) => {
      const items = batch.map((each) => {
        const item = reference.publish(each);
        reference.settle();
        return item;
      });
      await system.publish(batch, items);
    }),
);

const saveQueue = fc.tuple(queueName, fc.constantFrom(1, 2), fc.boolean()).map(
  ([name, parallelism, isPaused]) =>
    new ClientCommand(
      `save queue ${name} with ${parallelism}${isPaused ? ', paused' : ''}`,
      async (reference, system) => {
        reference.saveQueue(name, parallelism, isPaused);
        await system.ask((engine) => engine.storeOf(PROJECT).queues.saveQueue({ name, parallelism, isPaused }));
      },
    ),
);

const pauseQueue = fc.tuple(queueName, fc.boolean()).map(
  ([name, isPaused]) =>
    new ClientCommand(`${isPaused ? 'pause' : 'resume'} queue ${name}`, async (reference, system) => {
      const expected = reference.pauseQueue(name, isPaused);
      const answer = await system.ask((engine) => engine.storeOf(PROJECT).queues.setQueuePaused({ name, isPaused }));
      if (answer !== expected) throw new Error(`the queue was ${answer}, not ${expected}`);
    }),
);

const deleteQueue = queueName.map(
  (name) =>
    new ClientCommand(`delete queue ${name}`, async (reference, system) => {
      reference.deleteQueue(name);
      await system.ask((engine) => engine.deleteQueue(PROJECT, name));
    }),
);

const pauseKey = fc.tuple(keyName, fc.boolean()).map(
  ([name, isPaused]) =>
    new ClientCommand(`${isPaused ? 'pause' : 'resume'} key ${name}`, async (reference, system) => {
      reference.pauseKey(name, isPaused);
      await system.ask((engine) => engine.storeOf(PROJECT).keys.setKeyPaused({ key: name, isPaused }));
    }),
);

const pinKey = fc.tuple(keyName, fc.constantFrom(1, 2)).map(
  ([name, parallelism]) =>
    new ClientCommand(`pin key ${name} at ${parallelism}`, async (reference, system) => {
      reference.pinParallelism(name, parallelism);
      await system.ask((engine) => engine.storeOf(PROJECT).keys.pinKey({ key: name, pin: { parallelism } }));
    }),
);

const unpinKey = keyName.map(
  (name) =>
    new ClientCommand(`unpin key ${name}`, async (reference, system) => {
      reference.unpinParallelism(name);
      await system.ask((engine) =>
        engine.storeOf(PROJECT).keys.unpinKey({ key: name, parallelism: true, rate: false }),
      );
    }),
);

const cancel = fc.nat().map(
  (draw) =>
    new ClientCommand(
      `cancel ${draw}`,
      async (reference, system) => {
        // Mostly one that has not ended.
        const unfinished = reference.items.filter(isUnfinished);
        const candidates = unfinished.length === 0 || draw % 5 === 0 ? reference.items : unfinished;
        const item = candidates[draw % candidates.length] as Item;
        const isThere = isUnfinished(item);
        reference.cancel(item);
        const count = await system.cancel(item);
        if (count !== (isThere ? 1 : 0)) throw new Error(`${count} messages were cancelled`);
      },
      ({ items }) => items.length > 0,
    ),
);

function onDead(name: string, act: (item: Item, reference: Reference, system: System) => Promise<void>) {
  return fc.nat().map(
    (draw) =>
      new ClientCommand(
        `${name} ${draw}`,
        async (reference, system) => {
          const dead = deadOf(reference);
          await act(dead[draw % dead.length] as Item, reference, system);
        },
        (reference) => deadOf(reference).length > 0,
      ),
  );
}

const retryDead = onDead('retry dead', (item, reference, system) => system.retryDead(item, reference.retryDead(item)));
const deleteDead = onDead('delete dead', (item, reference, system) => {
  reference.deleteDead(item);
  return system.deleteDead(item);
});

function deadOf({ items }: Readonly<Reference>): Item[] {
  return items.filter(({ state }) => state === 'dead');
}

const changeGroup = fc.tuple(fc.constantFrom('g', 'h'), fc.constantFrom('1', '2'), fc.boolean()).map(
  ([name, path, isAdded]) =>
    new ClientCommand(`${isAdded ? 'add' : 'remove'} endpoint ${path} of group ${name}`, async (reference, system) => {
      const url = `https://ok.example/${path}`;
      const urls = reference.groups.get(name) ?? new Set();
      if (isAdded) {
        reference.groups.set(name, urls.add(url));
        const limits = { groupsMax: 0, endpointsMax: 0 };
        await system.ask((engine) =>
          engine.storeOf(PROJECT).urlGroups.addEndpoints({ name, endpoints: [{ url }], limits }),
        );
        return;
      }
      if (urls.delete(url) && urls.size === 0) reference.groups.delete(name);
      await system.ask((engine) => engine.storeOf(PROJECT).urlGroups.removeEndpoints({ name, selectors: [{ url }] }));
    }),
);

const passTime = fc.constant(new ClientCommand('pass time', () => {}));

const restart = fc.constant(
  new ClientCommand('restart', (reference, system) => {
    reference.restart();
    system.restart();
  }),
);

export const COMMANDS: fc.Arbitrary<Command>[] = [
  publish,
  publish,
  publish,
  publish,
  publish,
  saveQueue,
  pauseQueue,
  deleteQueue,
  pauseKey,
  pinKey,
  unpinKey,
  cancel,
  retryDead,
  deleteDead,
  changeGroup,
  passTime,
  restart,
];
