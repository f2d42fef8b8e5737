/** A dispatcher over a fake store and a simulated network, for tests of its timing. */

import { Dispatcher } from '../../src/engine/dispatch/dispatcher.ts';
import type { BacklogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { Message } from '../../src/engine/model.ts';
import type { Clock, Delivery, EventLog } from '../../src/engine/ports.ts';
import { Reports } from '../../src/engine/reports.ts';
import { JournalBodies } from '../../src/engine/runs/journal-bodies.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import { ALWAYS_OPEN, type Fence } from '../../src/engine/workers/fence.ts';
import { Numbers } from '../../src/engine/workers/numbers.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { type Reply, SimulatedNetwork } from '../support/simulated-network.ts';
import { FakeStore } from './fake-store.ts';
import { message, NOW_MS } from './fixtures.ts';

export interface Bench {
  clock: SimulatedClock;
  store: FakeStore;
  network: SimulatedNetwork;
  dispatcher: Dispatcher;
  numbers: Numbers;
  warnings: string[];
  /** The planned next attempt after each failed one. */
  details: string[];
  /** Keys in the order in which they were sent. */
  sent: () => number[];
}

/** A dispatcher over a fake store; endpoints respond with 200 after 10 ms. Call `dispatcher.wake()` to start it. */
export function bench(
  options: {
    settings?: Partial<EngineSettings>;
    waitingBacklogs?: BacklogKey[];
    fence?: Fence;
    areClaimsSeparate?: boolean;
    /** If set, a message takes a millisecond to start, and this ends a turn of the event loop. */
    endOfTurn?: () => Promise<void>;
  } = {},
): Bench {
  const clock = new SimulatedClock(NOW_MS);
  const store = new FakeStore();
  const network = new SimulatedNetwork(clock, { travelMs: () => 0, timeoutMs: 3_600_000 });
  for (const origin of ['https://a.example', 'https://b.example', 'https://c.example', 'https://d.example']) {
    setReply(network, origin, { kind: 'answer', status: 200, afterMs: 10 });
  }
  const warnings: string[] = [];
  const details: string[] = [];
  const log: EventLog = {
    debug: (_event, { next = '' } = {}) => details.push(String(next)),
    info: () => {},
    warn: (event) => warnings.push(event),
    error: () => {},
  };
  const settings = { ...ENGINE_SETTINGS, inFlightPerOriginMax: 4, ...options.settings };
  const numbers = new Numbers(store);
  const randomness = new SeededRandom(1);
  const bodies = new JournalBodies(store);
  const delivery = network.connect();
  const { fence = ALWAYS_OPEN, areClaimsSeparate = false, endOfTurn } = options;
  const reports = new Reports({ log }, { count: () => {}, attempted: () => {} });
  const deps = {
    store,
    bodies,
    cancellations: { noteNext: () => {} },
    numbers,
    clock,
    randomness,
    delivery,
    log,
    reports,
    settings,
    worker: 'worker-1',
    fence,
    areClaimsSeparate,
    ...(endOfTurn && { ...sendingSlowly(clock, delivery), endOfTurn }),
  };
  const dispatcher = new Dispatcher(deps);
  dispatcher.addBacklogs(options.waitingBacklogs ?? []);
  const sent = () => network.attempts.map(({ messageId }) => Number(messageId.slice('msg_'.length)));
  return { clock, store, network, dispatcher, numbers, warnings, details, sent };
}

function sendingSlowly(clock: SimulatedClock, delivery: Delivery): { clock: Clock; delivery: Delivery } {
  let sentMs = 0;
  return {
    clock: {
      nowMs: () => clock.nowMs(),
      wallMs: () => clock.wallMs(),
      leadMs: 0,
      onJump: (listener) => clock.onJump(listener),
      get elapsedMs() {
        return clock.elapsedMs + sentMs;
      },
      startTimer: (delayMs, task) => clock.startTimer(delayMs, task),
    },
    delivery: {
      ...delivery,
      attempt: (...args) => {
        sentMs += 1;
        return delivery.attempt(...args);
      },
    },
  };
}

export function setReply(network: SimulatedNetwork, origin: string, reply: Reply): void {
  network.setEndpoint(origin, () => reply);
}

export function to(letter: string, key: number, changes: Partial<Message> = {}): Message {
  const origin = `https://${letter}.example`;
  return message({ key, origin, url: `${origin}/hook`, ...changes });
}
