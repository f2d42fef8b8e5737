/** Commands of clients on failed runs (contract W 21): resume, restart, and repeat the failure callback. */

import type { Store } from '../../../store/store.ts';
import type { RunKey } from '../../../workflow/model.ts';
import type { EngineContext } from '../../context.ts';
import { DeferredSlots } from '../../dispatch/deferred-slots.ts';
import { acceptContextOf, type Draft } from '../../messages/accept.ts';
import { renewed } from '../../messages/dead-retry.ts';
import { type DeliverySlots, OF_CLIENT } from '../../messages/intake.ts';
import type { Message, MessageKey, NewMessage, ProjectId } from '../../model.ts';
import { StoreUnavailable } from '../../store-errors.ts';
import type { NotRetried, OutlinedEntry, RetriedAs, RunOverride, RunRetry, StartedRun } from './dead-run-store.ts';
import { entriesToRestart } from './entries-to-restart.ts';
import { type Beginning, type Remains, retryOf } from './run-retry.ts';

/** Entries that one transaction saves, or whose messages one read returns. */
const REVIVED_TOGETHER = 200;

/** Chooses the entries of the failed run with which the new journal starts, and which of them are restarted. */
type Choose = (journal: readonly OutlinedEntry[]) => Pick<Remains, 'journal' | 'unfinished'>;

/** Continues where the run stopped, with the recorded results. */
export function resumeRun(
  context: EngineContext,
  projectId: ProjectId,
  dlqId: string,
  override: RunOverride,
): Promise<StartedRun | NotRetried> {
  return retry(context, projectId, dlqId, override, (journal) => ({ journal, unfinished: entriesToRestart(journal) }));
}

/** Starts the run from the beginning, with the same payload and configuration. */
export function restartRun(
  context: EngineContext,
  projectId: ProjectId,
  dlqId: string,
  override: RunOverride,
): Promise<StartedRun | NotRetried> {
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
  const told = await store.deadRuns.findFailureCallback({ projectId, dlqId });
  if (!told) return 'unknown';
  const key = await numbers.take(1);
  const { nowMs, randomness } = acceptContextOf(context, projectId);
  const message = renewed(told, key, { nowMs, random: (count) => randomness.bytes(count) });
  const outcome = await dispatcher.intake.save(
    [{ message }],
    ([newMessage]) => store.deadRuns.repeatFailureCallback({ projectId, dlqId, message: placed(newMessage), nowMs }),
    (saved) => (typeof saved === 'string' ? [] : [saved]),
    OF_CLIENT,
  );
  return typeof outcome === 'string' ? outcome : { runId: dead.run.id, createdAtMs: dead.run.createdAtMs };
}

async function retry(
  context: EngineContext,
  projectId: ProjectId,
  dlqId: string,
  override: RunOverride,
  choose: Choose,
): Promise<StartedRun | NotRetried> {
  const { store, numbers, settings } = context;
  const remains = await remainsOf(store, projectId, dlqId, choose);
  if (typeof remains === 'string') return remains;
  const keysMax = 1 + 2 * remains.unfinished.size;
  let nextKey = await numbers.take(keysMax);
  const { randomness, nowMs, leadMs = 0, lazyAboveBytes } = acceptContextOf(context, projectId);
  const random = (count: number): Uint8Array => randomness.bytes(count);
  const making = { nowMs, leadMs, random, lazyAboveBytes, nextKey: () => nextKey++ };
  return saveAll(context, retryOf(remains, override, making, settings.togetherMax ?? REVIVED_TOGETHER));
}

/** Saves a run in batches: one transaction with twenty thousand messages would block all others. */
async function saveAll(context: EngineContext, pieces: Iterable<RunRetry<Draft>>): Promise<StartedRun | NotRetried> {
  const { dispatcher, waiters, left } = context;
  // No message of a run is sent before all its entries are saved.
  const deferred = new DeferredSlots((line) => dispatcher.noteWaitingBacklog(line));
  let begun: RunRetry<Draft> | undefined;
  try {
    for (const piece of pieces) {
      const { kind } = await save(context, piece, isWhole(piece) ? undefined : deferred);
      if (kind === 'lost') throw new StoreUnavailable('the run was given up while it was being revived');
      if (kind !== 'retried') return kind;
      begun = piece;
    }
  } finally {
    if (begun && !begun.isLast) left.noteNext(0);
  }
  if (!begun) throw new Error('a run has a first entry');
  deferred.open();
  for (const { deadlineMs } of begun.waiters) waiters.noteNext(deadlineMs);
  return { runId: begun.run.id, createdAtMs: begun.run.createdAtMs };
}

function save(
  { store, dispatcher, clock }: EngineContext,
  piece: RunRetry<Draft>,
  slots: DeliverySlots | undefined,
): Promise<RetriedAs> {
  return dispatcher.intake.save(
    messagesOf(piece),
    (newMessages) => store.deadRuns.retryRun({ ...withPlaces(piece, newMessages), nowMs: clock.nowMs() }),
    (retried) => (retried.kind === 'retried' ? [...retried.messages, ...retried.children] : []),
    { ...OF_CLIENT, ...(slots && { slots }) },
  );
}

async function remainsOf(
  store: Store,
  projectId: ProjectId,
  dlqId: string,
  choose: Choose,
): Promise<Remains | 'missing' | 'unknown'> {
  const [dead] = await store.deadRuns.findDeadRuns({ projectId, dlqIds: [dlqId] });
  if (!dead) return 'missing';
  const { run } = dead;
  const { journal, unfinished } = choose(await store.deadRuns.outlineJournal({ projectId, runKey: run.key }));
  const [first] = journal;
  if (!first) return 'unknown';
  const messages = await messagesWith(store, projectId, [...new Set([first.key, ...unfinished])]);
  const children = messages && (await childrenOf(store, projectId, messages));
  return messages && children ? { dlqId, run, journal, unfinished, messages, children } : 'unknown';
}

/** `undefined` when one of the messages is no longer kept. */
async function messagesWith(
  store: Store,
  projectId: ProjectId,
  keys: MessageKey[],
): Promise<ReadonlyMap<MessageKey, Message> | undefined> {
  const messages = new Map<MessageKey, Message>();
  for (let from = 0; from < keys.length; from += REVIVED_TOGETHER) {
    const found = await store.runs.findRecords({
      projectId,
      keys: keys.slice(from, from + REVIVED_TOGETHER),
    });
    for (const message of found) messages.set(message.key, message);
  }
  return messages.size < keys.length ? undefined : messages;
}

/** The runs that the invocations among `messages` started; `undefined` when one of them is no longer kept. */
async function childrenOf(
  store: Store,
  projectId: ProjectId,
  messages: ReadonlyMap<MessageKey, Message>,
): Promise<ReadonlyMap<RunKey, Beginning> | undefined> {
  const children = new Map<RunKey, Beginning>();
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

/** The messages of the journal in order, then those of the children. */
function messagesOf({ journal, children }: RunRetry<Draft>): Draft[] {
  return [...journal.flatMap((entry) => (entry.kind === 'message' ? [entry.message] : [])), ...children];
}

/** Whether one batch has the whole run, whose messages may then be sent as soon as it is saved. */
function isWhole({ isFirst, isLast }: RunRetry<unknown>): boolean {
  return isFirst && isLast;
}

/** The batch with the messages of `messagesOf` replaced by `newMessages`, which have a state. */
function withPlaces({ journal, children, ...rest }: RunRetry<unknown>, newMessages: readonly NewMessage[]): RunRetry {
  let next = 0;
  const nextPlaced = (): NewMessage => placed(newMessages[next++]);
  return {
    ...rest,
    journal: journal.map((entry) => (entry.kind === 'message' ? { kind: 'message', message: nextPlaced() } : entry)),
    children: children.map(nextPlaced),
  };
}

function placed(newMessage: NewMessage | undefined): NewMessage {
  if (!newMessage) throw new Error('a message was not placed');
  return newMessage;
}
