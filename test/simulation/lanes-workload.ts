/** Draws random actions on queues and flow-control keys, and the lanes of messages. */
import type { Engine } from '../../src/engine/commands.ts';
import type { FlowPin } from '../../src/engine/lanes/lanes.ts';
import type { FlowControl, MessageSettings } from '../../src/protocol/options/settings.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import type { KeyAction, QueueAction } from './ledger.ts';
import { PROJECT, type World } from './world.ts';

/** Each queue with the parallelisms that may be drawn for it. */
export const PARALLELISMS_BY_QUEUE: Readonly<Record<string, readonly number[]>> = {
  'one-by-one': [1],
  'two-at-a-time': [2],
  changing: [1, 2, 3],
};
const QUEUES = Object.keys(PARALLELISMS_BY_QUEUE);

/** The limits that all messages of a key state. With `drawn`, each message draws its own limits. */
const LIMITS_BY_KEY: Readonly<Record<string, Omit<FlowControl, 'key'> | 'drawn'>> = {
  slots: { parallelism: 2, periodS: 1 },
  rate: { rate: 2, periodS: 5 },
  both: { parallelism: 1, rate: 3, periodS: 10 },
  changing: 'drawn',
  pinned: 'drawn',
};
const KEYS = Object.keys(LIMITS_BY_KEY);
/** The only key that is pinned, unpinned and reset, so that the limits of the others are known precisely. */
const PINNED_KEY = 'pinned';

const UNPINNED_PARTS = [
  { parallelism: true, rate: false },
  { parallelism: false, rate: true },
  { parallelism: true, rate: true },
];

const STEP_WEIGHTS = {
  saveQueue: 5,
  pauseQueue: 4,
  resumeQueue: 6,
  deleteQueue: 2,
  pauseKey: 3,
  resumeKey: 5,
  pinKey: 3,
  unpinKey: 2,
  resetKeyRate: 2,
};

export class LaneWorkload {
  readonly #world: World;
  readonly #random: SeededRandom;
  /** The fraction of messages that are in a lane. */
  readonly #fraction: number;

  constructor(world: World, random: SeededRandom) {
    this.#world = world;
    this.#random = random.fork();
    this.#fraction = this.#random.choose([0.1, 0.4, 0.9]);
  }

  step(): void {
    const step = this.#random.weighted(STEP_WEIGHTS);
    void this[`${step}`]();
  }

  /** Draws the lanes of a message, if any. */
  lanesOfMessage(): Pick<MessageSettings, 'queueName' | 'flowControl'> {
    const random = this.#random;
    if (!random.chance(this.#fraction)) return {};
    const lanes: Pick<MessageSettings, 'queueName' | 'flowControl'> = {};
    if (random.chance(0.6)) lanes.queueName = random.choose(QUEUES);
    if (lanes.queueName === undefined || random.chance(0.4)) lanes.flowControl = this.#limits(random.choose(KEYS));
    return lanes;
  }

  /** Resumes all queues and keys, and unpins the limits of all keys. */
  async openAll(): Promise<void> {
    for (const queueName of QUEUES) await this.resumeQueue(queueName);
    for (const key of KEYS) await this.resumeKey(key);
    await this.unpinKey({ parallelism: true, rate: true });
  }

  saveQueue(): Promise<void> {
    const queueName = this.#random.choose(QUEUES);
    const parallelism = this.#random.choose(PARALLELISMS_BY_QUEUE[queueName] ?? []);
    const isPaused = this.#random.chance(0.1);
    return this.#callQueue({ action: 'save', queueName, parallelism, isPaused }, (engine) =>
      engine.storeOf(PROJECT).queues.saveQueue({ name: queueName, parallelism, isPaused }),
    );
  }

  pauseQueue(): Promise<void> {
    const queueName = this.#random.choose(QUEUES);
    return this.#callQueue({ action: 'pause', queueName }, (engine) =>
      engine.storeOf(PROJECT).queues.setQueuePaused({ name: queueName, isPaused: true }),
    );
  }

  resumeQueue(queueName = this.#random.choose(QUEUES)): Promise<void> {
    return this.#callQueue({ action: 'resume', queueName }, (engine) =>
      engine.storeOf(PROJECT).queues.setQueuePaused({ name: queueName, isPaused: false }),
    );
  }

  deleteQueue(): Promise<void> {
    const queueName = this.#random.choose(QUEUES);
    return this.#callQueue({ action: 'delete', queueName }, async (engine) => {
      await engine.deleteQueue(PROJECT, queueName);
      return 'saved';
    });
  }

  pauseKey(): Promise<void> {
    const key = this.#random.choose(KEYS);
    return this.#callKey({ action: 'pause', key }, (engine) =>
      engine.storeOf(PROJECT).keys.setKeyPaused({ key, isPaused: true }),
    );
  }

  resumeKey(key = this.#random.choose(KEYS)): Promise<void> {
    return this.#callKey({ action: 'resume', key }, (engine) =>
      engine.storeOf(PROJECT).keys.setKeyPaused({ key, isPaused: false }),
    );
  }

  pinKey(): Promise<void> {
    const { parallelism, rate, periodS } = this.#limits(PINNED_KEY);
    const pin: FlowPin = {};
    if (parallelism !== undefined) pin.parallelism = parallelism;
    if (rate !== undefined) Object.assign(pin, { rate, periodS });
    return this.#callKey({ action: 'pin', key: PINNED_KEY, pin }, (engine) =>
      engine.storeOf(PROJECT).keys.pinKey({ key: PINNED_KEY, pin }),
    );
  }

  unpinKey(parts = this.#random.choose(UNPINNED_PARTS)): Promise<void> {
    return this.#callKey({ action: 'unpin', key: PINNED_KEY, ...parts }, (engine) =>
      engine.storeOf(PROJECT).keys.unpinKey({ key: PINNED_KEY, ...parts }),
    );
  }

  resetKeyRate(): Promise<void> {
    return this.#callKey({ action: 'reset', key: PINNED_KEY }, (engine) =>
      engine.storeOf(PROJECT).keys.resetKeyRate({ key: PINNED_KEY }),
    );
  }

  #limits(key: string): FlowControl {
    const limits = LIMITS_BY_KEY[key];
    if (limits !== undefined && limits !== 'drawn') return { key, ...limits };
    const random = this.#random;
    const drawn: FlowControl = { key, periodS: random.int(1, 20) };
    const kind = random.choose(['parallelism', 'rate', 'both']);
    if (kind !== 'rate') drawn.parallelism = random.int(1, 3);
    if (kind !== 'parallelism') drawn.rate = random.int(1, 5);
    return drawn;
  }

  async #callQueue(asked: QueueAction, action: (engine: Engine) => Promise<string>): Promise<void> {
    const { engine, ledger } = this.#world;
    if (!engine) return;
    const call = ledger.start(ledger.queueCalls, asked);
    await this.#world.call(
      call,
      `${asked.action} of queue ${asked.queueName}`,
      () => action(engine),
      (answer) => {
        call.wasDone = answer === 'saved';
      },
    );
  }

  async #callKey(asked: KeyAction, action: (engine: Engine) => Promise<void>): Promise<void> {
    const { engine, ledger } = this.#world;
    if (!engine) return;
    const call = ledger.start(ledger.keyCalls, asked);
    await this.#world.call(
      call,
      `${asked.action} of key ${asked.key}`,
      () => action(engine),
      () => {},
    );
  }
}
