/** How do the rows of lanes read in the engine's words? */
import type { Accepted, Saved } from '../engine/accepted.ts';
import type { Claimed, Millis } from '../engine/model.ts';
import type { LiveMessage } from '../engine/stores.ts';
import type { AcceptedAs, SavedAs } from './sql/accept.ts';
import type { ClaimedRow } from './sql/claim.ts';
import type { LiveRow, LiveRows } from './sql/find.ts';
import { decodeFlowKey } from './sql/lanes/flow-commands.ts';
import { LINE } from './sql/lanes/lines.ts';
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
      kind: 'queued',
      dueAtMs,
      isPaused: paused === 1,
      hasSlot: message.queue_slot !== null,
      ahead,
      parallelism,
    };
  }
  if (key) return { kind: 'listed', dueAtMs, key: decodeFlowKey(key, nowMs) };
  if (message.line === LINE.origin) return { kind: 'parked', dueAtMs };
  return { kind: message.line === LINE.project ? 'held' : 'waiting', dueAtMs };
}
