/**
 * Continues a call whose checkpoint says that it has no step in progress (contract K 3.9 to 3.12). Failed steps are saved
 * first. Then the call is idle, with its slot and no message, until this worker claims a message of the run.
 */
import type { EngineContext } from '../context.ts';
import type { Dispatcher } from '../dispatch/dispatcher.ts';
import type { Claimed, Millis } from '../model.ts';
import { StoreUnavailable } from '../store-errors.ts';
import type { Call, CheckpointInCall } from './calls.ts';
import { asCallMessage } from './checkpoint-slots.ts';
import type { CheckpointCommand, FailedMessage, Handover } from './commands.ts';

/** Continues the call after a checkpoint. Returns its `next` message, or undefined if the call does not wait for one. */
export async function continueCall(
  context: EngineContext,
  command: CheckpointCommand,
  inCall: CheckpointInCall,
): Promise<{ next: Promise<Handover | undefined> } | undefined> {
  const { dispatcher, clock } = context;
  const { lingerMs, hangUp, failed = [] } = command;
  const { call, claimedForIdleCall } = inCall;
  const dueAtMs = await saveFailed(context, failed, inCall);
  if (lingerMs === undefined) return undefined;
  const [first, ...others] = claimedForIdleCall;
  for (const each of others) dispatcher.start(each);
  if (first) return { next: handOver(context, first, inCall) };
  const isRetryTooLate = failed.length > 0 && dueAtMs > clock.nowMs() + lingerMs;
  if (isRetryTooLate || (await hasRunEnded(context, call)) || !call.isEmpty || !keepsSlot(context, call))
    return undefined;
  const nextClaim = dispatcher.waitIdle(call, lingerMs, hangUp);
  return { next: nextClaim.then((next) => next && handOver(context, next, inCall)) };
}

/** Saves failed attempts. Returns the time of the earliest retry, or `Infinity` when there is none. */
async function saveFailed(
  { dispatcher, clock }: EngineContext,
  failed: readonly FailedMessage[],
  { call, failed: messages }: CheckpointInCall,
): Promise<Millis> {
  let firstAtMs = Number.POSITIVE_INFINITY;
  for (const [index, { claimed, sinceMs }] of messages.entries()) {
    const outcome = failed[index]?.outcome;
    if (!outcome) continue;
    claimed.durationMs = clock.elapsedMs - sinceMs;
    const dueAtMs = await dispatcher.attempts.fail(claimed, outcome);
    if (dueAtMs !== undefined) firstAtMs = Math.min(firstAtMs, dueAtMs);
    if (call.isEmpty && !call.idleSlotClaim) {
      dispatcher.activeClaims.rest(claimed.claimToken);
      call.idleSlotClaim = claimed;
    } else {
      dispatcher.giveBack(claimed.claimToken);
    }
  }
  return firstAtMs;
}

/**
 * Whether the run ended on this worker while the checkpoint was saved: then no later event would end an idle call.
 * Returns true also if the store cannot be read, because an error would hide that the checkpoint is saved.
 */
async function hasRunEnded({ active }: EngineContext, { run }: Call): Promise<boolean> {
  if (run === undefined) return false;
  try {
    return (await active.find(run.projectId, run.id)).run?.key !== run.key;
  } catch (error) {
    if (error instanceof StoreUnavailable) return true;
    throw error;
  }
}

function keepsSlot({ dispatcher }: EngineContext, call: Call): boolean {
  if (!call.idleSlotClaim && dispatcher.tryKeepIdle(call.first)) call.idleSlotClaim = call.first;
  return call.idleSlotClaim !== undefined;
}

async function handOver(
  { dispatcher, clock }: EngineContext,
  claimed: Claimed,
  { call, add }: CheckpointInCall,
): Promise<Handover | undefined> {
  add({ claimed: asCallMessage(claimed, dispatcher), sinceMs: clock.elapsedMs });
  if (call.idleSlotClaim) dispatcher.giveBack(call.idleSlotClaim.claimToken);
  call.idleSlotClaim = undefined;
  const content = await contentFor(dispatcher, claimed, call);
  if (!content) return undefined;
  const { message, retried, claimToken } = claimed;
  return { messageId: message.id, key: message.key, claimToken, retried, content };
}

async function contentFor(
  dispatcher: Dispatcher,
  claimed: Claimed,
  call: Call,
): Promise<Handover['content'] | undefined> {
  const { message, journal } = claimed;
  if (message.settings.run?.callType === 'fromCallback') {
    const { header, body } = message;
    return journal?.bytes === 0 ? { kind: 'nothing', header } : { kind: 'callResult', header, body };
  }
  const after = call.noteJournalSent(journal?.position ?? -1);
  const entries = await dispatcher.attempts.entriesFor(claimed, after);
  if (entries === 'stopped') return undefined;
  return entries ? { kind: 'journal', entries } : { kind: 'nothing' };
}
