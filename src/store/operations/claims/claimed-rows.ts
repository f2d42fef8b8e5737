/** Saves the claims of messages, and reads the claimed messages to deliver. */
import type { ClaimedDue } from '../../../engine/dispatch/claims.ts';
import type { SqlValue } from '../../driver.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';
import { lastEventTimes, type WriteContext } from '../logs/log-writer.ts';
import type { MessageRow } from '../messages/columns.ts';
import { CONTENT_FIELDS, type ContentRow, codeOfLogState, decodeMessage } from '../messages/rows.ts';

type ReadWithContent = 'queue_id' | 'flow_key' | 'run_key' | 'journal_position' | 'bytes' | 'retried' | 'parkings';

export interface ClaimedRow extends ContentRow, Pick<MessageRow, ReadWithContent> {
  claim_token: number;
  claimed_at_ms: number;
  due_at_ms: number;
}

/** The body is left out if the endpoint fetches the body later: then `bytes` is 0, so no limit would count its memory. */
const CLAIMED_CONTENT_FIELDS = CONTENT_FIELDS.replace(
  'c.body',
  'case when m.bytes = 0 then null else c.body end as body',
);

/** A message to claim, with an unused token. */
export interface NewClaim {
  key: number;
  due_at_ms: number;
  claimToken: number;
}

/** Writes the claims and their ACTIVE events, and reads the messages to send; sorted by due time, then key. */
export async function saveClaims(
  { tx, logs }: WriteContext,
  taken: readonly NewClaim[],
  worker: string,
  nowMs: number,
): Promise<ClaimedRow[]> {
  if (taken.length === 0) return [];
  const inOrder = taken.toSorted((a, b) => a.due_at_ms - b.due_at_ms || a.key - b.key);
  const keys = inOrder.map(({ key }) => key);
  const [rows, lastEventAtMs] = await Promise.all([
    tx.query<Omit<ClaimedRow, 'claim_token' | 'claimed_at_ms' | 'due_at_ms'>>(
      `select ${CLAIMED_CONTENT_FIELDS}, m.retried, m.parkings, m.queue_id, m.flow_key, m.run_key, m.journal_position, m.bytes
       from messages m lookup contents c on (c.key = m.key) where m.key in (??)`,
      [keys],
    ),
    lastEventTimes({ tx, logs }, keys, nowMs), // later than now only if the clock was set back
  ]);
  const rowByKey = new Map(rows.map((row) => [row.key, row]));
  const claimed = inOrder.map(({ key, due_at_ms, claimToken }) => {
    const row = rowByKey.get(key);
    if (!row) throw new Error(`message ${key} has no content`);
    return {
      ...row,
      due_at_ms,
      claim_token: claimToken,
      claimed_at_ms: Math.max(nowMs, row.created_at_ms, lastEventAtMs.get(key) ?? 0),
    };
  });
  await tx.updateMany(
    'messages',
    'key',
    ['claim_token', 'claimed_at_ms', 'worker', 'wait_state'],
    claimed.map((row): SqlValue[] => [row.key, row.claim_token, row.claimed_at_ms, worker, WAIT_STATE.due]),
  );
  const active = codeOfLogState('ACTIVE');
  await logs.append(
    tx,
    claimed.map((row) => ({
      projectId: row.project_id,
      key: row.key,
      runKey: row.run_key,
      events: [[row.claimed_at_ms, active]],
      floorMs: row.claimed_at_ms,
    })),
  );
  return claimed;
}

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
