/**
 * Registers waits of runs for events, and notifies runs of events (contract W 14.6, 14.7). When the data has changed since it was
 * read, the store saves nothing, and the data is read again. So a wait never misses a concurrent notification.
 */
import { quotaExceeded, runOver } from '../../../protocol/errors.ts';
import { mintMessageId } from '../../../protocol/ids.ts';
import type { Run, RunKey } from '../../../workflow/model.ts';
import type { EngineContext } from '../../context.ts';
import { DeferredSlots } from '../../dispatch/deferred-slots.ts';
import { retryWhileStale, STALE } from '../../loops/retry-while-stale.ts';
import {
  cellOfNumber,
  type Message,
  type MessageId,
  type MessageKey,
  type Millis,
  type NewMessage,
  NUMBERS_OF_CELL,
  type ProjectId,
} from '../../model.ts';
import { wasCreatedAt } from '../active-runs.ts';
import type {
  NewWaiter,
  NotificationResult,
  PendingEvent,
  PendingEventLimits,
  WaitCommand,
  Waiter,
  WaitOutcome,
} from '../stores.ts';
import { notifiedResult, waiterOf } from './wait-records.ts';
import { WAKE_BATCH, type WokenWaiter, wake } from './wakes.ts';

/**
 * The maximum of waiters of one page, and the approximate size of their results, each of which repeats the event. All
 * batches of a page are submitted at once: otherwise the messages of the first batches would be delivered and settled
 * before the last batches are saved.
 */
const PAGE = { waiters: 5 * WAKE_BATCH, bytes: 4 * 1024 * 1024 };
/**
 * The messages of up to this many pages are sent only after all waiters of these pages are woken, because deliveries take
 * the CPU time that waking needs. If there are more pages, messages are sent earlier.
 */
const DEFERRED_PAGES = 10;
/** The maximum of waiters in one list, and of the reads for it, each of a few MiB at most. */
const LIST_MAX = { waiters: 1_000, reads: 4 };
/** The limits of pending events of one run, because anyone who knows a webhook of the run can send events. */
const PENDING_EVENTS_MAX: PendingEventLimits = { events: 1_000, bytes: 32 * 1024 * 1024 };

/**
 * Registers the wait, or ends it immediately with a pending event. Returns the id of the wait. Throws `ApiError` 400 if
 * the run has ended, and 412 if the journal of the run is full.
 */
export async function wait(
  context: EngineContext,
  projectId: ProjectId,
  command: WaitCommand,
): Promise<{ messageId: MessageId; deduplicated: boolean }> {
  const { store, active, clock, waiters } = context;
  const identity = await nextIdentity(context);
  return retryWhileStale('the workflow run', async () => {
    const { run, isFresh } = await active.find(projectId, command.runId);
    if (!run || !wasCreatedAt(run, command.createdAtMs)) {
      if (isFresh) throw runOver();
      active.forget(projectId, command.runId);
      return STALE;
    }
    const waiter = waiterOf(command, run, identity, clock.nowMs());
    const pendingEvent = await store.waiters.nextPendingEvent({ runKey: run.key, eventId: command.eventId });
    const outcome = await addWaiter(context, waiter, pendingEvent);
    if (outcome.kind === 'duplicate') return { messageId: outcome.messageId, deduplicated: true };
    if (outcome.kind === 'over' && isFresh) throw runOver();
    if (outcome.kind === 'journalFull') throw quotaExceeded('maxJournalSize', outcome.limit);
    if (outcome.kind === 'registered') waiters.noteNext(waiter.deadlineMs);
    if (outcome.kind === 'registered' || outcome.kind === 'notified') {
      return { messageId: identity.id, deduplicated: false };
    }
    active.forget(projectId, command.runId);
    return STALE;
  });
}

/**
 * The key and id of a new waiter. Keys define the order: an event wakes waiters with smaller keys than its own, and pending
 * events are taken in the order of their keys.
 */
async function nextIdentity({ numbers, randomness }: EngineContext): Promise<Pick<Message, 'key' | 'id'>> {
  const key = await numbers.takeLatest();
  return { key, id: mintMessageId(key, (count) => randomness.bytes(count)) };
}

/** Registers `waiter`. If there is a pending event, saves the result of the wait at once instead. */
async function addWaiter(
  { store, dispatcher: { intake }, reports }: EngineContext,
  waiter: NewWaiter,
  pendingEvent: PendingEvent | undefined,
): Promise<WaitOutcome> {
  const { message: record } = waiter.record;
  const nowMs = record.createdAtMs;
  const drafts = await intake.draftsOf(pendingEvent ? [notifiedResult(record, pendingEvent.body, nowMs)] : []);
  const save = ([result]: NewMessage[]) => {
    const taken = pendingEvent && result && { pendingEventKey: pendingEvent.key, result };
    return store.waiters.addWaiter({ waiter, taken, nowMs });
  };
  const outcome = await intake.save(drafts, save, (result) => (result.kind === 'notified' ? [result.saved] : []));
  if (outcome.kind === 'notified') reports.woken(record, 'event', nowMs);
  return outcome;
}

/**
 * Wakes all runs that wait for the event now. After each batch is saved, calls `onBatch` with the results of the batch.
 */
export async function notify(
  context: EngineContext,
  projectId: ProjectId,
  eventId: string,
  body: Uint8Array,
  onBatch: (batch: NotificationResult[]) => void,
): Promise<void> {
  for await (const batch of wakeAll(context, projectId, eventId, body)) onBatch(batch);
}

/**
 * Wakes all waiters of one run; with `oldestOnly`, wakes only the oldest waiter. If the run has no waiter, the event is
 * saved for the run's next wait. Returns the effect on the first waiter, or undefined if no such run is active. Throws
 * `ApiError` 412 if the run has too many pending events.
 */
export async function notifyRun(
  context: EngineContext,
  projectId: ProjectId,
  runId: string,
  eventId: string,
  body: Uint8Array,
  { oldestOnly }: { oldestOnly: boolean },
): Promise<NotificationResult | undefined> {
  return retryWhileStale('the workflow run', async () => {
    const run = await context.active.read(projectId, runId);
    if (!run) return undefined;
    const only = { runKey: run.key, oldestOnly };
    let first: NotificationResult | undefined;
    for await (const batch of wakeAll(context, projectId, eventId, body, only)) {
      first ??= batch[0];
      if (oldestOnly && first) break;
    }
    if (first) return first;
    const isSaved = await saveEvent(context, run, eventId, body);
    return isSaved ? { runId: run.id, runCreatedAtMs: run.createdAtMs } : STALE;
  });
}

/**
 * Saves an event for the next wait of the run. Returns false if the run has changed since it was read. Throws `ApiError`
 * 412.
 */
async function saveEvent(
  { store, numbers, active }: EngineContext,
  { projectId, key: runKey, id }: Run,
  eventId: string,
  body: Uint8Array,
): Promise<boolean> {
  const event = { projectId, runKey, eventId, key: await numbers.takeLatest() };
  const saved = await store.waiters.savePendingEvent({ ...event, body, limits: PENDING_EVENTS_MAX });
  if (saved === 'tooMuch') throw quotaExceeded('maxSavedNotifications', PENDING_EVENTS_MAX.events);
  if (saved === 'over') active.forget(projectId, id);
  return saved === 'saved';
}

/** Up to 1,000 waiters in order of registration; fewer when their records are large. */
export async function listWaiters({ store }: EngineContext, projectId: ProjectId, eventId: string): Promise<Waiter[]> {
  const waiters: Waiter[] = [];
  for (let read = 0; read < LIST_MAX.reads && waiters.length < LIST_MAX.waiters; read += 1) {
    const afterKey = waiters.at(-1)?.record.key ?? -1;
    const count = LIST_MAX.waiters - waiters.length;
    const more = await store.waiters.listWaiters({ projectId, eventId, afterKey, count });
    if (more.length === 0) break;
    waiters.push(...more);
  }
  return waiters;
}

/**
 * Wakes the waiters that wait for the event now, in order of registration, page by page. Each page is read while the
 * previous page is saved.
 */
async function* wakeAll(
  context: EngineContext,
  projectId: ProjectId,
  eventId: string,
  event: Uint8Array,
  { runKey, oldestOnly = false }: { runKey?: RunKey; oldestOnly?: boolean } = {},
): AsyncGenerator<NotificationResult[]> {
  const { store, numbers, dispatcher, settings } = context;
  const { togetherMax = PAGE.waiters } = settings;
  const count = oldestOnly ? 1 : pageFor(event, togetherMax);
  // A woken run may wait for the same event again before the last batch is woken.
  const endKey = await numbers.takeLatest();
  const resultOf = (record: Message, atMs: Millis) => notifiedResult(record, event, atMs);
  const read = (afterKey: MessageKey) =>
    store.waiters.listWaiters({ projectId, eventId, afterKey, count, ...(runKey !== undefined && { runKey }) });
  const deferred = new DeferredSlots((backlog) => dispatcher.noteWaitingBacklog(backlog));
  try {
    let listed = await read(-1);
    for (let pages = 1; listed.length > 0; pages += 1) {
      const waiters = listed.filter(({ record }) => isBefore(record.key, endKey));
      if (pages > DEFERRED_PAGES) deferred.open();
      const slots = pages > 1 || listed.length === togetherMax ? deferred : undefined;
      const [next, ...woken] = await Promise.all([
        read(afterKeyOf(listed, endKey)),
        ...batchesOf(waiters).map((batch) => wake(context, batch, 'event', resultOf, slots)),
      ]);
      if (waiters.length > 0) yield woken.flat().map(resultOfWaking);
      listed = next;
    }
  } finally {
    deferred.open();
  }
}

/**
 * Whether the waiter had registered when `endKey` was taken in this cell. Also true for a waiter that has come with its
 * project from another cell: its key is in the range of the other cell.
 */
function isBefore(key: MessageKey, endKey: MessageKey): boolean {
  return key < endKey || cellOfNumber(key) !== cellOfNumber(endKey);
}

/** The key after which the next page starts. */
function afterKeyOf(listed: readonly Waiter[], endKey: MessageKey): MessageKey {
  const lastKey = listed.at(-1)?.record.key ?? -1;
  // Skips waiters of this cell that registered later. Larger keys belong to waiters that came with a move.
  return isBefore(lastKey, endKey) ? lastKey : cellOfNumber(endKey) * NUMBERS_OF_CELL;
}

/**
 * The number of waiters of one page. It is small for a large event, because the result of each waiter repeats the event.
 */
function pageFor(event: Uint8Array, waitersMax: number): number {
  return Math.min(waitersMax, Math.max(1, Math.floor(PAGE.bytes / (event.length + 1))));
}

function batchesOf(waiters: readonly Waiter[]): (readonly Waiter[])[] {
  return Array.from({ length: Math.ceil(waiters.length / WAKE_BATCH) }, (_, index) =>
    waiters.slice(index * WAKE_BATCH, (index + 1) * WAKE_BATCH),
  );
}

function resultOfWaking({ waiter, message }: WokenWaiter): NotificationResult {
  const run = waiter.record.settings.run;
  if (!run) throw new Error(`the waiter ${waiter.record.key} has no run`);
  return { waiter, messageId: message.id, runId: run.id, runCreatedAtMs: run.createdAtMs };
}
