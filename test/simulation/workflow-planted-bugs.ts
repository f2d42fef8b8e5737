/** Bugs that workflow engines have had, inserted between the engine and its store (see `planted-bugs.ts`). */

import type { Accepted, Saved } from '../../src/engine/messages/accepted.ts';
import type { EntryKind, Message, NewMessage, RunEnding, Settlement } from '../../src/engine/model.ts';
import type { Store } from '../../src/store/store.ts';
import type { StoreMethods } from '../support/altered-store.ts';
import { altered, type PlantedBug } from './planted-bugs.ts';
import { FAILED_WITHIN } from './workflow-call.ts';
import { textOf } from './workflow-library.ts';
import { PROJECT, type Sabotage } from './world.ts';

const EMPTY = new Uint8Array(0);

export const WORKFLOW_BUGS: Record<string, PlantedBug> = {
  'a step that is published twice is recorded twice': {
    promise: 'P8',
    seed: 30,
    sabotage: () => withoutEntryKeys('step'),
  },
  'a group that is planned twice is planned again': {
    promise: 'P8',
    seed: 5,
    sabotage: () => withoutEntryKeys('plan'),
  },
  'a run that is invoked twice by one step runs twice': { promise: 'P8', sabotage: withoutEntryKeysOfInvocations },
  'each message of a batch is delivered with the whole batch': {
    promise: 'P8',
    sabotage: () => altered(withWholeBatch),
  },
  'a journal is read without its latest entry': { promise: 'P8', sabotage: () => altered(withoutLatestEntry) },
  'an omitted journal cannot be fetched': { promise: 'P8', sabotage: () => altered(withoutFetching) },
  'the end of a run is acknowledged before its commit': {
    promise: 'P1',
    seed: 29,
    sabotage: () => altered(endingTooEarly),
  },
  'a message fails, and its run does not': { promise: 'P14', sabotage: () => altered(withoutEnding) },
  'the response to a call is forgotten': { promise: 'P14', sabotage: () => forgetting(isCallResult) },
  'a parent is not notified of the end of its child': { promise: 'P14', sabotage: () => forgetting(isResultOfChild) },
  'a run ends with the invokers of an older version': {
    promise: 'P14',
    seed: 60,
    sabotage: () => altered(endingWithOldVersion),
  },
  'the failure of a run is not reported': { promise: 'P3', sabotage: () => forgetting(isFailureCall) },
  'deadlines of waits are forgotten': { promise: 'P14', sabotage: () => altered(withoutDeadlines) },
  'a wait times out before its time': { promise: 'P17', sabotage: () => altered(timingOutEarly) },
  'a notification wakes only one waiter': { promise: 'P17', sabotage: () => altered(wakingOne) },
  'a pending event is lost': { promise: 'P17', sabotage: () => altered(losingPendingEvents) },
  'the latest pending event is taken first': {
    promise: 'P17',
    seed: 6,
    sabotage: () => altered(latestPendingEventFirst),
  },
  'later messages lack the headers of the trigger': { promise: 'P17', sabotage: () => altered(withoutUserHeaders) },
  'later messages leave the trace of their run': { promise: 'P17', sabotage: () => altered(withoutTrace) },
  'a resumed run starts from the beginning': { promise: 'P8', seed: 2, sabotage: () => altered(resumingFromScratch) },
  'a checkpoint of a lost call is saved': {
    promise: 'P6',
    seed: 15,
    sabotage: () => altered(withoutTokenCheckOfCalls),
  },
  'a checkpoint is acknowledged before its commit': { promise: 'P1', sabotage: () => altered(acknowledgingEarly) },
  'a call continues from another result than is saved': { promise: 'P8', sabotage: () => altered(replacingResults) },
  'a last step that is sent with the end of its run is forgotten': {
    promise: 'P8',
    sabotage: () => altered(withLastStep(() => undefined)),
  },
  'another result of the last step is saved than the run ended with': {
    promise: 'P8',
    sabotage: () => altered(withLastStep(otherResult)),
  },
  'a run ends with a second result of its last step': {
    promise: 'P8',
    seed: 103,
    sabotage: () => altered(endingTwice),
  },
  'a failure within a call is not counted': {
    promise: 'P3',
    sabotage: () => whenFailedWithin((next) => ({ ...next, retried: next.retried - 1 })),
  },
  'a failure within a call is counted twice': {
    promise: 'P3',
    sabotage: () => whenFailedWithin((next) => ({ ...next, retried: next.retried + 1 })),
  },
  'a message that is claimed for a call can be claimed by others': {
    promise: 'P2',
    sabotage: withoutClaims,
  },
  'a parked run spends a retry': {
    promise: 'P3',
    sabotage: () => whenParked((next) => ({ ...next, retried: next.retried + 1 })),
  },
  'a parked run is retried at once': {
    promise: 'P2',
    sabotage: () => whenParked((next, atMs) => ({ ...next, dueAtMs: atMs })),
  },
  'a parked run is forgotten': { promise: 'P14', sabotage: () => whenParked(() => ({ kind: 'finished' })) },
  'the result of a changed step is taken for that of another': {
    promise: 'P8',
    sabotage: () => ({ workflows: { isUnchecked: true } }),
  },
  'remaining messages of an ended run are forgotten': {
    promise: 'P2',
    sabotage: () => altered(withoutCancellingTheRest),
  },
  'a resumed run starts after the first chunk of its journal': {
    promise: 'P8',
    sabotage: () => altered(retryingPartly),
  },
  'runs are never deleted': { promise: 'P13', sabotage: () => altered(withoutRetentionOfRuns) },
};

type Waiting = Extract<Settlement['change']['next'], { kind: 'waiting' }>;

/** Alters the next state of a message that is parked. */
function whenParked(alter: (next: Waiting, atMs: number) => Settlement['change']['next']): Sabotage {
  return altered((store) => ({
    settle: ({ settlement, nowMs, handoff }) => {
      const { change } = settlement;
      const isParked = change.events.some(({ state }) => state === 'STEP_PARKED');
      const next = isParked && change.next.kind === 'waiting' ? alter(change.next, nowMs) : change.next;
      return store.messages.settle({ settlement: { ...settlement, change: { ...change, next } }, nowMs, handoff });
    },
  }));
}

function whenFailedWithin(alter: (next: Waiting) => Waiting): Sabotage {
  const text = FAILED_WITHIN.toString();
  return altered((store) => ({
    settle: ({ settlement, nowMs, handoff }) => {
      const { change } = settlement;
      const isWithin = change.events.some(({ detail }) => textOf(detail?.response?.body ?? EMPTY) === text);
      const next = isWithin && change.next.kind === 'waiting' ? alter(change.next) : change.next;
      return store.messages.settle({ settlement: { ...settlement, change: { ...change, next } }, nowMs, handoff });
    },
  }));
}

/** Releases each waiting message of a run once, right after its claim. */
function withoutClaims(): Sabotage {
  const isKnown = seenBefore();
  return altered((store) => ({
    claim: async ({ request, nowMs }) => {
      const answer = await store.messages.claim({ request, nowMs });
      const claims = answer.claimed.flatMap(({ message: { key, projectId, settings }, claimToken }) =>
        settings.run?.callType === 'step' && !isKnown(String(key)) ? [{ key, projectId, claimToken }] : [],
      );
      if (claims.length > 0) await store.messages.release({ claims, nowMs });
      return answer;
    },
  }));
}

/** Gives a repeated entry a different entry key. */
function withoutEntryKeys(kind: EntryKind): Sabotage {
  const isTaken = seenBefore();
  return altered((store) => ({
    accept: ({ messages, nowMs }) =>
      store.messages.accept({
        messages: messages.map((newMessages): NewMessage => {
          const { entry, message } = newMessages;
          if (entry?.kind !== kind || !isTaken(`${entry.runKey} ${entry.entryKey}`)) return newMessages;
          return { ...newMessages, entry: { ...entry, entryKey: `${entry.entryKey}-${message.key}` } };
        }),
        nowMs,
      }),
  }));
}

function withoutEntryKeysOfInvocations(): Sabotage {
  const isTaken = seenBefore();
  return altered((store) => ({
    accept: ({ messages, nowMs }) =>
      store.messages.accept({
        messages: messages.map((newMessages): NewMessage => {
          const { run } = newMessages;
          const { message, entry } = run?.invoker ?? {};
          if (!run || !message || !entry || !isTaken(`${entry.runKey} ${entry.entryKey}`)) return newMessages;
          const invoker = { message, entry: { ...entry, entryKey: `${entry.entryKey}-${message.key}` } };
          return { ...newMessages, run: { ...run, invoker } };
        }),
        nowMs,
      }),
  }));
}

function seenBefore(): (name: string) => boolean {
  const seen = new Set<string>();
  return (name) => {
    const isKnown = seen.has(name);
    seen.add(name);
    return isKnown;
  };
}

function withWholeBatch(store: Store): Partial<StoreMethods> {
  return {
    accept: async ({ messages, nowMs }) => {
      const accepted = await store.messages.accept({ messages, nowMs });
      const last = accepted.reduce((latest, each) => Math.max(latest, positionOf(each)), 0);
      return accepted.map((each) =>
        each.kind === 'accepted' && each.journal ? { ...each, journal: { ...each.journal, position: last } } : each,
      );
    },
  };
}

function positionOf(accepted: Accepted): number {
  return accepted.kind === 'accepted' ? (accepted.journal?.position ?? 0) : 0;
}

function withoutLatestEntry(store: Store): Partial<StoreMethods> {
  return {
    readJournal: async ({ projectId, runKey, ...range }) => {
      const entries = await store.runs.readJournal({ projectId, runKey, ...range });
      return entries.length > 1 ? entries.slice(0, -1) : entries;
    },
  };
}

function withoutFetching(store: Store): Partial<StoreMethods> {
  return {
    readJournal: async (args) => (args.toPosition === undefined ? [] : store.runs.readJournal(args)),
  };
}

function endingTooEarly(store: Store): Partial<StoreMethods> {
  return {
    endRuns: async ({ endings, nowMs }) => {
      store.runs.endRuns({ endings, nowMs }).catch(() => {}); // the caller is not notified of a rejection
      return endings.map(({ follows }) => ({ kind: 'ended', follows: follows.map(asProposed) }));
    },
  };
}

/** Accepts checkpoints of calls that have lost their messages. */
function withoutTokenCheckOfCalls(store: Store): Partial<StoreMethods> {
  return {
    checkpoint: async ({ nowMs, ...checkpoint }) => {
      const answer = await store.messages.checkpoint({ ...checkpoint, nowMs });
      if (answer.kind !== 'stale') return answer;
      const accepted = await store.messages.accept({ messages: checkpoint.follows, nowMs });
      return {
        kind: 'saved',
        follows: accepted.map((each): Saved => (each.kind === 'accepted' ? each : { state: 'dropped' })),
      };
    },
  };
}

function acknowledgingEarly(store: Store): Partial<StoreMethods> {
  return {
    checkpoint: async ({ nowMs, ...checkpoint }) => {
      store.messages.checkpoint({ ...checkpoint, nowMs }).catch(() => {});
      return { kind: 'saved', follows: checkpoint.follows.map(asProposed) };
    },
  };
}

/** Reports the new result of a repeated step as saved. */
function replacingResults(store: Store): Partial<StoreMethods> {
  return {
    checkpoint: async ({ nowMs, ...checkpoint }) => {
      const answer = await store.messages.checkpoint({ ...checkpoint, nowMs });
      if (answer.kind !== 'saved') return answer;
      const isKept = (index: number) => answer.follows[index]?.state === 'dropped';
      return {
        kind: 'saved',
        follows: checkpoint.follows.map((follow, index) =>
          isKept(index) ? asProposed(follow) : (answer.follows[index] ?? asProposed(follow)),
        ),
      };
    },
  };
}

/** Alters the last step that comes with the end of a run. */
function withLastStep(alter: (step: NewMessage) => NewMessage | undefined) {
  return (store: Store): Partial<StoreMethods> => ({
    settle: ({ settlement, nowMs, handoff }) => {
      const { lastStep, ...change } = settlement.change;
      const altered = lastStep && alter(lastStep);
      const saved = { ...settlement, change: { ...change, ...(altered && { lastStep: altered }) } };
      return store.messages.settle({ settlement: saved, nowMs, handoff });
    },
  });
}

function otherResult({ message, ...rest }: NewMessage): NewMessage {
  const body = Buffer.from(textOf(message.body).replace('nonce', 'other'));
  return { ...rest, message: { ...message, body } };
}

/** Ends the run even if its journal has another result of the last step. */
function endingTwice(store: Store): Partial<StoreMethods> {
  return {
    settle: async ({ settlement, nowMs, handoff }) => {
      const answer = await store.messages.settle({ settlement, nowMs, handoff });
      if (answer.kind !== 'stepTaken') return answer;
      const { lastStep: _, ...change } = settlement.change;
      return store.messages.settle({ settlement: { ...settlement, change }, nowMs, handoff });
    },
  };
}

function asProposed({ state }: NewMessage): Saved {
  return { state: state.kind };
}

function withoutEnding(store: Store): Partial<StoreMethods> {
  return {
    settle: ({ settlement, nowMs, handoff }) => {
      const { ending: _, ...change } = settlement.change;
      return store.messages.settle({ settlement: { ...settlement, change }, nowMs, handoff });
    },
  };
}

/** Reports some messages as saved without saving them. The attempts of these messages have no effect. */
function forgetting(isForgotten: (newMessages: NewMessage) => boolean): Sabotage {
  const dropped: Saved = { state: 'dropped' };
  return altered((store) => ({
    settle: async ({ settlement, nowMs, handoff }) => {
      const { follows = [] } = settlement.change;
      const kept = follows.filter((newMessages) => !isForgotten(newMessages));
      if (kept.length === follows.length) return await store.messages.settle({ settlement, nowMs, handoff });
      const answer = await store.messages.settle({ settlement: withFollows(settlement, kept), nowMs, handoff });
      if (answer.kind !== 'saved') return answer;
      const saved = [...(answer.follows ?? [])];
      return {
        ...answer,
        follows: follows.map((newMessages) => (isForgotten(newMessages) ? dropped : (saved.shift() ?? dropped))),
      };
    },
    endRuns: async ({ endings, nowMs }) => {
      const kept = endings.map((end) => ({
        ...end,
        follows: end.follows.filter((newMessages) => !isForgotten(newMessages)),
      }));
      const answers = await store.runs.endRuns({ endings: kept, nowMs });
      return answers.map((answer, index) => {
        if (answer.kind !== 'ended') return answer;
        const saved = [...answer.follows];
        const follows = endings[index]?.follows ?? [];
        return {
          ...answer,
          follows: follows.map((newMessages) => (isForgotten(newMessages) ? dropped : (saved.shift() ?? dropped))),
        };
      });
    },
  }));
}

function withFollows(settlement: Settlement, follows: NewMessage[]): Settlement {
  return { ...settlement, change: { ...settlement.change, follows } };
}

function isCallResult({ message }: NewMessage): boolean {
  return message.settings.run?.callType === 'fromCallback';
}

/** Whether the message follows from the end of another run, and names the step that invoked that run. */
function isResultOfChild({ message, entry }: NewMessage): boolean {
  return entry?.kind === 'step' && message.settings.run?.callType === 'step';
}

function isFailureCall({ message }: NewMessage): boolean {
  return message.settings.run?.callType === 'failureCall';
}

/** Replaces an outdated version of the run with the current one. */
function endingWithOldVersion(store: Store): Partial<StoreMethods> {
  const upToDate = async (ending: RunEnding): Promise<RunEnding> => {
    const run = await store.runs.findRun({ projectId: PROJECT, key: ending.runKey });
    return { ...ending, runVersion: run?.version ?? ending.runVersion };
  };
  return {
    endRuns: async ({ endings, nowMs }) => {
      const known = endings.map(async ({ ending, follows }) => ({ ending: await upToDate(ending), follows }));
      return await store.runs.endRuns({ endings: await Promise.all(known), nowMs });
    },
  };
}

function withoutDeadlines(): Partial<StoreMethods> {
  return { dueWaiters: async () => ({ due: [], nextAtMs: undefined }) };
}

function timingOutEarly(store: Store): Partial<StoreMethods> {
  return {
    dueWaiters: async ({ nowMs, limit }) => {
      const answer = await store.waiters.dueWaiters({ nowMs: nowMs + 10_000, limit });
      return { ...answer, nextAtMs: answer.nextAtMs && answer.nextAtMs - 10_000 };
    },
  };
}

function wakingOne(store: Store): Partial<StoreMethods> {
  return {
    listWaiters: async ({ projectId, eventId, ...page }) => {
      const isFirst = page.afterKey === undefined || page.afterKey < 0;
      return isFirst ? (await store.waiters.listWaiters({ projectId, eventId, ...page })).slice(0, 1) : [];
    },
  };
}

function losingPendingEvents(store: Store): Partial<StoreMethods> {
  return {
    savePendingEvent: async ({ projectId, runKey, eventId, limits, ...pendingEvent }) => {
      const saved = await store.waiters.savePendingEvent({
        projectId,
        runKey,
        eventId,
        ...pendingEvent,
        limits: {
          events: 0,
          bytes: 0,
        },
      });
      return saved === 'tooMuch' && limits.events > 0 ? 'saved' : saved;
    },
  };
}

function latestPendingEventFirst(store: Store): Partial<StoreMethods> {
  return {
    savePendingEvent: ({ projectId, runKey, eventId, limits, ...pendingEvent }) =>
      store.waiters.savePendingEvent({
        projectId,
        runKey,
        eventId,
        ...pendingEvent,
        key: Number.MAX_SAFE_INTEGER - pendingEvent.key,
        limits,
      }),
  };
}

function withoutUserHeaders(store: Store): Partial<StoreMethods> {
  return laterMessages(store, ({ header: { 'X-User': _, ...header }, ...message }) => ({ ...message, header }));
}

function withoutTrace(store: Store): Partial<StoreMethods> {
  return laterMessages(store, ({ settings: { trace: _, ...settings }, ...message }) => ({ ...message, settings }));
}

/** Alters the messages that are published to a run after its trigger. */
function laterMessages(store: Store, alter: (message: Message) => Message): Partial<StoreMethods> {
  return {
    accept: ({ messages, nowMs }) =>
      store.messages.accept({
        messages: messages.map((newMessage): NewMessage => {
          const { entry, run, message } = newMessage;
          return !entry || run ? newMessage : { ...newMessage, message: alter(message) };
        }),
        nowMs,
      }),
  };
}

function resumingFromScratch(store: Store): Partial<StoreMethods> {
  return {
    outlineJournal: async ({ projectId, runKey }) =>
      (await store.deadRuns.outlineJournal({ projectId, runKey })).slice(0, 1),
  };
}

/** Saves only the first chunk of the journal. */
function retryingPartly(store: Store): Partial<StoreMethods> {
  return {
    retryRun: async ({ nowMs, ...piece }) =>
      piece.isFirst
        ? store.deadRuns.retryRun({ ...piece, isLast: true, nowMs })
        : { kind: 'retried', messages: [], children: [] },
  };
}

/** Never cancels the remaining messages of an ended run. */
function withoutCancellingTheRest(): Partial<StoreMethods> {
  return { cancelRemaining: async () => Infinity };
}

function withoutRetentionOfRuns(store: Store): Partial<StoreMethods> {
  return { dropExpired: (limits) => store.retention.dropExpired({ ...limits, logsBeforeMs: 0 }) };
}
