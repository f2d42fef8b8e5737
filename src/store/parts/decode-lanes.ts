/** How do the rows of lanes become values of the engine? */
import type { ClaimedDue } from '../../engine/messages/claims.ts';
import type { Millis } from '../../engine/model.ts';
import type { LiveMessage, UnfinishedMessage } from '../../engine/unfinished.ts';
import { decodeFlowKey, decodeFlowState } from '../operations/lanes/flow-commands.ts';
import { LINE } from '../operations/lanes/lines.ts';
import { decodeBlocker } from '../operations/lanes/queue-blocker.ts';
import type { ClaimedRow } from '../operations/messages/claimed-rows.ts';
import type { LiveRow, LiveRows } from '../operations/messages/find.ts';
import { decodeMessage } from '../operations/messages/rows.ts';
import type { UnfinishedRows } from '../operations/messages/unfinished.ts';

export function decodeClaimed(row: ClaimedRow): ClaimedDue {
  const claimed: ClaimedDue = {
    message: decodeMessage(row),
    retried: row.retried,
    claimToken: row.claim_token,
    claimedAtMs: row.claimed_at_ms,
    dueAtMs: row.due_at_ms,
  };
  if (row.queue_id === null && row.flow_key === null && row.run_key === null) claimed.isAlone = true;
  if (row.parkings !== null) claimed.parkings = row.parkings;
  if (row.journal_position !== null) claimed.journal = { position: row.journal_position, bytes: row.bytes };
  return claimed;
}

/** Each row with its queue or its key, whichever it waits for. */
export function decodeUnfinished({ rows, queues, keys }: UnfinishedRows, nowMs: Millis): UnfinishedMessage[] {
  const queueById = new Map(queues.map((queue) => [queue.id, queue]));
  const keyByName = new Map(keys.map((key) => [key.key, key]));
  return rows.map((message) => {
    const { line, queue_id, flow_key, standing, bytes } = message;
    const queue = line === LINE.queue ? queueById.get(queue_id ?? -1) : undefined;
    const key = line === LINE.flow ? keyByName.get(flow_key ?? '') : undefined;
    const live = decodeLive({ message, ...(queue && { queue }), ...(key && { key }) }, nowMs);
    return { ...live, standing, bodyBytes: bytes };
  });
}

export function decodeLive(rows: LiveRows, nowMs: Millis): LiveMessage {
  const { message } = rows;
  return {
    message: decodeMessage(message),
    retried: message.retried,
    state: stateOf(message, rows, nowMs),
    cancelRequested: message.cancel_requested_at_ms !== null,
    ...(message.parkings && { isParked: true }),
  };
}

function stateOf(message: LiveRow, { queue, key }: Partial<LiveRows>, nowMs: Millis): LiveMessage['state'] {
  const { due_at_ms: dueAtMs, claimed_at_ms: claimedAtMs } = message;
  if (claimedAtMs !== null) return { kind: 'claimed', claimedAtMs };
  if (queue) {
    const { paused, ahead, parallelism, blocker_id = null, blocked_until_ms = null } = queue;
    return {
      kind: 'queue',
      dueAtMs,
      isPaused: paused === 1,
      hasSlot: message.queue_slot !== null,
      ...(ahead !== undefined && { ahead }),
      parallelism,
      ...decodeBlocker({ blocker_id, blocked_until_ms }),
    };
  }
  if (key)
    return {
      kind: 'flow',
      dueAtMs,
      key: 'wait_list_size' in key ? decodeFlowKey(key, nowMs) : decodeFlowState(key, nowMs),
    };
  if (message.line === LINE.origin) return { kind: 'origin', dueAtMs };
  return { kind: message.line === LINE.project ? 'project' : 'due', dueAtMs };
}
