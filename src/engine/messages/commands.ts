/** The commands and reads about messages, except publishing. */
import type { EngineContext } from '../context.ts';
import { backlogKey, backlogKeyOf } from '../lanes/backlog-key.ts';
import type { AttributeFilter } from '../lists/filters.ts';
import type { Page, PageRequest } from '../lists/page.ts';
import type { LiveMessage, UnfinishedFilter } from '../lists/unfinished.ts';
import type { Message, MessageId, MessageKey, NewMessage, ProjectId } from '../model.ts';
import { acceptContextOf } from './accept.ts';
import { type DeadRetryOverride, successorOf } from './dead-retry.ts';
import {
  type ExplainedBacklog,
  type ExplainedMessage,
  type Explanation,
  explain,
  explainBacklog,
  explainKey,
  isRetrying,
} from './explain.ts';
import { dlqIdIn, explainFinished } from './explain-finished.ts';
import { FROM_CLIENT, savedOf } from './intake.ts';

/** The maximum of log events that are read to explain a finished message. Older retries are not counted. */
const EXPLAINED_EVENTS_MAX = 1000;

/** How long an event of another cell is remembered as saved: the worker of that cell retries within seconds. */
const EVENT_ONCE_MS = 86_400_000;

/** The maximum of dead messages that one transaction retries, because all their bodies are in memory at once. */
const RETRY_BATCH = 16;

/** The maximum of messages that a bulk cancel finds with one query. */
const CANDIDATE_BATCH = 500;

/**
 * Messages that a bulk cancel cancels in one transaction. This is about a millisecond of work, which no publish notices.
 */
const CANCEL_BATCH = 50;

/**
 * The maximum of messages of a deleted queue that one transaction cancels. Other commands run between two transactions.
 */
const EMPTY_BATCH = 50;

export function findMessage(
  { store, clock, settings }: EngineContext,
  projectId: ProjectId,
  id: MessageId,
): Promise<Message | undefined> {
  return store.messages.find({ projectId, id, deliveredSinceMs: clock.nowMs() - settings.deliveredGraceMs });
}

/** Explains why a message waits (P14), or how it ended. Returns undefined if the message is unknown. */
export async function explainMessage(
  context: EngineContext,
  projectId: ProjectId,
  id: MessageId,
): Promise<Explanation | undefined> {
  const explanation = await explainState(context, projectId, id);
  const replays = explanation ? await context.store.messages.listReplays({ projectId, id }) : [];
  return explanation && replays.length > 0 ? { ...explanation, replays } : explanation;
}

async function explainState(
  context: EngineContext,
  projectId: ProjectId,
  id: MessageId,
): Promise<Explanation | undefined> {
  const { store, clock } = context;
  const live = await store.messages.findLive({ projectId, id, nowMs: clock.nowMs() });
  if (live) return explainLive(context, live, await failureOf(context, projectId, live));
  const page = { count: EXPLAINED_EVENTS_MAX, order: 'latestFirst' } as const;
  const log = (await store.logs.listLogs({ projectId, filter: { messageId: [id] }, page })).items;
  const dlqId = dlqIdIn(log);
  const isInDlq = dlqId !== undefined && (await store.dead.countDead({ projectId, dlqIds: [dlqId] })) > 0;
  return explainFinished(log, { isInDlq });
}

/** The error of the failed attempt before the pending retry. */
async function failureOf(
  { store, clock }: EngineContext,
  projectId: ProjectId,
  live: LiveMessage,
): Promise<string | undefined> {
  if (!isRetrying(live, clock.nowMs())) return undefined;
  const filter = { messageId: [live.message.id], state: ['ERROR' as const] };
  const page = { count: 1, order: 'latestFirst' } as const;
  return (await store.logs.listLogs({ projectId, filter, page })).items[0]?.detail?.error;
}

function explainLive({ clock, dispatcher }: EngineContext, live: LiveMessage, failure?: string): Explanation {
  const limitReason =
    live.state.kind === 'origin' ? dispatcher.inFlight.limitReasonOf(backlogKeyOf(live.message)) : undefined;
  return explain(live, clock.nowMs(), { limitReason, failure });
}

/**
 * Unfinished messages with the reason why each message waits. The messages ahead of them in their queues are not counted.
 */
export async function listUnfinished(
  context: EngineContext,
  projectId: ProjectId,
  filter: UnfinishedFilter,
  page: Omit<PageRequest, 'order'>,
): Promise<Page<ExplainedMessage>> {
  const { store, clock } = context;
  const unfinished = await store.messages.listUnfinished({ projectId, filter, page, nowMs: clock.nowMs() });
  return {
    ...unfinished,
    items: unfinished.items.map((live) => ({ ...live, explanation: explainLive(context, live) })),
  };
}

export async function readBacklog(
  { store, clock, dispatcher }: EngineContext,
  projectId: ProjectId,
): Promise<ExplainedBacklog> {
  const nowMs = clock.nowMs();
  const { origins, queues, keys, ...backlog } = await store.backlog.readBacklog({ projectId, nowMs });
  return {
    ...backlog,
    origins: origins.map((list) => {
      const { reason } = explainBacklog(
        list.origin,
        dispatcher.inFlight.limitReasonOf(backlogKey(projectId, list.origin)),
      );
      return { ...list, reason, isHeldBack: dispatcher.inFlight.isHeldBack(list.origin) };
    }),
    queues: queues.map((list) => ({ ...list, reason: list.isPaused ? 'queue_paused' : 'queued' })),
    keys: keys.flatMap((list) => {
      const { reason } = explainKey(list.key, nowMs);
      return reason === 'key_turn' || list.waiting.count === 0 ? [] : { ...list, reason };
    }),
  };
}

/** Cancels up to `count` matching messages (default: all), in batches that do not stall the store. */
export async function cancelMatching(
  { store, clock }: EngineContext,
  projectId: ProjectId,
  filter: AttributeFilter,
  count = Infinity,
): Promise<number> {
  let cancelled = 0;
  let from: MessageKey | undefined = -1;
  while (from !== undefined && cancelled < count) {
    const limit = Math.min(count - cancelled, CANDIDATE_BATCH);
    const candidates: { keys: MessageKey[]; nextAfterKey?: MessageKey } = await store.messages.findCandidates({
      projectId,
      filter,
      afterKey: from,
      limit,
    });
    for (let at = 0; at < candidates.keys.length; at += CANCEL_BATCH) {
      const keys = candidates.keys.slice(at, at + CANCEL_BATCH);
      cancelled += await store.messages.cancelCandidates({ projectId, keys, nowMs: clock.nowMs() });
    }
    from = candidates.nextAfterKey;
  }
  return cancelled;
}

/**
 * Publishes each DLQ entry again and removes the entry, in the order of `dlqIds`. Returns undefined, with nothing
 * changed, if an entry does not exist. More than 16 entries are retried in batches. If an entry disappears during the
 * retry, the other entries of its batch are still retried.
 */
export async function retryDead(
  context: EngineContext,
  projectId: ProjectId,
  dlqIds: string[],
  override: DeadRetryOverride = {},
): Promise<MessageId[] | undefined> {
  const wanted = [...new Set(dlqIds)];
  if ((await context.store.dead.countDead({ projectId, dlqIds: wanted })) < wanted.length) return undefined;
  const messageIds: MessageId[] = [];
  for (let at = 0; at < wanted.length; at += RETRY_BATCH) {
    const batch = wanted.slice(at, at + RETRY_BATCH);
    const retried = await retryAll(context, projectId, batch, override);
    // Another request has retried or deleted an entry since the entries were counted.
    if (retried === undefined && messageIds.length === 0) return undefined;
    messageIds.push(...(retried ?? (await retryRemaining(context, projectId, batch, override))));
  }
  return messageIds;
}

/** Retries the remaining entries of `dlqIds` after some entries have disappeared. */
async function retryRemaining(
  context: EngineContext,
  projectId: ProjectId,
  dlqIds: string[],
  override: DeadRetryOverride,
): Promise<MessageId[]> {
  const remaining = await context.store.dead.findDeadMany({ projectId, dlqIds });
  if (remaining.length === 0) return [];
  const remainingIds = remaining.map(({ dlqId }) => dlqId);
  const retried = await retryAll(context, projectId, remainingIds, override);
  return retried ?? (await retryRemaining(context, projectId, remainingIds, override));
}

/** Publishes all entries again, or no entry if one of the entries no longer exists. */
async function retryAll(
  engine: EngineContext,
  projectId: ProjectId,
  dlqIds: string[],
  override: DeadRetryOverride,
): Promise<MessageId[] | undefined> {
  const { store, numbers, dispatcher } = engine;
  const dead = await store.dead.findDeadMany({ projectId, dlqIds });
  if (dead.length < dlqIds.length) return undefined;
  const firstKey = await numbers.take(dead.length);
  const context = acceptContextOf(engine, projectId);
  const drafts = dead.map((entry, index) => ({ message: successorOf(entry, firstKey + index, override, context) }));
  const outcome = await dispatcher.intake.save(
    drafts,
    (successors) => {
      const retries = successors.map((successor, index) => ({ dlqId: dlqIds[index] ?? '', successor }));
      return store.dead.retryDead({ projectId, retries, nowMs: context.nowMs });
    },
    (saved) => (saved === 'missing' ? [] : saved),
    FROM_CLIENT,
  );
  return outcome === 'missing' ? undefined : drafts.map(({ message }) => message.id);
}

/** Deletes the queue and cancels its messages, in batches that do not stall the store. */
export async function deleteQueue({ store, clock }: EngineContext, projectId: ProjectId, name: string): Promise<void> {
  const queue = await store.queues.deleteQueue({ projectId, name, nowMs: clock.nowMs() });
  while (queue && (await store.queues.emptyQueue({ ...queue, count: EMPTY_BATCH, nowMs: clock.nowMs() })));
}

/** Saves an operator event of another cell in the project of the operator, unless one with the same `hash` was saved. */
export async function saveEvent(
  { store, clock, dispatcher }: EngineContext,
  _: ProjectId,
  message: Message,
  hash: string,
): Promise<void> {
  const nowMs = clock.nowMs();
  const deduplication = { hash, expiresAtMs: nowMs + EVENT_ONCE_MS };
  const save = (newMessages: NewMessage[]) => store.messages.accept({ messages: newMessages, nowMs });
  await dispatcher.intake.save([{ message, deduplication }], save, savedOf);
}
