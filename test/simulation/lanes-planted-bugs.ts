/** Bugs that queues, limits and pauses have had elsewhere, inserted between engine and store (see `planted-bugs.ts`). */

import type { Message, NewMessage, Settlement } from '../../src/engine/model.ts';
import type { Store } from '../../src/store/store.ts';
import type { StoreMethods } from '../support/altered-store.ts';
import { altered, type PlantedBug } from './planted-bugs.ts';
import { PROJECT, type Sabotage } from './world.ts';

export const LANE_BUGS: Record<string, PlantedBug> = {
  'a queue starts its next message while a retry is pending': {
    promise: 'P5',
    seed: 6,
    sabotage: () => atRetry(withOneMoreSlot),
  },
  'a permit of a queue is released twice': { promise: 'P5', seed: 8, sabotage: () => atEnd(withOneMoreSlot) },
  'a permit of a queue is never released': { promise: 'P2', sabotage: () => atEnd(withoutSlots) },
  'a batch is enqueued backwards': { promise: 'P5', sabotage: () => altered(enqueuedBackwards) },
  'a paused queue starts messages': { promise: 'P5', seed: 6, sabotage: () => altered(withoutQueuePause) },
  'a deleted queue starts messages': { promise: 'P2', seed: 28, sabotage: () => altered(withoutDeletion) },
  'the next message of a lane is claimed but not started': {
    promise: 'P2',
    seed: 36,
    sabotage: () => altered(forgettingSuccessors),
  },
  'workers are not notified of messages that a lane releases': {
    promise: 'P2',
    sabotage: () => altered(withoutWakeUps),
  },
  'a key exceeds its parallelism by one': { promise: 'P4', seed: 27, sabotage: () => altered(withOneMoreInFlight) },
  'the rate does not count retries': { promise: 'P4', sabotage: () => atRetry(withFreshWindow) },
  'a paused key starts messages': { promise: 'P4', seed: 9, sabotage: () => altered(withoutKeyPause) },
  'a pin changes nothing': { promise: 'P4', seed: 145, sabotage: () => altered(withoutPins) },
};

type AfterSettle = (store: Store, message: Message, nowMs: number) => Promise<void>;

function atRetry(then: AfterSettle): Sabotage {
  return afterSettle(({ change }) => change.next.kind === 'waiting', then);
}

function atEnd(then: AfterSettle): Sabotage {
  return afterSettle(({ change }) => change.next.kind === 'finished', then);
}

function afterSettle(isMeant: (settlement: Settlement) => boolean, then: AfterSettle): Sabotage {
  return altered((store) => {
    const messages = new Map<number, Message>();
    return {
      accept: ({ messages: newMessages, nowMs }) => {
        for (const { message } of newMessages) messages.set(message.key, message);
        return store.messages.accept({ messages: newMessages, nowMs });
      },
      settle: async ({ settlement, nowMs, handoff }) => {
        const answer = await store.messages.settle({ settlement, nowMs, handoff });
        const message = messages.get(settlement.key);
        if (message && answer.kind === 'saved' && isMeant(settlement)) await then(store, message, nowMs);
        return answer;
      },
    };
  });
}

/** Gives the next message of the queue an additional lane permit. */
async function withOneMoreSlot(store: Store, { settings }: Message, nowMs: number): Promise<void> {
  const queue =
    settings.queueName === undefined
      ? undefined
      : await store.queues.findQueue({ projectId: PROJECT, name: settings.queueName, nowMs });
  if (!queue) return;
  await store.queues.saveQueue({ projectId: PROJECT, ...queue, parallelism: queue.parallelism + 1, nowMs });
  await store.queues.saveQueue({ projectId: PROJECT, ...queue, nowMs });
}

async function withoutSlots(store: Store, { settings }: Message, nowMs: number): Promise<void> {
  if (settings.queueName === undefined) return;
  await store.queues.saveQueue({
    projectId: PROJECT,
    name: settings.queueName,
    parallelism: 0,
    isPaused: false,
    nowMs,
  });
}

async function withFreshWindow(store: Store, { settings }: Message, nowMs: number): Promise<void> {
  if (settings.flowControl) await store.keys.resetKeyRate({ projectId: PROJECT, key: settings.flowControl.key, nowMs });
}

function enqueuedBackwards(store: Store): Partial<StoreMethods> {
  return {
    accept: async ({ messages, nowMs }) =>
      (await store.messages.accept({ messages: messages.toReversed(), nowMs })).toReversed(),
  };
}

function withoutQueuePause(store: Store): Partial<StoreMethods> {
  return {
    setQueuePaused: async (args) => (args.isPaused ? 'saved' : await store.queues.setQueuePaused(args)),
  };
}

function withoutDeletion(): Partial<StoreMethods> {
  return { deleteQueue: async () => undefined };
}

function forgettingSuccessors(store: Store): Partial<StoreMethods> {
  return {
    settle: async ({ settlement, nowMs, handoff }) => {
      const answer = await store.messages.settle({ settlement, nowMs, handoff });
      if (answer.kind !== 'saved') return answer;
      const { next: _next, ...rest } = answer;
      return rest;
    },
  };
}

function withoutWakeUps(store: Store): Partial<StoreMethods> {
  Object.defineProperty(store.events, 'onDue', { get: () => () => {}, set: () => {} });
  return {};
}

function withOneMoreInFlight(store: Store): Partial<StoreMethods> {
  const loosened = (newMessages: NewMessage): NewMessage => {
    const { flowControl } = newMessages.message.settings;
    if (flowControl?.parallelism === undefined) return newMessages;
    const settings = {
      ...newMessages.message.settings,
      flowControl: { ...flowControl, parallelism: flowControl.parallelism + 1 },
    };
    return { ...newMessages, message: { ...newMessages.message, settings } };
  };
  return { accept: ({ messages, nowMs }) => store.messages.accept({ messages: messages.map(loosened), nowMs }) };
}

function withoutKeyPause(store: Store): Partial<StoreMethods> {
  return {
    setKeyPaused: async (args) => {
      if (!args.isPaused) await store.keys.setKeyPaused(args);
    },
  };
}

function withoutPins(): Partial<StoreMethods> {
  return { pinKey: async () => {} };
}
