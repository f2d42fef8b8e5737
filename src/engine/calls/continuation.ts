/**
 * Continues a call whose checkpoint says that it has no step in progress (contract K 3.9 to 3.12). Failed steps are
 * saved first. Then the call is idle, with its slot and no message, until a message of its run is claimed here.
 */
import type { EngineContext } from '../context.ts';
import type { Dispatcher } from '../dispatch/dispatcher.ts';
import type { Claimed, Millis } from '../model.ts';
import { StoreUnavailable } from '../store-errors.ts';
import type { Around, Call } from './calls.ts';
import type { CheckpointCommand, Failed, Handover } from './commands.ts';
import { heldOf } from './places.ts';

/** The next message of the call, after the checkpoint is saved. `undefined`: the call does not wait for one. */
export async function nextAfter(
  context: EngineContext,
  command: CheckpointCommand,
  around: Around,
): Promise<{ comes: Promise<Handover | undefined> } | undefined> {
  const { dispatcher, clock } = context;
  const { lingerMs, hangUp, failed = [] } = command;
  const { call, arrivals } = around;
  const dueAtMs = await saveFailed(context, failed, around);
  if (lingerMs === undefined) return undefined;
  const [first, ...others] = arrivals;
  for (const each of others) dispatcher.start(each);
  if (first) return { comes: handOver(context, first, around) };
  const isInVain = failed.length > 0 && dueAtMs > clock.nowMs() + lingerMs;
  if (isInVain || (await isOver(context, call)) || !call.isEmpty || !hasSlot(context, call)) return undefined;
  const staying = dispatcher.linger(call, lingerMs, hangUp);
  return { comes: staying.then((next) => next && handOver(context, next, around)) };
}

/** Saves failed attempts. Returns the time of the earliest retry, or `Infinity` when there is none. */
async function saveFailed(
  { dispatcher, clock }: EngineContext,
  failed: readonly Failed[],
  { call, failed: held }: Around,
): Promise<Millis> {
  let firstAtMs = Number.POSITIVE_INFINITY;
  for (const [index, { claimed, sinceMs }] of held.entries()) {
    const outcome = failed[index]?.outcome;
    if (!outcome) continue;
    claimed.durationMs = clock.elapsedMs - sinceMs;
    const dueAtMs = await dispatcher.attempts.fail(claimed, outcome);
    if (dueAtMs !== undefined) firstAtMs = Math.min(firstAtMs, dueAtMs);
    if (call.isEmpty && !call.rest) {
      dispatcher.activeClaims.rest(claimed.claimToken);
      call.rest = claimed;
    } else {
      dispatcher.giveBack(claimed.claimToken);
    }
  }
  return firstAtMs;
}

/**
 * Whether the run ended on this worker while the checkpoint was saved: then nothing would end the idle call. Also true when the
 * store cannot be read: the checkpoint itself is already saved.
 */
async function isOver({ active }: EngineContext, { run }: Call): Promise<boolean> {
  if (run === undefined) return false;
  try {
    return (await active.find(run.projectId, run.id)).run?.key !== run.key;
  } catch (error) {
    if (error instanceof StoreUnavailable) return true;
    throw error;
  }
}

function hasSlot({ dispatcher }: EngineContext, call: Call): boolean {
  if (!call.rest && dispatcher.tryRest(call.first)) call.rest = call.first;
  return call.rest !== undefined;
}

async function handOver(
  { dispatcher, clock }: EngineContext,
  claimed: Claimed,
  { call, hold }: Around,
): Promise<Handover | undefined> {
  hold({ claimed: heldOf(claimed, dispatcher), sinceMs: clock.elapsedMs });
  if (call.rest) dispatcher.giveBack(call.rest.claimToken);
  call.rest = undefined;
  const brings = await broughtBy(dispatcher, claimed, call);
  if (!brings) return undefined;
  const { message, retried, claimToken } = claimed;
  return { messageId: message.id, key: message.key, claimToken, retried, brings };
}

async function broughtBy(
  dispatcher: Dispatcher,
  claimed: Claimed,
  call: Call,
): Promise<Handover['brings'] | undefined> {
  const { message, journal } = claimed;
  if (message.settings.run?.callType === 'fromCallback') {
    const { header, body } = message;
    return journal?.bytes === 0 ? { kind: 'nothing', header } : { kind: 'callResult', header, body };
  }
  const after = call.tell(journal?.position ?? -1);
  const entries = await dispatcher.attempts.entriesFor(claimed, after);
  if (entries === 'stopped') return undefined;
  return entries ? { kind: 'journal', entries } : { kind: 'nothing' };
}
