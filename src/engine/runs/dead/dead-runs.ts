/** Commands of clients on failed runs (contract W 21): resume, restart, and repeat the failure callback. */

import type { Store } from '../../../store/store.ts';
import type { RunKey } from '../../../workflow/model.ts';
import type { EngineContext } from '../../context.ts';
import { DeferredSlots } from '../../dispatch/deferred-slots.ts';
import { acceptContextOf, type Draft } from '../../messages/accept.ts';
import { copyAsNew } from '../../messages/dead-retry.ts';
import { type DeliverySlots, FROM_CLIENT } from '../../messages/intake.ts';
import type { Message, MessageKey, NewMessage, ProjectId } from '../../model.ts';
import { StoreUnavailable } from '../../store-errors.ts';
import type {
  EntryOutline,
  RetryRefusal,
  RunOverride,
  RunRetry,
  RunRetryResult,
  StartedRun,
} from './dead-run-store.ts';
import { entriesToRestart } from './entries-to-restart.ts';
import { type ChildRun, type FailedRunData, retryOf } from './run-retry.ts';

/** The maximum of entries that one transaction saves, and of messages that one query reads. */
const RETRY_BATCH = 200;

/**
 * Chooses the entries of the failed run with which the new journal starts, and the entries among them that are restarted.
 */
type ChooseEntries = (journal: readonly EntryOutline[]) => Pick<FailedRunData, 'journal' | 'unfinished'>;

/** Resumes the run where it stopped, with the results recorded so far. */
export function resumeRun(
  context: EngineContext,
  projectId: ProjectId,
  dlqId: string,
  override: RunOverride,
): Promise<StartedRun | RetryRefusal> {
  return retry(context, projectId, dlqId, override, (journal) => ({ journal, unfinished: entriesToRestart(journal) }));
}

/** Starts the run from the beginning, with the same payload and configuration. */
export function restartRun(
  context: EngineContext,
  projectId: ProjectId,
  dlqId: string,
  override: RunOverride,
): Promise<StartedRun | RetryRefusal> {
  return retry(context, projectId, dlqId, override, ([first]) => {
    return { journal: first ? [first] : [], unfinished: new Set(first && [first.key]) };
  });
}

/** Sends the failure callback again. */
export async function repeatFailureCallback(
  context: EngineContext,
  projectId: ProjectId,
  dlqId: string,
): Promise<StartedRun | 'missing' | 'notFailed' | 'unknown'> {
  const { store, numbers, dispatcher } = context;
  const [dead] = await store.deadRuns.findDeadRuns({ projectId, dlqIds: [dlqId] });
  if (!dead) return 'missing';
  if (dead.failureCallback?.state !== 'fail') return 'notFailed';
  const callback = await store.deadRuns.findFailureCallback({ projectId, dlqId });
  if (!callback) return 'unknown';
  const key = await numbers.take(1);
  const { nowMs, randomness } = acceptContextOf(context, projectId);
  const message = copyAsNew(callback, key, { nowMs, random: (count) => randomness.bytes(count) });
  const outcome = await dispatcher.intake.save(
    [{ message }],
    ([newMessage]) => store.deadRuns.repeatFailureCallback({ projectId, dlqId, message: required(newMessage), nowMs }),
    (saved) => (typeof saved === 'string' ? [] : [saved]),
    FROM_CLIENT,
  );
  return typeof outcome === 'string' ? outcome : { runId: dead.run.id, createdAtMs: dead.run.createdAtMs };
}

async function retry(
  context: EngineContext,
  projectId: ProjectId,
  dlqId: string,
  override: RunOverride,
  choose: ChooseEntries,
): Promise<StartedRun | RetryRefusal> {
  const { store, numbers, settings } = context;
  const failed = await readFailedRun(store, projectId, dlqId, choose);
  if (typeof failed === 'string') return failed;
  const keysMax = 1 + 2 * failed.unfinished.size;
  let nextKey = await numbers.take(keysMax);
  const { randomness, nowMs, leadMs = 0, lazyAboveBytes } = acceptContextOf(context, projectId);
  const random = (count: number): Uint8Array => randomness.bytes(count);
  const copying = { nowMs, leadMs, random, lazyAboveBytes, nextKey: () => nextKey++ };
  return saveAll(context, retryOf(failed, override, copying, settings.togetherMax ?? RETRY_BATCH));
}

/** Saves a run in batches: one transaction with twenty thousand messages would block all other transactions. */
async function saveAll(context: EngineContext, batches: Iterable<RunRetry<Draft>>): Promise<StartedRun | RetryRefusal> {
  const { dispatcher, waiters, cancellations } = context;
  // No message of a run is sent before all entries of the run are saved.
  const deferred = new DeferredSlots((backlog) => dispatcher.noteWaitingBacklog(backlog));
  let saved: RunRetry<Draft> | undefined;
  try {
    for (const batch of batches) {
      const { kind } = await save(context, batch, isWhole(batch) ? undefined : deferred);
      if (kind === 'lost') throw new StoreUnavailable('the new run was cancelled before all its entries were saved');
      if (kind !== 'retried') return kind;
      saved = batch;
    }
  } finally {
    if (saved && !saved.isLast) cancellations.noteNext(0);
  }
  if (!saved) throw new Error('a run has a first entry');
  deferred.open();
  for (const { deadlineMs } of saved.waiters) waiters.noteNext(deadlineMs);
  return { runId: saved.run.id, createdAtMs: saved.run.createdAtMs };
}

function save(
  { store, dispatcher, clock }: EngineContext,
  batch: RunRetry<Draft>,
  slots: DeliverySlots | undefined,
): Promise<RunRetryResult> {
  return dispatcher.intake.save(
    messagesOf(batch),
    (newMessages) => store.deadRuns.retryRun({ ...withStates(batch, newMessages), nowMs: clock.nowMs() }),
    (retried) => (retried.kind === 'retried' ? [...retried.messages, ...retried.children] : []),
    { ...FROM_CLIENT, ...(slots && { slots }) },
  );
}

async function readFailedRun(
  store: Store,
  projectId: ProjectId,
  dlqId: string,
  choose: ChooseEntries,
): Promise<FailedRunData | 'missing' | 'unknown'> {
  const [dead] = await store.deadRuns.findDeadRuns({ projectId, dlqIds: [dlqId] });
  if (!dead) return 'missing';
  const { run } = dead;
  const { journal, unfinished } = choose(await store.deadRuns.outlineJournal({ projectId, runKey: run.key }));
  const [first] = journal;
  if (!first) return 'unknown';
  const messages = await readMessages(store, projectId, [...new Set([first.key, ...unfinished])]);
  const children = messages && (await readChildren(store, projectId, messages));
  return messages && children ? { dlqId, run, journal, unfinished, messages, children } : 'unknown';
}

/** Returns undefined if one of the messages is no longer kept. */
async function readMessages(
  store: Store,
  projectId: ProjectId,
  keys: MessageKey[],
): Promise<ReadonlyMap<MessageKey, Message> | undefined> {
  const messages = new Map<MessageKey, Message>();
  for (let from = 0; from < keys.length; from += RETRY_BATCH) {
    const records = await store.runs.findRecords({
      projectId,
      keys: keys.slice(from, from + RETRY_BATCH),
    });
    for (const message of records) messages.set(message.key, message);
  }
  return messages.size < keys.length ? undefined : messages;
}

/** The runs that the invocations among `messages` started. Returns undefined if one of these runs is no longer kept. */
async function readChildren(
  store: Store,
  projectId: ProjectId,
  messages: ReadonlyMap<MessageKey, Message>,
): Promise<ReadonlyMap<RunKey, ChildRun> | undefined> {
  const children = new Map<RunKey, ChildRun>();
  for (const { settings } of messages.values()) {
    if (!settings.invoke) continue;
    const run = await store.runs.findRun({ projectId, key: settings.invoke.runKey });
    const [first] = run ? await store.deadRuns.outlineJournal({ projectId, runKey: run.key }) : [];
    const [initial] = first ? await store.runs.findRecords({ projectId, keys: [first.key] }) : [];
    if (!run || !initial) return undefined;
    children.set(run.key, { run, initial });
  }
  return children;
}

/** The messages of the journal in order, then the messages of the children. */
function messagesOf({ journal, children }: RunRetry<Draft>): Draft[] {
  return [...journal.flatMap((entry) => (entry.kind === 'message' ? [entry.message] : [])), ...children];
}

/** Whether the batch has the whole run. If so, the messages may be sent as soon as the batch is saved. */
function isWhole({ isFirst, isLast }: RunRetry<unknown>): boolean {
  return isFirst && isLast;
}

/** The batch with `newMessages` instead of its drafts, in the order of `messagesOf`. */
function withStates({ journal, children, ...rest }: RunRetry<unknown>, newMessages: readonly NewMessage[]): RunRetry {
  let next = 0;
  const nextMessage = (): NewMessage => required(newMessages[next++]);
  return {
    ...rest,
    journal: journal.map((entry) => (entry.kind === 'message' ? { kind: 'message', message: nextMessage() } : entry)),
    children: children.map(nextMessage),
  };
}

function required(newMessage: NewMessage | undefined): NewMessage {
  if (!newMessage) throw new Error('a message is missing');
  return newMessage;
}
