/** How do the rows of lanes read in the engine's words? */
import type { Accepted, Saved } from '../engine/accepted.ts';
import { type FlowKey, isWindowOpen, type Queue } from '../engine/lanes.ts';
import type { Claimed, Millis } from '../engine/model.ts';
import type { LiveMessage } from '../engine/stores.ts';
import type { AcceptedAs, SavedAs } from './sql/accept.ts';
import type { ClaimedRow } from './sql/claim.ts';
import type { LiveRow, LiveRows } from './sql/find.ts';
import type { FlowKeyView } from './sql/lanes/flow-commands.ts';
import { LINE } from './sql/lanes/lines.ts';
import type { QueueRow } from './sql/lanes/queue-commands.ts';
import { decodeMessage } from './sql/rows.ts';

export function decodeAccepted(as: AcceptedAs): Accepted {
  if (as === 'tooManyQueues' || as === 'runOver' || as === 'runChanged') return { kind: as };
  if (typeof as === 'string') return { kind: 'accepted', standing: as };
  if ('standing' in as) return { kind: 'accepted', ...as };
  if ('runTooEarly' in as) return { kind: 'runTooEarly', latestMs: as.runTooEarly };
  if ('journalFull' in as) return { kind: 'journalFull', limit: as.journalFull };
  if ('tooManyInvokers' in as) return { kind: 'tooManyInvokers', limit: as.tooManyInvokers };
  if ('limit' in as) return { kind: 'overDayLimit', ...as };
  const { messageId, run } = as.duplicateOf;
  return { kind: 'duplicate', messageId, ...(run && { run }) };
}

export function decodeSaved(as: SavedAs): Saved {
  return typeof as === 'string' ? { standing: as } : as;
}

export function decodeClaimed(row: ClaimedRow): Claimed {
  const claimed: Claimed = {
    message: decodeMessage(row),
    retried: row.retried,
    claimToken: row.claim_token,
    claimedAtMs: row.claimed_at_ms,
  };
  if (row.queue_id === null && row.flow_key === null && row.run_key === null) claimed.isAlone = true;
  if (row.journal_position !== null) claimed.journal = { position: row.journal_position, bytes: row.bytes };
  return claimed;
}

export function decodeQueue(row: QueueRow): Queue {
  return {
    name: row.name,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    parallelism: row.parallelism,
    isPaused: row.paused === 1,
    lag: row.lag,
  };
}

export function decodeFlowKey(row: FlowKeyView, nowMs: Millis): FlowKey {
  const { rate, period_s: periodS, window_started_at_ms: startedAtMs, window_count: count } = row;
  const key: FlowKey = {
    key: row.key,
    waitListSize: row.wait_list_size,
    inFlight: row.in_flight,
    periodS,
    rateCount: isWindowOpen({ rate, periodS, startedAtMs, count }, nowMs) ? count : 0,
    isPaused: row.paused === 1,
    isParallelismPinned: row.parallelism_pinned === 1,
    isRatePinned: row.rate_pinned === 1,
  };
  if (row.parallelism !== null) key.parallelism = row.parallelism;
  if (rate !== null) key.rate = rate;
  if (startedAtMs !== null) key.periodStartedAtMs = startedAtMs;
  return key;
}

export function decodeLive(rows: LiveRows, nowMs: Millis): LiveMessage {
  const { message } = rows;
  return {
    message: decodeMessage(message),
    retried: message.retried,
    standing: standingOf(message, rows, nowMs),
    cancelRequested: message.cancel_requested_at_ms !== null,
  };
}

function standingOf(message: LiveRow, { queue, key }: LiveRows, nowMs: Millis): LiveMessage['standing'] {
  const { due_at_ms: dueAtMs, claimed_at_ms: claimedAtMs } = message;
  if (claimedAtMs !== null) return { kind: 'claimed', claimedAtMs };
  if (queue) {
    const { paused, ahead, parallelism } = queue;
    return {
      kind: 'queue',
      dueAtMs,
      isPaused: paused === 1,
      hasSlot: message.queue_slot !== null,
      ahead,
      parallelism,
    };
  }
  if (key) return { kind: 'flow', dueAtMs, key: decodeFlowKey(key, nowMs) };
  if (message.line === LINE.origin) return { kind: 'origin', dueAtMs };
  return { kind: message.line === LINE.project ? 'project' : 'due', dueAtMs };
}
