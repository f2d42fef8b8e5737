/**
 * Bugs that queues of this kind have had, inserted between the engine and its store, so that a test can prove that the
 * simulation finds each.
 */

import type { Accepted } from '../../src/engine/messages/accepted.ts';
import type { Claimed, ClaimToken, MessageId, MessageKey, Millis, NewMessage } from '../../src/engine/model.ts';
import type { Clock, Machine } from '../../src/engine/ports.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { SteadyClock, withWallTime } from '../../src/engine/workers/steady-clock.ts';
import type { Store } from '../../src/store/store.ts';
import { alteredStore, type StoreMethods } from '../support/altered-store.ts';
import type { SimulationOptions, SimulationReport } from './simulate.ts';
import type { Sabotage } from './world.ts';

export interface PlantedBug {
  /** The promise that the checks must report as broken. */
  promise: string;
  sabotage: () => Sabotage;
  /** The first seed to try: one that finds the bug. Default: 1. */
  seed?: number;
  /** The number of steps, if the bug needs more steps than other bugs. */
  steps?: number;
}

type Play = (options: SimulationOptions) => Promise<SimulationReport>;

/** The number of seeds to try, in case a change of the workload hides the bug from its own seed. */
const SEEDS_MAX = 40;

/** The promises that were broken until the bug was found, or with all seeds if it was not found. */
export async function findBrokenPromises(
  { promise, sabotage, seed: first = 1, steps: own }: PlantedBug,
  play: Play,
  { steps, ...shared }: { steps: number; workers?: number; cells?: number },
): Promise<string[]> {
  const broken: string[] = [];
  for (let seed = first; seed < first + SEEDS_MAX && !broken.includes(promise); seed += 1) {
    const { violations } = await play({ seed, steps: own ?? steps, sabotage: sabotage(), ...shared });
    broken.push(...violations.map((violation) => violation.promise));
  }
  return broken;
}

export const PLANTED_BUGS: Record<string, PlantedBug> = {
  'a settle does not check the claim token': { promise: 'P6', seed: 16, sabotage: withoutTokenCheck },
  'a publish is acknowledged before its commit': { promise: 'P1', sabotage: () => altered(acknowledgedTooEarly) },
  'a retry is not saved': { promise: 'P2', sabotage: () => altered(forgettingRetries) },
  'a cancel is confirmed but not saved': { promise: 'P2', sabotage: () => altered(forgettingCancels) },
  'a retry is saved without its count': { promise: 'P2', seed: 39, sabotage: () => altered(uncountedRetries) },
  'a message is sent that the store keeps waiting': { promise: 'P2', sabotage: () => altered(startingWhatWaits) },
  'a delivered message is not logged': { promise: 'P2', sabotage: () => altered(withoutTerminalEntry) },
  'a dead message never reaches the DLQ': { promise: 'P3', sabotage: () => altered(withoutDeadLetter) },
  'a deduplication id is reserved in another transaction than its message': { promise: 'P3', sabotage: reservingApart },
  'endpoint backlogs are forgotten': { promise: 'P2', sabotage: () => altered(forgettingBacklogs) },
  'an outcome is dropped when the store rejects it': {
    promise: 'P7',
    seed: 8,
    steps: 100,
    sabotage: () => altered(givingUpOutcomes),
  },
  'a slot is never released': { promise: 'P2', sabotage: () => altered(losingSlots) },
  'a restart does not release the claims in flight': {
    promise: 'P7',
    seed: 5,
    sabotage: () => altered(withoutRecovery),
  },
  'a claim ignores the capacity of origins': {
    promise: 'P9',
    seed: 5,
    sabotage: () => altered(ignoringCapacity),
  },
  'a claim is made before the message is due': { promise: 'P2', sabotage: () => altered(claimingEarly) },
  'time follows a wall clock that is set back': {
    promise: 'P2',
    seed: 6,
    steps: 150,
    sabotage: () => ({ time: onlyWallClock }),
  },
  'the store is polled while nothing is due': { promise: 'P12', sabotage: () => altered(pollingStore) },
  'callbacks are forgotten': { promise: 'P3', sabotage: () => altered(forgettingCallbacks) },
  'callbacks are saved though their settle is stale': {
    promise: 'P3',
    seed: 7,
    sabotage: () => altered(callbacksOfStale),
  },
  'callbacks are saved in a separate transaction': {
    promise: 'P3',
    seed: 10,
    sabotage: () => altered(savingCallbacksApart),
  },
  'retention deletes nothing': { promise: 'P13', sabotage: () => altered(withoutRetention) },
};

/** Replaces some methods of the store. */
export function altered(alter: (store: Store, unguarded: () => Store) => Partial<StoreMethods>): Sabotage {
  return { store: (store, unguarded = () => store) => alteredStore(store, alter(store, unguarded)) };
}

function forgettingCancels(): Partial<StoreMethods> {
  return { cancelById: async ({ ids }) => ids.length };
}

/** Sends the current claim token with every settle. Learns the tokens from all claims. */
function withoutTokenCheck(): Sabotage {
  const tokens = new Map<MessageKey, ClaimToken>();
  const watchNews = (newMessages: NewMessage[]) => {
    for (const { message, state } of newMessages)
      if (state.kind === 'claimed') tokens.set(message.key, state.claimToken);
  };
  const watchClaims = (claims: Claimed[]) => {
    for (const { message, claimToken } of claims) tokens.set(message.key, claimToken);
  };
  return altered((store) => ({
    accept: async ({ messages, nowMs }) => {
      const accepted = await store.messages.accept({ messages, nowMs });
      watchNews(messages);
      return accepted;
    },
    claim: async ({ request, nowMs }) => {
      const answer = await store.messages.claim({ request, nowMs });
      watchClaims(answer.claimed);
      return answer;
    },
    settle: ({ settlement, nowMs, handoff }) => {
      watchNews(settlement.change.follows ?? []);
      const claimToken = tokens.get(settlement.key) ?? settlement.claimToken;
      return store.messages.settle({ settlement: { ...settlement, claimToken }, nowMs, handoff });
    },
  }));
}

function acknowledgedTooEarly(store: Store): Partial<StoreMethods> {
  return {
    accept: async ({ messages, nowMs }) => {
      store.messages.accept({ messages, nowMs }).catch(() => {}); // the caller is not notified of a rejection
      return messages.map(({ state }) => ({ kind: 'accepted', state: state.kind }));
    },
  };
}

function forgettingRetries(store: Store): Partial<StoreMethods> {
  return {
    settle: ({ settlement, nowMs, handoff }) =>
      store.messages.settle({
        settlement: { ...settlement, change: { ...settlement.change, next: { kind: 'finished' } } },
        nowMs,
        handoff,
      }),
  };
}

function uncountedRetries(store: Store): Partial<StoreMethods> {
  return {
    settle: ({ settlement, nowMs, handoff }) => {
      const { change } = settlement;
      if (change.next.kind !== 'waiting') return store.messages.settle({ settlement, nowMs, handoff });
      const next = { ...change.next, retried: change.next.retried - 1 };
      return store.messages.settle({ settlement: { ...settlement, change: { ...change, next } }, nowMs, handoff });
    },
  };
}

/** Reports messages as claimed although the store keeps them waiting. */
function startingWhatWaits(store: Store): Partial<StoreMethods> {
  return {
    accept: async ({ messages, nowMs }) => {
      const kept = messages.map((newMessages): NewMessage => {
        const isKept = newMessages.state.kind === 'claimed' && newMessages.message.key % 5 === 0;
        return isKept
          ? { ...newMessages, state: { kind: 'due', dueAtMs: newMessages.message.createdAtMs } }
          : newMessages;
      });
      const accepted = await store.messages.accept({ messages: kept, nowMs });
      return accepted.map((answer, index) =>
        answer.kind === 'accepted' ? { ...answer, state: messages[index]?.state.kind ?? answer.state } : answer,
      );
    },
  };
}

function withoutTerminalEntry(store: Store): Partial<StoreMethods> {
  return {
    settle: ({ settlement, nowMs, handoff }) => {
      const isFinished = settlement.change.next.kind === 'finished' && !settlement.change.deadLetter;
      const change = isFinished ? { ...settlement.change, events: [] } : settlement.change;
      return store.messages.settle({ settlement: { ...settlement, change }, nowMs, handoff });
    },
  };
}

function withoutDeadLetter(store: Store): Partial<StoreMethods> {
  return {
    settle: ({ settlement, nowMs, handoff }) => {
      const { deadLetter: _, ...change } = settlement.change;
      return store.messages.settle({ settlement: { ...settlement, change }, nowMs, handoff });
    },
  };
}

/** Reports the callbacks as saved. */
function forgettingCallbacks(store: Store): Partial<StoreMethods> {
  return {
    settle: async ({ settlement, nowMs, handoff }) => {
      const { follows, ...change } = settlement.change;
      const answer = await store.messages.settle({ settlement: { ...settlement, change }, nowMs, handoff });
      if (answer.kind !== 'saved' || !follows) return answer;
      return { ...answer, follows: follows.map(({ state }) => ({ state: state.kind })) };
    },
  };
}

function callbacksOfStale(store: Store): Partial<StoreMethods> {
  return {
    settle: async ({ settlement, nowMs, handoff }) => {
      const answer = await store.messages.settle({ settlement, nowMs, handoff });
      const { follows = [] } = settlement.change;
      if (answer.kind === 'stale' && follows.length > 0) await store.messages.accept({ messages: follows, nowMs });
      return answer;
    },
  };
}

/** Saves callbacks in a second transaction: a crash between the two transactions leaves an attempt without a callback. */
function savingCallbacksApart(store: Store): Partial<StoreMethods> {
  return {
    settle: async ({ settlement, nowMs, handoff }) => {
      const { follows = [], ...change } = settlement.change;
      const answer = await store.messages.settle({ settlement: { ...settlement, change }, nowMs, handoff });
      if (answer.kind !== 'saved' || follows.length === 0) return answer;
      const accepted = await store.messages.accept({ messages: follows, nowMs });
      return {
        ...answer,
        follows: accepted.flatMap((each) => (each.kind === 'accepted' ? [{ state: each.state }] : [])),
      };
    },
  };
}

/**
 * Reserves the deduplication id in one transaction, and saves the message in the next. A crash between the two
 * transactions leaves a reserved id without a message.
 */
function reservingApart(): Sabotage {
  const reserved = new Map<string, { messageId: MessageId; expiresAtMs: Millis }>();
  return altered((store) => ({
    accept: async ({ messages, nowMs }) => {
      const duplicates = messages.map(({ message, deduplication }): Accepted | undefined => {
        if (!deduplication) return undefined;
        const first = reserved.get(deduplication.hash);
        if (first && first.expiresAtMs > nowMs) return { kind: 'duplicate', messageId: first.messageId };
        reserved.set(deduplication.hash, { messageId: message.id, expiresAtMs: deduplication.expiresAtMs });
        return undefined;
      });
      const newMessages = messages.filter((_, index) => duplicates[index] === undefined);
      const accepted = await store.messages.accept({
        messages: newMessages.map(({ message, state }) => ({ message, state })),
        nowMs,
      });
      return duplicates.map((duplicate) => duplicate ?? accepted.shift() ?? { kind: 'tooManyQueues' });
    },
  }));
}

/** Messages in endpoint backlogs are never claimed. */
function forgettingBacklogs(store: Store): Partial<StoreMethods> {
  return {
    waitingBacklogs: async () => [],
    claim: async ({ request, nowMs }) => {
      const answer = await store.messages.claim({ request: { ...request, backlogsToServe: [] }, nowMs });
      return { ...answer, waitingBacklogs: [], emptied: request.backlogsToServe };
    },
  };
}

/** The worker treats the settle as stale, and the message stays claimed. */
function givingUpOutcomes(store: Store): Partial<StoreMethods> {
  return {
    settle: ({ settlement, nowMs, handoff }) =>
      store.messages.settle({ settlement, nowMs, handoff }).catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
        return { kind: 'stale' };
      }),
  };
}

function onlyWallClock(machine: Machine): Clock {
  return withWallTime(new SteadyClock(machine));
}

/** The settle of every third message never resolves. */
function losingSlots(store: Store): Partial<StoreMethods> {
  return {
    settle: async ({ settlement, nowMs, handoff }) => {
      const answer = await store.messages.settle({ settlement, nowMs, handoff });
      return settlement.key % 3 === 0 ? await new Promise(() => {}) : answer;
    },
  };
}

function withoutRecovery(): Partial<StoreMethods> {
  return { releaseAll: async () => 0 };
}

function ignoringCapacity(store: Store): Partial<StoreMethods> {
  return {
    claim: ({ request, nowMs }) =>
      store.messages.claim({ request: { ...request, capacityByOrigin: {}, defaultCapacity: request.limit }, nowMs }),
  };
}

function claimingEarly(store: Store): Partial<StoreMethods> {
  return { claim: ({ request, nowMs }) => store.messages.claim({ request, nowMs: nowMs + 30_000 }) };
}

/** The store always reports that a message is due soon. */
function pollingStore(store: Store): Partial<StoreMethods> {
  return {
    claim: async ({ request, nowMs }) => {
      const answer = await store.messages.claim({ request, nowMs });
      return { ...answer, nextDueAtMs: Math.min(answer.nextDueAtMs ?? Infinity, nowMs + 60_000) };
    },
  };
}

function withoutRetention(): Partial<StoreMethods> {
  return { dropExpired: async () => false };
}
