/** How do the rows of lanes become values of the engine? */
import type { Claimed, Millis } from '../../engine/model.ts';
import type { LiveMessage } from '../../engine/stores.ts';
import { decodeFlowKey } from '../operations/lanes/flow-commands.ts';
import { LINE } from '../operations/lanes/lines.ts';
import type { ClaimedRow } from '../operations/messages/claim.ts';
import type { LiveRow, LiveRows } from '../operations/messages/find.ts';
import { decodeMessage } from '../operations/messages/rows.ts';

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
    state: stateOf(message, rows, nowMs),
    cancelRequested: message.cancel_requested_at_ms !== null,
  };
}

function stateOf(message: LiveRow, { queue, key }: LiveRows, nowMs: Millis): LiveMessage['state'] {
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
