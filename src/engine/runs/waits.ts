/**
 * Waits of runs for events, and notifications of these events (contract W 14.6, 14.7). When the data has changed since
 * it was read, the store saves nothing and says so, and the data is read again. So a wait and a notification that come
 * at the same time always find each other.
 */

import { quotaExceeded, runOver } from '../../protocol/errors.ts';
import { mintMessageId } from '../../protocol/ids.ts';
import type { Store } from '../../store/store.ts';
import type { Run, RunKey } from '../../workflow/model.ts';
import type { OriginLine } from '../lanes/origin-line.ts';
import { DeferredSlots } from '../messages/deferred-slots.ts';
import {
  cellOfNumber,
  type Message,
  type MessageId,
  type MessageKey,
  type Millis,
  type NewMessage,
  NUMBERS_OF_CELL,
  type ProjectId,
} from '../model.ts';
import type { Randomness } from '../ports.ts';
import type { EngineSettings } from '../settings.ts';
import { STALE, untilCurrent } from '../until-current.ts';
import type { Numbers } from '../workers/numbers.ts';
import type { ActiveRuns } from './active-runs.ts';
import { isOf } from './publish.ts';
import type { Notified, WaitCommand, WaiterCommands } from './run-commands.ts';
import type { NewWaiter, PendingEvent, PendingEventLimits, Waiter, Waiting } from './stores.ts';
import { waiterOf } from './wait-records.ts';
import { notifiedResult } from './wait-results.ts';
import { type WakeDeps, type Woken, wake } from './wakes.ts';

/** Waiters woken in one transaction. */
const PIECE = 200;
/**
 * Waiters read together, and about how many bytes the results of them may be that repeat the event. Their pieces are saved
 * one behind another: what the first ones have woken would else go out, and be settled, before the last ones are saved.
 */
const PAGE = { waiters: 5 * PIECE, bytes: 4 * 1024 * 1024 };
/**
 * Pages whose waiters are all woken before any of these goes on, where there is more than one page: deliveries take the CPU
 * that the others are woken with. With more pages, nobody waits for the last one.
 */
const DEFERRED_PAGES = 10;
/** Waiters in one list, and reads that it may take: each brings a few MiB at most. */
const LIST_MAX = { waiters: 1_000, reads: 4 };
/** Notifications that are kept for the waits of one run: anyone who knows its webhook can send them. */
const PENDING_EVENTS_MAX: PendingEventLimits = { events: 1_000, bytes: 32 * 1024 * 1024 };

export interface WaitDeps extends WakeDeps {
  store: { waiters: Omit<Store['waiters'], 'listAllWaiters'> };
  active: ActiveRuns;
  numbers: Numbers;
  randomness: Randomness;
  /** A wait was registered with this deadline. */
  noteDeadline(atMs: Millis): void;
  /** Something waits in the line that may go out from now on. */
  noteWaitingLine(line: OriginLine): void;
  settings: Pick<EngineSettings, 'togetherMax'>;
}

export class RunWaits implements WaiterCommands {
  readonly #deps: WaitDeps;

  constructor(deps: WaitDeps) {
    this.#deps = deps;
  }

  async wait(projectId: ProjectId, command: WaitCommand): Promise<{ messageId: MessageId; deduplicated: boolean }> {
    const { store, active, clock, noteDeadline } = this.#deps;
    const identity = await this.#identity();
    return untilCurrent('the workflow run', async () => {
      const { run, isFresh } = await active.find(projectId, command.runId);
      if (!run || !isOf(run, command.createdAtMs)) {
        if (isFresh) throw runOver();
        active.forget(projectId, command.runId);
        return STALE;
      }
      const waiter = waiterOf(command, run, identity, clock.nowMs());
      const pendingEvent = await store.waiters.nextPendingEvent({ runKey: run.key, eventId: command.eventId });
      const waiting = await this.#add(waiter, pendingEvent);
      if (waiting.kind === 'duplicate') return { messageId: waiting.messageId, deduplicated: true };
      if (waiting.kind === 'over' && isFresh) throw runOver();
      if (waiting.kind === 'journalFull') throw quotaExceeded('maxJournalSize', waiting.limit);
      if (waiting.kind === 'registered') noteDeadline(waiter.deadlineMs);
      if (waiting.kind === 'registered' || waiting.kind === 'answered') {
        return { messageId: identity.id, deduplicated: false };
      }
      active.forget(projectId, command.runId);
      return STALE;
    });
  }

  async notify(
    projectId: ProjectId,
    eventId: string,
    body: Uint8Array,
    tell: (piece: Notified[]) => void,
  ): Promise<void> {
    for await (const piece of this.#wakeAll(projectId, eventId, body)) tell(piece);
  }

  async notifyRun(
    projectId: ProjectId,
    runId: string,
    eventId: string,
    body: Uint8Array,
    { oldestOnly }: { oldestOnly: boolean },
  ): Promise<Notified | undefined> {
    const { active } = this.#deps;
    return untilCurrent('the workflow run', async () => {
      const run = await active.read(projectId, runId);
      if (!run) return undefined;
      const only = { runKey: run.key, oldestOnly };
      let first: Notified | undefined;
      for await (const piece of this.#wakeAll(projectId, eventId, body, only)) {
        first ??= piece[0];
        if (oldestOnly && first) break;
      }
      if (first) return first;
      return (await this.#save(run, eventId, body)) ? { runId: run.id, runCreatedAtMs: run.createdAtMs } : STALE;
    });
  }

  async listWaiters(projectId: ProjectId, eventId: string): Promise<Waiter[]> {
    const waiters: Waiter[] = [];
    for (let read = 0; read < LIST_MAX.reads && waiters.length < LIST_MAX.waiters; read += 1) {
      const afterKey = waiters.at(-1)?.record.key ?? -1;
      const page = { afterKey, count: LIST_MAX.waiters - waiters.length };
      const more = await this.#deps.store.waiters.listWaiters({ projectId, eventId, ...page });
      if (more.length === 0) break;
      waiters.push(...more);
    }
    return waiters;
  }

  /**
   * For a waiter. Keys give the order: an event wakes waiters with smaller keys than its own; saved ones are taken by
   * key.
   */
  async #identity(): Promise<Pick<Message, 'key' | 'id'>> {
    const { numbers, randomness } = this.#deps;
    const key = await numbers.takeLatest();
    return { key, id: mintMessageId(key, (count) => randomness.bytes(count)) };
  }

  /** Registers `waiter`; with a pending event, saves its result at once instead. */
  async #add(waiter: NewWaiter, pendingEvent: PendingEvent | undefined): Promise<Waiting> {
    const { store, intake, reports } = this.#deps;
    const { message: record } = waiter.record;
    const nowMs = record.createdAtMs;
    const drafts = await intake.draftsOf(pendingEvent ? [notifiedResult(record, pendingEvent.body, nowMs)] : []);
    const save = ([result]: NewMessage[]) =>
      store.waiters.addWaiter({
        waiter,
        taken: pendingEvent && result && { pendingEventKey: pendingEvent.key, result },
        nowMs,
      });
    const waiting = await intake.save(drafts, save, (as) => (as.kind === 'answered' ? [as.saved] : []));
    if (waiting.kind === 'answered') reports.woken(record, 'event', nowMs);
    return waiting;
  }

  /**
   * Wakes the waiters that wait for the event now, in order of registration, page by page. Each page is read while the one
   * before it is saved.
   */
  async *#wakeAll(
    projectId: ProjectId,
    eventId: string,
    event: Uint8Array,
    { runKey, oldestOnly = false }: { runKey?: RunKey; oldestOnly?: boolean } = {},
  ): AsyncGenerator<Notified[]> {
    const { store, numbers, noteWaitingLine, settings } = this.#deps;
    const { togetherMax = PAGE.waiters } = settings;
    const count = oldestOnly ? 1 : pageFor(event, togetherMax);
    // A run that is woken may wait for the same event again before the last piece is woken.
    const endKey = await numbers.takeLatest();
    const resultOf = (record: Message, atMs: Millis) => notifiedResult(record, event, atMs);
    const read = (afterKey: MessageKey) =>
      store.waiters.listWaiters({ projectId, eventId, afterKey, count, ...(runKey !== undefined && { runKey }) });
    const deferred = new DeferredSlots(noteWaitingLine);
    try {
      let listed = await read(-1);
      for (let pages = 1; listed.length > 0; pages += 1) {
        const waiting = listed.filter(({ record }) => isBefore(record.key, endKey));
        if (pages > DEFERRED_PAGES) deferred.open();
        const slots = pages > 1 || listed.length === togetherMax ? deferred : undefined;
        const [next, ...woken] = await Promise.all([
          read(afterKeyOf(listed, endKey)),
          ...piecesOf(waiting).map((piece) => wake(piece, 'event', resultOf, this.#deps, slots)),
        ]);
        if (waiting.length > 0) yield woken.flat().map(notifiedOf);
        listed = next;
      }
    } finally {
      deferred.open();
    }
  }

  /** Saves an event for the next wait. False: the run has changed meanwhile. Throws `ApiError` 412. */
  async #save({ projectId, key, id }: Run, eventId: string, body: Uint8Array): Promise<boolean> {
    const { store, numbers, active } = this.#deps;
    const pendingEvent: PendingEvent = { key: await numbers.takeLatest(), body };
    const saved = await store.waiters.savePendingEvent({
      projectId,
      runKey: key,
      eventId,
      ...pendingEvent,
      limits: PENDING_EVENTS_MAX,
    });
    if (saved === 'tooMuch') throw quotaExceeded('maxSavedNotifications', PENDING_EVENTS_MAX.events);
    if (saved === 'over') active.forget(projectId, id);
    return saved === 'saved';
  }
}

/**
 * Whether the waiter had registered when `endKey` was taken, of this cell. Those with a number of another cell had: they came
 * with the project.
 */
function isBefore(key: MessageKey, endKey: MessageKey): boolean {
  return key < endKey || cellOfNumber(key) !== cellOfNumber(endKey);
}

/** After which key the next page begins. */
function afterKeyOf(listed: readonly Waiter[], endKey: MessageKey): MessageKey {
  const lastKey = listed.at(-1)?.record.key ?? -1;
  // What has come since is passed over. What has larger numbers than that came with a move.
  return isBefore(lastKey, endKey) ? lastKey : cellOfNumber(endKey) * NUMBERS_OF_CELL;
}

/** How many waiters are read together: the result of each repeats the event. */
function pageFor(event: Uint8Array, waitersMax: number): number {
  return Math.min(waitersMax, Math.max(1, Math.floor(PAGE.bytes / (event.length + 1))));
}

function piecesOf(waiters: readonly Waiter[]): (readonly Waiter[])[] {
  return Array.from({ length: Math.ceil(waiters.length / PIECE) }, (_, index) =>
    waiters.slice(index * PIECE, (index + 1) * PIECE),
  );
}

function notifiedOf({ waiter, message }: Woken): Notified {
  const run = waiter.record.settings.run;
  if (!run) throw new Error(`the waiter ${waiter.record.key} is of no run`);
  return { waiter, messageId: message.id, runId: run.id, runCreatedAtMs: run.createdAtMs };
}
