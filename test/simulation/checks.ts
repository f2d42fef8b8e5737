/**
 * Checks the promises of docs/architecture.md when all work of the healed world is finished. Shares no rules with
 * test/crash/checks.ts, which sees real servers only through clients and endpoints. Here every state change and every
 * start is known in the order in which it was saved, so the rules are stricter: they allow only for lost responses and
 * for clocks that were set.
 */

import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import type { LogState, Message, MessageId, Millis } from '../../src/engine/model.ts';
import type { DeadMessage, LogEntry } from '../../src/engine/stores.ts';
import type { Attempt } from '../support/simulated-network.ts';
import { checkCallbacks } from './callback-checks.ts';
import { isQuietSince, PROMPT_MS } from './disturbances.ts';
import { HEALTHY_ORIGIN } from './endpoints.ts';
import { type History, historiesOf } from './histories.ts';
import { checkLanes } from './lanes-checks.ts';
import { type Call, isCallback, type Publish, refOf } from './ledger.ts';
import { checkSchedules } from './schedule-checks.ts';
import { CLOCK_PRECISION_MS } from './wall-clock.ts';
import { BODY_BYTES_MAX, type World } from './world.ts';

/** The state of the stores when all work is finished. */
export interface FinalState {
  logs: LogEntry[];
  dead: DeadMessage[];
  unfinished: MessageId[];
  /** All state changes in the order in which they were saved, regardless of clocks. */
  changes: { id: MessageId; state: LogState }[];
}

export interface Evidence {
  world: World;
  finalState: FinalState;
  histories: Map<MessageId, History>;
  attemptsById: Map<MessageId, Attempt[]>;
}

export function checkAll(world: World, finalState: FinalState): void {
  const histories = historiesOf(finalState.logs);
  const attemptsById = Map.groupBy(world.network.attempts, (attempt) => attempt.messageId);
  const evidence: Evidence = { world, finalState, histories, attemptsById };
  checkAcknowledged(evidence);
  checkNotAcknowledged(evidence);
  checkEnds(evidence);
  checkAttempts(evidence);
  checkDead(evidence);
  checkCancels(evidence);
  checkDeduplication(evidence);
  checkCallbacks(world, finalState.dead, histories);
  checkPromptness(evidence);
  checkDelays(evidence);
  checkLanes(evidence);
  checkSchedules(evidence);
}

/** P1: every acknowledged message is in the store. */
function checkAcknowledged({ world, histories }: Evidence): void {
  for (const id of world.ledger.acknowledgedIds({ ofOthers: true })) {
    if (!histories.has(id)) world.violate('P1', 'an accepted message is not in the store', id);
  }
}

/** Rejected messages do not exist. A batch with an unknown outcome exists as a whole or not at all. */
function checkNotAcknowledged({ world, histories }: Evidence): void {
  const known = new Set(world.ledger.acknowledgedIds({ ofOthers: true }));
  const callByRef = new Map<number, Publish & Call>();
  for (const call of world.ledger.publishes) for (const { ref } of call.items) callByRef.set(ref, call);
  const published = [...histories.values()].filter(
    ({ message }) => !isCallback(message.body) && message.settings.scheduleId === undefined,
  );
  const idsByRef = Map.groupBy(published, ({ message }) => refOf(message.body));

  for (const [ref, all] of idsByRef) {
    const unacknowledged = all.filter(({ message }) => !known.has(message.id));
    const call = callByRef.get(ref);
    const unknownPublishes = call?.result === 'unknown' ? 1 : 0;
    const unknownRevivals = unknownRevivalsOf(world, all);
    const [extra] = unacknowledged.slice(unknownPublishes + unknownRevivals);
    if (extra) world.violate('P2', 'a message exists that no client can have published', extra.message.id);
  }
  for (const call of world.ledger.publishes) {
    if (call.result !== 'unknown') continue;
    const plain = call.items.filter(({ command }) => !command.options.deduplication && !mayBeRefused(world, command));
    const saved = plain.filter(({ ref }) => idsByRef.has(ref)).length;
    if (saved > 0 && saved < plain.length) world.violate('P3', `${saved} of ${plain.length} of a batch were saved`);
  }
}

/** Whether the message may have exceeded the limit of queues. Its batch is then saved without the message. */
function mayBeRefused({ limits }: World, { options }: PublishCommand): boolean {
  return limits.queuesMax > 0 && options.settings.queueName !== undefined;
}

function unknownRevivalsOf({ ledger }: World, all: History[]): number {
  const keys = new Set(all.map(({ message }) => String(message.key)));
  const calls = ledger.deadCalls.filter(({ action, result }) => action === 'retry' && result === 'unknown');
  return calls.flatMap(({ dlqIds }) => dlqIds).filter((dlqId) => keys.has(dlqId.split('-')[1] ?? '')).length;
}

/**
 * The states are C created, A active, D delivered, E error, R retry, F failed, Q cancel requested, X cancelled (contract
 * M 6.2, 6.3).
 */
const LEGAL = /^C(A+ER)*(A*QX|A+D|A+EF|A+Q(D|EF|EX|X))$/;
/** After a move, the new cell may log a cancel request before it learns that the message had ended in the old cell. */
const LEGAL_IN_CELLS = /^C(A+ER)*A+(D|EF)Q$/;

/** P2: every message ends exactly once, with a sequence of states that the contract allows. */
function checkEnds({ world, finalState, histories }: Evidence): void {
  for (const id of finalState.unfinished) world.violate('P2', 'a message never ends', id);
  const unfinished = new Set(finalState.unfinished);
  for (const { message, letters } of histories.values()) {
    const isLegal = LEGAL.test(letters) || (world.databases.length > 1 && LEGAL_IN_CELLS.test(letters));
    if (!unfinished.has(message.id) && !isLegal) {
      world.violate('P2', `the logs tell of ${letters}`, message.id);
    }
  }
}

/**
 * Each attempt is logged, counted and on time; a repeated attempt is explained by the end of a process. `mayBeHeld`:
 * whether an open call may have handled the message, so that its first attempt was part of another message's attempt.
 */
export function checkAttempts(
  { world, histories, attemptsById }: Pick<Evidence, 'world' | 'histories' | 'attemptsById'>,
  mayBeHandedOver: (message: Message) => boolean = () => false,
): void {
  for (const [id, attempts] of attemptsById) {
    const history = histories.get(id);
    if (!history) {
      world.violate('P1', 'a message was sent that is not in the store', id);
      continue;
    }
    checkCounting(world, history, attempts, mayBeHandedOver(history.message));
    for (const [retried, repeated] of Map.groupBy(attempts, (attempt) => attempt.retried)) {
      const round = history.rounds[retried];
      if (!round || round.activeCount < repeated.length) {
        world.violate('P3', `${repeated.length} attempts with retried ${retried} are not all in the logs`, id);
        continue;
      }
      const [first] = repeated;
      if (!first || round.activeCount > 1 || first.sentAtMs >= round.dueAtMs) continue;
      // A message that was due for an earlier process stays due, even if the clock was set back before the next process
      // started.
      const startedAt = world.startOf.get(first)?.at ?? 0;
      if (world.ends.some(({ at, nowMs }) => at <= startedAt && nowMs >= round.dueAtMs)) continue;
      // A message that follows an attempt is created no earlier than the attempt: its time may be ahead of a clock that
      // was set back.
      const isAtOnce = retried === 0 && history.message.notBeforeMs <= history.message.createdAtMs;
      if (isAtOnce && world.jumps.some(({ at }) => at <= startedAt)) continue;
      if (wasRequestedAtOnce(world, id, attempts[attempts.indexOf(first) - 1], first)) continue;
      const earlyMs = round.dueAtMs - first.sentAtMs;
      if (earlyMs > (world.isShared ? CLOCK_PRECISION_MS : 0))
        world.violate('P2', `an attempt was made ${earlyMs} ms too early`, id);
    }
  }
}

/**
 * Whether a client requested an immediate attempt that may have been made between the starts of the attempts `before` and
 * `first`. The worker may have been stopped, or have waited for its store.
 */
function wasRequestedAtOnce(world: World, asked: MessageId, before: Attempt | undefined, first: Attempt): boolean {
  const fromMs = (before && world.startOf.get(before)?.atMs) ?? 0;
  const toMs = world.startOf.get(first)?.atMs ?? 0;
  return world.ledger.immediateAttempts.some(
    ({ id, startAtMs, endedAtMs }) => id === asked && startAtMs <= toMs && endedAtMs >= fromMs,
  );
}

function checkCounting(world: World, { message }: History, attempts: Attempt[], mayBeHandedOver: boolean): void {
  let before: Attempt | undefined;
  for (const attempt of attempts) {
    const mayBeNext = before === undefined && mayBeHandedOver && attempt.retried === 1;
    const expected = before === undefined ? Number(mayBeNext) : before.retried + 1;
    const isRepeated = before !== undefined && attempt.retried === before.retried;
    // A call may release a message that was handed to the call.
    const isWithout = before?.isHandover || isParked(before?.reply);
    if (before && isRepeated && !isWithout && !hasProcessEnded(world, before, attempt)) {
      world.violate('P2', `retried ${attempt.retried} was sent twice though no process ended`, message.id);
    } else if (!isRepeated && attempt.retried !== expected && !(before === undefined && attempt.retried === 0)) {
      world.violate('P2', `retried ${attempt.retried} was sent instead of ${expected}`, message.id);
    }
    if (attempt.retried > message.settings.maxRetries) {
      world.violate('P2', `retried ${attempt.retried} of at most ${message.settings.maxRetries}`, message.id);
    }
    before = attempt;
  }
}

/** Whether the endpoint reported changed code, which does not count as a failed attempt. */
function isParked(reply: Attempt['reply']): boolean {
  return reply?.kind === 'answer' && reply.header?.['Upstash-Workflow-Code-Changed'] !== undefined;
}

/** Whether a process ended between the starts of two attempts. */
function hasProcessEnded(world: World, first: Attempt, second: Attempt): boolean {
  const from = world.startOf.get(first)?.at ?? 0;
  const to = world.startOf.get(second)?.at ?? 0;
  return world.endPositions.some((at) => at >= from && at <= to);
}

/** P3: logs, endpoints and the DLQ agree on the end of each message. */
function checkDead({ world, finalState, histories, attemptsById }: Evidence): void {
  const deadByKey = new Map(finalState.dead.map((entry) => [entry.message.key, entry]));
  const calls = Map.groupBy(
    world.ledger.deadCalls.flatMap((call) => call.dlqIds.map((dlqId) => ({ dlqId, call }))),
    ({ dlqId }) => dlqId.split('-')[1] ?? '',
  );
  for (const { message, letters } of histories.values()) {
    const { id, key, settings } = message;
    const attempts = attemptsById.get(id) ?? [];
    const last = attempts.at(-1);
    if (letters.endsWith('D') && !attempts.some(({ reply }) => reply?.kind === 'answer' && reply.status < 300)) {
      world.violate('P3', 'logged as delivered, but no endpoint answered so', id);
    }
    const isDead = deadByKey.has(key);
    if (!letters.endsWith('F')) {
      if (isDead) world.violate('P3', `in the DLQ, but the logs tell of ${letters}`, id);
      continue;
    }
    if (last && last.retried < settings.maxRetries && !forbidsRetry(last)) {
      world.violate('P2', `dead after ${last.retried} of ${settings.maxRetries} retries`, id);
    }
    const actions = (calls.get(String(key)) ?? []).map(({ call }) => call);
    const removed = actions.filter(({ result, missing }) => result === 'acked' && !missing).length > 0;
    const isOpen = actions.some(({ result }) => result === 'unknown');
    if (isDead && removed) world.violate('P3', 'still in the DLQ after it was retried or deleted', id);
    if (!isDead && !removed && !isOpen) world.violate('P3', 'failed, but not in the DLQ', id);
    const retries = actions.filter(({ action, ids }) => action === 'retry' && ids);
    if (retries.length > 1) world.violate('P2', `retried ${retries.length} times from the DLQ`, id);
  }
}

function forbidsRetry({ reply }: Attempt): boolean {
  if (reply?.kind === 'unsendable') return true;
  return reply?.kind === 'answer' && reply.status === 489 && reply.header !== undefined;
}

/** P2: a message is cancelled only on request, and is not sent after the cancel. */
function checkCancels({ world, finalState, histories, attemptsById }: Evidence): void {
  const { cancels } = world.ledger;
  const askedIds = new Set(cancels.filter(({ result }) => result !== 'rejected').flatMap(({ ids }) => ids ?? []));
  // A bulk cancel works in batches: a rejected bulk cancel may have cancelled some messages.
  const askedLabels = new Set(cancels.flatMap(({ label }) => label ?? []));
  // The deletion of a queue also cancels in batches.
  const deletions = world.ledger.queueCalls.filter(({ action }) => action === 'delete');
  const deletedQueues = new Set(deletions.map(({ queueName }) => queueName));
  for (const { message, letters } of histories.values()) {
    const { labels, queueName } = message.settings;
    const isAsked =
      askedIds.has(message.id) ||
      labels?.some((label) => askedLabels.has(label)) ||
      (queueName !== undefined && deletedQueues.has(queueName));
    if (letters.includes('Q') && !isAsked) world.violate('P2', 'cancelled, though nobody asked for it', message.id);
  }
  for (const { ids = [], result, endedAtMs } of cancels) {
    if (result !== 'acked') continue;
    for (const id of ids) {
      const attempts = attemptsById.get(id) ?? [];
      const late = attempts.find((attempt) => (world.startOf.get(attempt)?.atMs ?? 0) > endedAtMs);
      // The response to a claim that was committed before the cancel may arrive long after it.
      if (late && attempts.length > claimsBeforeCancel(finalState, id))
        world.violate('P2', 'sent after its cancel was confirmed', id);
    }
  }
}

/** How often the message was claimed before its cancel was saved; 0 without a cancel. */
function claimsBeforeCancel({ changes }: FinalState, messageId: MessageId): number {
  const states = changes.flatMap(({ id, state }) => (id === messageId ? [state] : []));
  const cancelledAt = states.findIndex((state) => state === 'CANCEL_REQUESTED' || state === 'CANCELED');
  return states.slice(0, Math.max(0, cancelledAt)).filter((state) => state === 'ACTIVE').length;
}

/** P3: one message per deduplication id and window; a duplicate gets the id of an existing message. */
function checkDeduplication({ world, histories }: Evidence): void {
  const items = world.ledger.publishes.flatMap(({ items }) => items);
  const callByRef = new Map(
    world.ledger.publishes.flatMap((call) => call.items.map(({ ref }) => [ref, call] as const)),
  );
  const idByRef = new Map(
    items.flatMap(({ ref, command }) => {
      const wish = command.options.deduplication;
      return wish?.by === 'id' ? [[ref, wish.id] as const] : [];
    }),
  );
  const dedupIdOf = (history: History | undefined) => history && idByRef.get(refOf(history.message.body));
  for (const { ref, id, deduplicated } of items) {
    if (id === undefined || !deduplicated) continue;
    const twin = dedupIdOf(histories.get(id));
    if (twin === undefined) world.violate('P3', 'a duplicate stands for a message that does not exist', id);
    else if (twin !== idByRef.get(ref)) world.violate('P2', 'a message was taken for the duplicate of another', id);
  }
  const revived = new Set(world.ledger.deadCalls.flatMap(({ ids }) => ids ?? []));
  const firsts = [...histories.values()].filter((history) => dedupIdOf(history) !== undefined);
  const published = firsts.filter(({ message }) => !revived.has(message.id) && !isSuccessor(world, message, firsts));
  for (const twins of Map.groupBy(published, (history) => dedupIdOf(history) ?? '').values()) {
    twins.sort((a, b) => a.message.createdAtMs - b.message.createdAtMs || a.message.key - b.message.key);
    for (const [index, { message }] of twins.entries()) {
      const before = twins[index - 1]?.message;
      if (!before) continue;
      const expiresAtMs = before.createdAtMs + world.settings.deduplicationWindowMs;
      // A worker that was stopped after it read the clock may have saved the message at any time until the call ended.
      const { startAtMs = 0, endedAtMs = 0 } = callByRef.get(refOf(message.body)) ?? {};
      const savedByMs = message.createdAtMs + (endedAtMs - startAtMs);
      // While the clock was ahead, the window may have ended.
      if (savedByMs < expiresAtMs && !world.jumps.some(({ fromMs }) => fromMs >= expiresAtMs)) {
        world.violate('P3', 'two messages with one deduplication id in its window', message.id);
      }
    }
  }
}

/** Whether `message` came from a DLQ retry with an unknown outcome: the message repeats the `ref` of an older message. */
function isSuccessor(world: World, { body, key, createdAtMs }: Message, all: History[]): boolean {
  // Each cell assigns its own keys, so keys of different cells are not comparable.
  const isOlder = (other: Message) => (world.databases.length > 1 ? other.createdAtMs < createdAtMs : other.key < key);
  return all.some(({ message }) => isOlder(message) && refOf(message.body) === refOf(body));
}

/** P9: without recent faults, a healthy endpoint's messages are sent promptly, whatever other endpoints do. */
function checkPromptness({ world, attemptsById }: Evidence): void {
  // If the capacity is only a few messages, slow endpoints may use all of it.
  if (world.settings.inFlightBytesMax < 16 * BODY_BYTES_MAX || world.limits.parallelismMax > 0) return;
  for (const { items, result, endedAtMs } of world.ledger.publishes) {
    if (result !== 'acked') continue;
    for (const { id, deduplicated, command } of items) {
      const { queueName, flowControl } = command.options.settings;
      const isInLane = queueName !== undefined || flowControl !== undefined;
      const isAtOnce = command.options.delayMs === undefined && command.options.notBeforeMs === undefined;
      if (id === undefined || deduplicated || isInLane || !isAtOnce || !command.url.startsWith(HEALTHY_ORIGIN))
        continue;
      const first = attemptsById.get(id)?.[0];
      const startedAtMs = first && world.startOf.get(first)?.atMs;
      if (startedAtMs === undefined || startedAtMs - endedAtMs <= PROMPT_MS) continue;
      if (isQuietSince(world, endedAtMs, startedAtMs) && !isFullAt(world, endedAtMs)) {
        world.violate('P9', `a healthy endpoint's message went out ${startedAtMs - endedAtMs} ms late`, id);
      }
    }
  }
}

/**
 * P2: while a process runs, a delay is measured in elapsed time, however the wall clock is set. After the end of the process,
 * the wall clock counts.
 */
function checkDelays({ world, attemptsById }: Evidence): void {
  if (world.isShared || world.settings.inFlightBytesMax < 16 * BODY_BYTES_MAX || world.limits.parallelismMax > 0)
    return;
  for (const { items, result, startAtMs, endedAtMs } of world.ledger.publishes) {
    if (result !== 'acked') continue;
    for (const { id, deduplicated, command } of items) {
      const { delayMs, settings } = command.options;
      const isInLane = settings.queueName !== undefined || settings.flowControl !== undefined;
      if (id === undefined || deduplicated || isInLane || delayMs === undefined) continue;
      if (!command.url.startsWith(HEALTHY_ORIGIN)) continue;
      const first = attemptsById.get(id)?.[0];
      const startedAtMs = (first && world.startOf.get(first)?.atMs) ?? 0;
      const lateMs = startedAtMs - endedAtMs - delayMs;
      if (lateMs > CROWDED_MS && !world.ends.some(({ atMs }) => atMs >= startAtMs && atMs <= startedAtMs)) {
        world.violate('P2', `a delay of ${delayMs} ms took ${lateMs} ms more`, id);
      }
    }
  }
}

/** Longer than any wait for the store or for a slot. */
const CROWDED_MS: Millis = 600_000;

/** Whether there are so few slots that five endpoints that never respond may use all slots. */
function isFullAt({ starts, settings }: World, atMs: Millis): boolean {
  const latest = starts.findLast((start) => start.atMs <= atMs);
  return latest !== undefined && latest.running.length >= settings.inFlightMax;
}
