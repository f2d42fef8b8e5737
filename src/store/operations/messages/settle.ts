/** Saves the outcome of an attempt, provided that the attempt still owns its message. */
import type { Saved } from '../../../engine/messages/accepted.ts';
import type { Settlement } from '../../../engine/model.ts';
import type { OperatorEventKind } from '../../../engine/operator-events/kinds.ts';
import type { OperatorFact } from '../../../engine/operator-events/model.ts';
import type { Handoff, Settled } from '../../../engine/stores.ts';
import { dlqIdOf } from '../../../protocol/cursor.ts';
import type { SqlValue } from '../../driver.ts';
import { type ClaimedRow, decodeClaimed } from '../claims/claimed-rows.ts';
import { flowRefsOf } from '../lanes/flow-lanes.ts';
import { type FreedSlot, handOffAll } from '../lanes/handoff.ts';
import { type QueueRef, queuesById } from '../lanes/queue-lanes.ts';
import { releaseNext } from '../lanes/release-next.ts';
import { WAIT_STATE, waitStateBehindQueue } from '../lanes/wait-states.ts';
import { lastEventTimes, type MessageEvents, type WriteContext } from '../logs/log-writer.ts';
import { merged } from '../operation.ts';
import { insertFacts } from '../reports/operator-events.ts';
import { checkEndings, writeEndings } from '../runs/end.ts';
import { LastSteps } from '../runs/last-steps.ts';
import { insertMessages } from './accept.ts';
import { ENDING_FIELDS, type EndingRow } from './cancel.ts';
import { MESSAGE_AT, type MessageRow, type NewMessageRow } from './columns.ts';
import {
  bytesOf,
  DEAD_LETTER_COLUMNS,
  encodeSettlement,
  projectsSharedBy,
  type StoredChange,
  type StoredEvent,
  type StoredNewMessage,
  type StoredSettlement,
  weightOf,
} from './rows.ts';

export interface SettleArgs<S = StoredSettlement> {
  settlement: S;
  nowMs: number;
  handoff?: Handoff | undefined;
}

export type OwnerRow = EndingRow & Pick<MessageRow, 'origin' | 'claimed_at_ms'>;

/** A settlement whose attempt still owns its message. */
export interface OwnedSettlement {
  args: SettleArgs;
  owner: OwnerRow;
  change: StoredChange;
}

/**
 * Saves the outcome of an attempt with the messages that follow, and frees the lane permits of the message. Does nothing
 * if the claim token is outdated. The next message may take over the slot that `handoff` offers.
 */
export const settle = merged(
  {
    weight: ({ settlement: { change } }) => {
      const { rows, bytes } = weightOf(newMessagesOf(change));
      return { rows: 1 + rows, bytes: bytes + responseBytes(change.events) };
    },
    touches: ({ settlement: { key, projectId, isAlone, change, changeIfCancelRequested } }, limits) => ({
      messages: isAlone && limits.parallelismMax === 0 ? [] : [key],
      projects: projectsSharedBy([...newMessagesOf(change), ...newMessagesOf(changeIfCancelRequested)], limits),
      writes: [projectId],
    }),
  },
  async (context: WriteContext, commands: readonly SettleArgs[]): Promise<Settled<ClaimedRow>[]> => {
    const nowMs = Math.max(...commands.map((command) => command.nowMs));
    const savedByCommand = await findOwned(context, commands);
    const lastSteps = await LastSteps.load(context, [...savedByCommand.values()]);
    const refused = await refuseEndings(context, savedByCommand, lastSteps);
    const saved = [...savedByCommand.values()];
    await saveSettlements(context, saved);
    await lastSteps?.save(saved);
    const isMoreLeft = await endRunsOf(context, saved, nowMs);
    const followsByCommand = await insertFollows(context, saved, nowMs);
    const nextByCommand = await releaseNextOf(context, saved, nowMs);
    return commands.map((command) => {
      const refusal = refused.get(command);
      if (refusal) return { kind: refusal };
      const done = savedByCommand.get(command);
      if (!done) return { kind: 'stale' };
      const next = nextByCommand.get(command);
      const follows = followsByCommand.get(command);
      const isCancelled = done.change !== command.settlement.change;
      return {
        kind: 'saved',
        ...(next && { next }),
        ...(follows && { follows }),
        ...(isCancelled && { isCancelled }),
        ...(isMoreLeft && done.change.ending && { isMoreLeft }),
      };
    });
  },
  (given: SettleArgs<Settlement>) => ({ ...given, settlement: encodeSettlement(given.settlement) }),
  (result): Settled => {
    if (result.kind !== 'saved') return result;
    const { next, ...settled } = result;
    return next ? { ...settled, next: decodeClaimed(next) } : settled;
  },
);

function newMessagesOf(change: StoredChange | undefined): StoredNewMessage[] {
  return [...(change?.follows ?? []), ...(change?.lastStep ? [change.lastStep] : [])];
}

/** The endpoint's response is the last value of an event's detail; a dead letter refers to the same bytes. */
function responseBytes(events: readonly StoredEvent[]): number {
  return events.reduce((sum, [, , detail]) => sum + bytesOf(detail?.at(-1)), 0);
}

export async function findOwned(
  { tx }: WriteContext,
  commands: readonly SettleArgs[],
): Promise<Map<SettleArgs, OwnedSettlement>> {
  const rows = await tx.query<OwnerRow>(
    `select ${ENDING_FIELDS}, m.origin, m.claimed_at_ms from messages m where key in (??) order by key for update`,
    [commands.map(({ settlement }) => settlement.key)],
  );
  const owners = new Map(rows.map((row) => [row.key, row]));
  const owned = new Map<SettleArgs, OwnedSettlement>();
  for (const args of commands) {
    const { key, projectId, claimToken, change, changeIfCancelRequested } = args.settlement;
    const owner = owners.get(key);
    if (!owner || owner.project_id !== projectId || owner.claim_token !== claimToken) continue;
    owners.delete(key); // the same result sent twice in one batch is stale the second time
    const isCancelled = owner.cancel_requested_at_ms !== null;
    owned.set(args, { args, owner, change: isCancelled ? (changeIfCancelRequested ?? change) : change });
  }
  return owned;
}

/**
 * Removes the settlements that would end a run which has changed since the settlement was decided, or whose last step
 * already has another result in the journal (P8). Returns the commands of these settlements.
 */
async function refuseEndings(
  { tx }: WriteContext,
  savedByCommand: Map<SettleArgs, OwnedSettlement>,
  lastSteps: LastSteps | undefined,
): Promise<ReadonlyMap<SettleArgs, 'runChanged' | 'stepTaken'>> {
  const refused = new Map<SettleArgs, 'runChanged' | 'stepTaken'>();
  const endings = [...savedByCommand.values()].flatMap(({ change }) => (change.ending ? [change.ending] : []));
  if (endings.length === 0) return refused;
  const verdicts = await checkEndings(tx, endings);
  for (const [command, { change }] of savedByCommand) {
    if (!change.ending) continue;
    const isCurrent = verdicts.get(change.ending) === 'ended';
    if (isCurrent && !lastSteps?.isTaken(change)) continue;
    refused.set(command, isCurrent ? 'stepTaken' : 'runChanged');
    savedByCommand.delete(command);
  }
  return refused;
}

/**
 * Ends the runs of which a message is dead or has returned the result; saves the results of failure callbacks. Returns
 * whether there are more messages to cancel, like `writeEndings`.
 */
async function endRunsOf(context: WriteContext, saved: readonly OwnedSettlement[], nowMs: number): Promise<boolean> {
  const endings = saved.flatMap(({ owner, change }) =>
    change.ending ? [{ ending: change.ending, deadKey: change.deadLetter ? owner.key : null }] : [],
  );
  const isMoreLeft = await writeEndings(context, endings, nowMs);
  const failureStates = saved.flatMap(({ owner, change }): SqlValue[][] =>
    change.failureState === undefined ? [] : [[owner.run_key, change.failureState]],
  );
  await context.tx.updateMany('runs', 'key', ['failure_state'], failureStates);
  return isMoreLeft;
}

export async function saveSettlements(context: WriteContext, saved: readonly OwnedSettlement[]): Promise<void> {
  const { tx, logs, due } = context;
  const pausedQueues = await pausedQueuesOf(
    tx,
    saved.filter(({ change }) => change.waiting).map(({ owner }) => owner),
  );
  const floors = await cancelTimes(context, saved);
  const finished: number[] = [];
  const waiting: SqlValue[][] = [];
  const dead: SqlValue[][] = [];
  const facts: OperatorFact[] = [];
  const events: MessageEvents[] = [];
  for (const { owner, change } of saved) {
    const { key, project_id: projectId } = owner;
    if (change.waiting) {
      const { dueAtMs, retried, parkings } = change.waiting;
      const waitState = nextWaitState(owner, pausedQueues);
      waiting.push([key, dueAtMs, retried, parkings, null, null, null, waitState]);
      if (waitState === WAIT_STATE.due) due.noteForOthers(dueAtMs);
    } else {
      finished.push(key);
    }
    if (change.deadLetter) dead.push([projectId, key, owner.run_key, ...change.deadLetter]);
    if (change.deadLetter && change.operatorEventKind)
      facts.push(factOf(owner, change.operatorEventKind, change.deadLetter));
    const floorMs = Math.max(owner.claimed_at_ms ?? 0, floors.get(key) ?? 0);
    events.push({ projectId, key, runKey: owner.run_key, events: change.events, floorMs });
  }
  if (finished.length > 0) await tx.send('delete from messages where key in (??)', [finished]);
  await tx.updateMany(
    'messages',
    'key',
    ['due_at_ms', 'retried', 'parkings', 'claimed_at_ms', 'claim_token', 'worker', 'wait_state'],
    waiting,
  );
  await tx.insertMany('dead', ['project_id', 'key', 'run_key', ...DEAD_LETTER_COLUMNS], dead);
  if (facts.length > 0) await insertFacts(tx, facts);
  await logs.append(tx, events);
}

function factOf(
  { key, project_id: projectId }: OwnerRow,
  kind: OperatorEventKind,
  deadLetter: readonly SqlValue[],
): OperatorFact {
  const failedAtMs = Number(deadLetter[DEAD_LETTER_COLUMNS.indexOf('failed_at_ms')]);
  return { key, kind, projectId, atMs: failedAtMs, example: dlqIdOf(failedAtMs, key) };
}

/**
 * The earliest time for the events of messages that were marked for cancellation, maybe by another worker. All other
 * events of a claimed message were written by this worker.
 */
async function cancelTimes(
  context: WriteContext,
  saved: readonly OwnedSettlement[],
): Promise<ReadonlyMap<number, number>> {
  const cancelled = saved.filter(({ owner }) => owner.cancel_requested_at_ms !== null);
  if (cancelled.length === 0) return new Map();
  return lastEventTimes(
    context,
    cancelled.map(({ owner }) => owner.key),
  );
}

/** The ids of those queues of `owners` that are paused. */
export async function pausedQueuesOf(
  tx: WriteContext['tx'],
  owners: readonly Pick<OwnerRow, 'project_id' | 'queue_id'>[],
): Promise<ReadonlySet<number>> {
  const refs = owners.flatMap(queueRefOf);
  if (refs.length === 0) return new Set();
  const queues = await queuesById(tx, refs);
  return new Set([...queues.values()].filter(({ paused }) => paused === 1).map(({ id }) => id));
}

/** The wait state of a message after a claim. In a paused queue, a message with a permit waits for the queue. */
export function nextWaitState(
  { key, queue_id, queue_permit, flow_key }: Pick<OwnerRow, 'key' | 'queue_id' | 'queue_permit' | 'flow_key'>,
  pausedQueues: ReadonlySet<number>,
): number {
  const isPaused = queue_id !== null && queue_permit === key && pausedQueues.has(queue_id);
  return isPaused ? WAIT_STATE.queue : waitStateBehindQueue(flow_key);
}

/**
 * Saves the messages that follow from outcomes, like published messages. Messages that follow from a message of a queue
 * share its permit: the next message of the queue starts when all of them have ended. If a cancel has replaced a change,
 * the messages of that change are not saved.
 */
async function insertFollows(
  context: WriteContext,
  saved: readonly OwnedSettlement[],
  nowMs: number,
): Promise<ReadonlyMap<SettleArgs, Saved[]>> {
  const savedByCommand = new Map<SettleArgs, Saved[]>();
  const newFollows = saved.flatMap(({ args, owner, change }) =>
    (change.follows ?? []).map((message) => ({ args, message: withPermitOf(owner, message) })),
  );
  if (newFollows.length === 0) return savedByCommand;
  const savedFollows = await insertMessages(
    context,
    newFollows.map(({ message }) => message),
    nowMs,
  );
  for (const [index, { args }] of newFollows.entries()) {
    const state = savedFollows[index];
    if (state === undefined) throw new Error('a message that follows was not saved');
    savedByCommand.set(args, [...(savedByCommand.get(args) ?? []), state]);
  }
  return savedByCommand;
}

/** Lets `follow` share the message's own permit, if there is one: a callback has the permit of another message. */
export function withPermitOf({ key, queue_id, queue_permit }: OwnerRow, follow: StoredNewMessage): StoredNewMessage {
  if (queue_permit !== key) return follow;
  const message: NewMessageRow = [...follow.message];
  message[MESSAGE_AT.queue_id] = queue_id;
  message[MESSAGE_AT.queue_permit] = queue_permit;
  return { ...follow, message };
}

export async function releaseNextOf(
  context: WriteContext,
  saved: readonly OwnedSettlement[],
  nowMs: number,
): Promise<ReadonlyMap<SettleArgs, ClaimedRow>> {
  const nextByCommand = new Map<SettleArgs, ClaimedRow>();
  const isLimited = context.limits.parallelismMax > 0;
  const inLanes = isLimited ? saved : saved.filter(({ owner }) => owner.queue_id !== null || owner.flow_key !== null);
  if (inLanes.length === 0) return nextByCommand;
  const freed = {
    queues: inLanes.filter(({ change }) => !change.waiting).flatMap(({ owner }) => queueRefOf(owner)),
    flowKeys: flowRefsOf(inLanes.map(({ owner }) => owner)),
    projects: new Set(inLanes.map(({ owner }) => owner.project_id)),
  };
  await releaseNext(context, freed, nowMs, async (released) => {
    const freedSlots = inLanes.flatMap(({ args, owner }) => freedSlotOf(args, owner));
    if (freedSlots.length === 0) return new Set();
    await released.gate.load(freed.projects);
    const worker = freedSlots[0]?.worker ?? '';
    const nextOfSlots = await handOffAll(context, freedSlots, released, { worker, nowMs });
    for (const [index, { command }] of freedSlots.entries()) {
      const next = nextOfSlots[index];
      if (next) nextByCommand.set(command, next);
    }
    return new Set(nextOfSlots.flatMap((next) => (next ? [next.key] : [])));
  });
  return nextByCommand;
}

function freedSlotOf(args: SettleArgs, owner: OwnerRow): (FreedSlot & { command: SettleArgs; worker: string })[] {
  if (!args.handoff) return [];
  const { worker, claimToken, bytesMax } = args.handoff;
  const { project_id: projectId, origin, queue_id: queueId, flow_key: flowKey } = owner;
  return [{ command: args, worker, projectId, origin, bytesMax, claimToken, queueId, flowKey }];
}

function queueRefOf({ project_id, queue_id }: Pick<OwnerRow, 'project_id' | 'queue_id'>): QueueRef[] {
  return queue_id === null ? [] : [{ projectId: project_id, queueId: queue_id }];
}
