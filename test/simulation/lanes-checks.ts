/** Checks the promises about queues, flow-control keys and the limit of a project (P4 and P5 of docs/architecture.md). */
import type { Claimed, Message, MessageId, Millis } from '../../src/engine/model.ts';
import type { FlowControl } from '../../src/protocol/options/settings.ts';
import type { Evidence } from './checks.ts';
import type { History } from './histories.ts';
import { PARALLELISMS_BY_QUEUE } from './lanes-workload.ts';
import { isCallback, refOf } from './ledger.ts';
import { triggersByMessage } from './schedule-stories.ts';
import { type Change, changeOf, initially, possibleValues } from './settings-in-force.ts';
import type { AttemptStart, World } from './world.ts';

export function checkLanes(evidence: Evidence): void {
  checkProject(evidence);
  checkKeys(evidence);
  checkQueues(evidence);
  checkOrder(evidence);
  checkBatches(evidence);
  checkDeletions(evidence);
}

/** P4: a project has no more attempts in flight than its limit allows. */
function checkProject({ world }: Evidence): void {
  const { parallelismMax } = world.limits;
  if (parallelismMax === 0) return;
  for (const { attempt, running } of world.starts) {
    const { projectId } = attempt.claimed.message;
    const inFlight = running.filter(({ message }) => message.projectId === projectId).length;
    if (inFlight > parallelismMax) {
      const text = `${inFlight} of ${parallelismMax} attempts of the project in flight`;
      world.violate('P4', text, attempt.messageId);
    }
  }
}

/** P4: no key exceeds its parallelism, or its rate in any window; a paused key starts no attempts. */
function checkKeys(evidence: Evidence): void {
  const { world } = evidence;
  const startsByKey = new Map<string, AttemptStart[]>();
  for (const start of world.starts) {
    const key = claimedOf(start)?.message.settings.flowControl?.key;
    if (key !== undefined) startsByKey.set(key, [...(startsByKey.get(key) ?? []), start]);
  }
  for (const [key, starts] of startsByKey) {
    checkKeyParallelism(world, key, starts, limitChanges(evidence, key, 'parallelism'));
    checkKeyRate(world, key, starts, limitChanges(evidence, key, 'rate'));
    checkKeyPause(world, key, starts);
  }
}

function checkKeyParallelism(world: World, key: string, starts: AttemptStart[], changes: Change<KeyLimits>[]): void {
  for (const { attempt, atMs, claimedAtMs, running } of starts) {
    const inFlight = running.filter(({ message }) => message.settings.flowControl?.key === key).length;
    const parallelism = Math.max(...possibleValues(changes, claimedAtMs, atMs).map((limits) => limits.parallelism));
    if (inFlight > parallelism) {
      world.violate('P4', `${inFlight} of ${parallelism} attempts of key ${key} in flight`, attempt.messageId);
    }
  }
}

/**
 * The maximum time between the moment at which a key counts an attempt and the moment at which the attempt is visible
 * here.
 */
const START_LAG_MS: Millis = 500;

/**
 * Windows are consecutive, and their starts are unknown outside the server. But a time span shorter than `n` windows
 * overlaps at most `n + 1` windows.
 */
function checkKeyRate(world: World, key: string, starts: AttemptStart[], changes: Change<KeyLimits>[]): void {
  const inOrder = starts.toSorted((a, b) => a.claimedAtMs - b.claimedAtMs);
  for (const [first, { attempt, claimedAtMs: fromMs }] of inOrder.entries()) {
    for (const windows of [1, 2, 4]) {
      const { rate, periodMs } = loosest(
        possibleValues(changes, fromMs - START_LAG_MS, fromMs + windows * PERIOD_MS_MAX),
      );
      const untilMs = fromMs + windows * periodMs - START_LAG_MS;
      if (rate === Infinity || hasNewWindow(world, key, fromMs - START_LAG_MS, untilMs)) continue;
      const within = inOrder.slice(first).filter(({ claimedAtMs }) => claimedAtMs < untilMs).length;
      if (within > (windows + 1) * rate) {
        const text = `${within} starts of key ${key} in less than ${windows} periods of ${rate}`;
        world.violate('P4', text, attempt.messageId);
      }
    }
  }
}

/** The longest period that the workload draws. */
const PERIOD_MS_MAX: Millis = 20_000;

/** Whether a window may have ended early: the clock was set, or the key was pinned or reset. */
function hasNewWindow({ jumps, ledger }: World, key: string, fromMs: Millis, toMs: Millis): boolean {
  if (jumps.some(({ atMs }) => atMs >= fromMs && atMs <= toMs)) return true;
  const renewals = ledger.keyCalls.filter((call) => call.key === key && ['pin', 'reset'].includes(call.action));
  return renewals.some(({ startAtMs, endedAtMs }) => startAtMs <= toMs && endedAtMs >= fromMs);
}

function checkKeyPause(world: World, key: string, starts: AttemptStart[]): void {
  const changes = world.ledger.keyCalls
    .filter((call) => call.key === key && (call.action === 'pause' || call.action === 'resume'))
    .flatMap((call) => changeOf(call, call.action === 'pause') ?? []);
  for (const { attempt, atMs, claimedAtMs } of starts) {
    if (!possibleValues([initially(false), ...changes], claimedAtMs, atMs).includes(false)) {
      world.violate('P4', `started although its key ${key} was paused`, attempt.messageId);
    }
  }
}

interface KeyLimits {
  /** `Infinity` if the parallelism is not limited. */
  parallelism: number;
  rate: number;
  periodMs: Millis;
}

function loosest(limits: readonly KeyLimits[]): KeyLimits {
  return {
    parallelism: Math.max(...limits.map(({ parallelism }) => parallelism)),
    rate: Math.max(...limits.map(({ rate }) => rate)),
    periodMs: Math.min(...limits.map(({ periodMs }) => periodMs)),
  };
}

type LimitKind = 'parallelism' | 'rate';

/** All changes of `part` of the limits of `key`: by pins, and by messages while the key was not pinned. */
function limitChanges(evidence: Evidence, key: string, part: LimitKind): Change<KeyLimits>[] {
  const { keyCalls } = evidence.world.ledger;
  const pins = keyCalls.flatMap((call) => {
    if (call.action !== 'pin' || call.key !== key || call.pin[part] === undefined) return [];
    return changeOf(call, limitsOf({ key, periodS: 1, ...call.pin })) ?? [];
  });
  const unpins = keyCalls.flatMap((call) =>
    call.action === 'unpin' && call.key === key && call[part] ? (changeOf(call, null) ?? []) : [],
  );
  const byMessages = messageLimits(evidence, key).flatMap((change) => {
    const before = pins.filter((pin) => pin.startAtMs <= change.endedAtMs);
    const isSurelyPinned = before.some(
      (pin) =>
        pin.isCertain &&
        pin.endedAtMs < change.startAtMs &&
        !unpins.some((unpin) => unpin.endedAtMs >= pin.startAtMs && unpin.startAtMs <= change.endedAtMs),
    );
    if (isSurelyPinned) return [];
    const isSurelyUnpinned = before.every((pin) =>
      unpins.some((unpin) => unpin.isCertain && unpin.startAtMs > pin.endedAtMs && unpin.endedAtMs < change.startAtMs),
    );
    return [{ ...change, isCertain: change.isCertain && isSurelyUnpinned }];
  });
  return [...pins, ...byMessages];
}

function messageLimits({ world, histories }: Evidence, key: string): Change<KeyLimits>[] {
  const published = world.ledger.publishes.flatMap((call) =>
    call.items.flatMap(({ command, deduplicated, refused }) => {
      const { flowControl } = command.options.settings;
      if (flowControl?.key !== key || deduplicated || refused) return [];
      return changeOf(call, limitsOf(flowControl)) ?? [];
    }),
  );
  const flowByKey = new Map([...histories.values()].map(({ message }) => [message.key, message.settings.flowControl]));
  const revived = world.ledger.deadCalls.flatMap((call) =>
    call.dlqIds.flatMap((dlqId) => {
      const flowControl = flowByKey.get(Number(dlqId.split('-')[1]));
      if (call.action !== 'retry' || flowControl?.key !== key || call.missing) return [];
      return changeOf(call, limitsOf(flowControl)) ?? [];
    }),
  );
  const triggered = world.ledger.triggers.flatMap((trigger) =>
    trigger.messages.flatMap(({ settings: { flowControl } }) => {
      if (flowControl?.key !== key || trigger.isStale) return [];
      return changeOf(trigger, limitsOf(flowControl)) ?? [];
    }),
  );
  return [...published, ...revived, ...triggered];
}

function limitsOf({ parallelism = Infinity, rate = Infinity, periodS }: FlowControl): KeyLimits {
  return { parallelism, rate, periodMs: periodS * 1000 };
}

/** P4: no queue exceeds its parallelism, and a paused queue starts no messages. */
function checkQueues(evidence: Evidence): void {
  const { world } = evidence;
  const births = acceptanceTimesOf(evidence);
  for (const start of world.starts) {
    const { attempt, atMs, claimedAtMs, running } = start;
    const queueName = claimedOf(start)?.message.settings.queueName;
    if (queueName === undefined) continue;
    const changes = queueChanges(world, queueName);
    if (possibleValues(changes, claimedAtMs, atMs).every(({ isPaused }) => isPaused)) {
      world.violate('P5', `started although its queue ${queueName} was paused`, attempt.messageId);
    }
    const inFlight = running.filter(
      ({ message }) =>
        message.settings.queueName === queueName && !isOfDeletedQueue(world, queueName, births.get(message.id), atMs),
    );
    // Messages that were started under a higher parallelism may finish, including their retries, after it was lowered.
    const oldestMs = Math.min(atMs, ...inFlight.map(({ message }) => births.get(message.id)?.startAtMs ?? atMs));
    const parallelism = Math.max(...possibleValues(changes, oldestMs, atMs).map((queue) => queue.parallelism));
    if (inFlight.length > parallelism) {
      const text = `${inFlight.length} of ${parallelism} messages of queue ${queueName} in flight`;
      world.violate('P4', text, attempt.messageId);
    }
  }
}

function queueChanges({ ledger }: World, queueName: string): Change<{ parallelism: number; isPaused: boolean }>[] {
  const fresh = initially({ parallelism: 1, isPaused: false });
  const calls = ledger.queueCalls.filter((call) => call.queueName === queueName && call.wasDone !== false);
  // A pause does not change the parallelism.
  const parallelism = Math.max(...(PARALLELISMS_BY_QUEUE[queueName] ?? []));
  const changes = calls.flatMap((call) => {
    if (call.action === 'delete') return changeOf(call, fresh.value) ?? [];
    if (call.action === 'save') return changeOf(call, { parallelism: call.parallelism, isPaused: call.isPaused }) ?? [];
    return changeOf(call, { parallelism, isPaused: call.action === 'pause' }) ?? [];
  });
  return [fresh, ...changes];
}

/**
 * P5: with parallelism 1, first attempts follow the order of acceptance, and a started message blocks the queue until it and
 * its callbacks have ended.
 */
function checkOrder(evidence: Evidence): void {
  const { world, histories, finalState } = evidence;
  const births = acceptanceTimesOf(evidence);
  const sources = callbackSources(evidence);
  for (const [queueName, parallelisms] of Object.entries(PARALLELISMS_BY_QUEUE)) {
    const parallelism = Math.max(...parallelisms);
    /** Started, unfinished messages and their callbacks, each with the message whose lane permit it uses. */
    const open = new Map<MessageId, MessageId>();
    const started = new Set<MessageId>();
    const acceptedAt = new Map<MessageId, number>();
    let latestStarted = -1;
    for (const [index, { id, state }] of finalState.changes.entries()) {
      if (TERMINAL.has(state)) open.delete(id);
      const source = sources.get(id);
      if (source?.settings.queueName === queueName && state === 'CREATED') open.set(id, source.id);
      if (histories.get(id)?.message.settings.queueName !== queueName) continue;
      if (state === 'CREATED') acceptedAt.set(id, index);
      if (state !== 'ACTIVE') continue;
      open.set(id, id);
      const bornMs = births.get(id)?.endedAtMs ?? Infinity;
      const holders = new Set(open.values());
      for (const each of holders) {
        if (isOfDeletedQueue(world, queueName, births.get(each), bornMs)) holders.delete(each);
      }
      if (holders.size > parallelism) {
        const text = `${holders.size} messages of queue ${queueName} are started and unfinished`;
        world.violate(parallelism === 1 ? 'P5' : 'P4', text, id);
      }
      const at = acceptedAt.get(id) ?? -1;
      if (parallelism === 1 && !started.has(id) && at < latestStarted) {
        world.violate('P5', `started after one that queue ${queueName} had accepted later`, id);
      }
      started.add(id);
      latestStarted = Math.max(latestStarted, at);
    }
  }
}

/** The source message of each callback. A callback that was retried from the DLQ has no lane permit. */
function callbackSources({ world, histories, finalState }: Evidence): Map<MessageId, Message> {
  const revived = new Set(world.ledger.deadCalls.flatMap(({ ids }) => ids ?? []));
  const sources = new Map<MessageId, Message>();
  const seenBodies = new Set<string>();
  // Messages are not ordered by their keys, because several workers assign keys at the same time.
  const createdAt = new Map(finalState.changes.flatMap(({ id, state }, at) => (state === 'CREATED' ? [[id, at]] : [])));
  const atOf = ({ message }: History) => createdAt.get(message.id) ?? 0;
  const oldestFirst = [...histories.values()].toSorted((a, b) => atOf(a) - atOf(b));
  for (const { message } of oldestFirst) {
    if (!isCallback(message.body) || revived.has(message.id)) continue;
    const text = new TextDecoder().decode(message.body);
    const source = histories.get((JSON.parse(text) as { sourceMessageId: MessageId }).sourceMessageId);
    // A second message with the same body comes from a DLQ retry with an unknown outcome.
    if (source && !seenBodies.has(text)) sources.set(message.id, source.message);
    seenBodies.add(text);
  }
  return sources;
}

/** P5: the messages of one batch enter their queue in the order of the batch (contract M 14.10). */
function checkBatches({ world, finalState }: Evidence): void {
  const acceptedAt = new Map<MessageId, number>();
  for (const [index, { id, state }] of finalState.changes.entries()) if (state === 'CREATED') acceptedAt.set(id, index);
  for (const { items, result } of world.ledger.publishes) {
    if (result !== 'acked') continue;
    const enqueued = items.filter(({ command, deduplicated }) => command.options.settings.queueName && !deduplicated);
    for (const [index, { id = '' }] of enqueued.entries()) {
      const before = acceptedAt.get(enqueued[index - 1]?.id ?? '') ?? -1;
      if ((acceptedAt.get(id) ?? Infinity) < before) world.violate('P5', 'was enqueued before one ahead of it', id);
    }
  }
}

const TERMINAL: ReadonlySet<string> = new Set(['DELIVERED', 'FAILED', 'CANCELED']);

/** P2: no message of a deleted queue starts after the deletion was confirmed. */
function checkDeletions(evidence: Evidence): void {
  const { world, attemptsById, histories } = evidence;
  const births = acceptanceTimesOf(evidence);
  for (const { action, queueName, result, startAtMs, endedAtMs } of world.ledger.queueCalls) {
    if (action !== 'delete' || result !== 'acked') continue;
    for (const { message } of histories.values()) {
      if (message.settings.queueName !== queueName || (births.get(message.id)?.endedAtMs ?? Infinity) >= startAtMs)
        continue;
      const late = attemptsById.get(message.id)?.find((attempt) => (world.startOf.get(attempt)?.atMs ?? 0) > endedAtMs);
      if (late) world.violate('P2', 'sent after its queue was deleted', message.id);
    }
  }
}

interface AcceptanceTime {
  startAtMs: Millis;
  endedAtMs: Millis;
}

/** The time at which each message was accepted, as precisely as the client of the message knows. */
function acceptanceTimesOf({ world, histories }: Evidence): Map<MessageId, AcceptanceTime> {
  const births = new Map<MessageId, AcceptanceTime>();
  const callByRef = new Map(
    world.ledger.publishes.flatMap((call) => call.items.map(({ ref }) => [ref, call] as const)),
  );
  const published = new Set(world.ledger.publishes.flatMap(({ items }) => items.flatMap(({ id }) => id ?? [])));
  const revivals = new Map(world.ledger.deadCalls.flatMap((call) => (call.ids ?? []).map((id) => [id, call] as const)));
  const triggers = triggersByMessage(world.ledger);
  const createdByRef = new Map(
    world.ledger.scheduleCalls.flatMap((call) => (call.action === 'create' ? [[call.ref, call] as const] : [])),
  );
  for (const { message } of histories.values()) {
    const trigger = triggers.get(message.id);
    if (trigger) {
      births.set(message.id, trigger);
      continue;
    }
    const call =
      revivals.get(message.id) ?? callByRef.get(refOf(message.body)) ?? createdByRef.get(refOf(message.body));
    // A retry with an unknown outcome may have been saved at any later time.
    const isKnown = revivals.has(message.id) || published.has(message.id);
    if (call) births.set(message.id, { startAtMs: call.startAtMs, endedAtMs: isKnown ? call.endedAtMs : Infinity });
  }
  return births;
}

/**
 * Whether the queue may have been deleted after the message was accepted, so that the message belongs to the deleted
 * queue.
 */
function isOfDeletedQueue(
  { ledger }: World,
  queueName: string,
  birth: AcceptanceTime | undefined,
  atMs: Millis,
): boolean {
  if (!birth) return true;
  return ledger.queueCalls.some(
    (call) =>
      call.action === 'delete' &&
      call.queueName === queueName &&
      call.result !== 'rejected' &&
      call.startAtMs <= atMs &&
      call.endedAtMs >= birth.startAtMs,
  );
}

function claimedOf({ attempt, running }: AttemptStart): Claimed | undefined {
  return running.find(({ claimToken }) => claimToken === attempt.claimToken);
}
