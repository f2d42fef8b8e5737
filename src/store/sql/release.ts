/** What becomes of claims whose attempt will never report: the worker drains, or its process died? */
import type { ClaimToken, MessageKey } from '../../engine/model.ts';
import type { SqlValue } from '../driver.ts';
import { cancelAtOnce } from './cancel.ts';
import type { WriteContext } from './log-writer.ts';

interface ClaimRow {
  key: number;
  project_id: number;
  claim_token: number;
  cancel_requested_at_ms: number | null;
}

export interface ReleaseArgs {
  claims: { key: MessageKey; claimToken: ClaimToken }[];
  nowMs: number;
}

export async function release(context: WriteContext, { claims, nowMs }: ReleaseArgs): Promise<void> {
  const tokens = new Map(claims.map(({ key, claimToken }) => [key, claimToken]));
  const rows = await context.tx.query<ClaimRow>(
    'select key, project_id, claim_token, cancel_requested_at_ms from messages where key in (??) and claim_token is not null',
    [[...tokens.keys()]],
  );
  await giveBack(
    context,
    rows.filter((row) => tokens.get(row.key) === row.claim_token),
    nowMs,
  );
}

/** Reads only the index of claimed messages: a million that wait cost a start nothing. */
export async function releaseAll(context: WriteContext, { nowMs }: { nowMs: number }): Promise<number> {
  const rows = await context.tx.query<ClaimRow>(
    'select key, project_id, claim_token, cancel_requested_at_ms from messages where claim_token is not null order by key',
  );
  await giveBack(context, rows, nowMs);
  return rows.length;
}

/** Due at once; a message that was to be cancelled waits now, so its cancel takes effect (messaging.md 6.3, row 7). */
async function giveBack(context: WriteContext, rows: readonly ClaimRow[], nowMs: number): Promise<void> {
  const cancelled = rows.filter((row) => row.cancel_requested_at_ms !== null);
  if (cancelled.length > 0) await cancelAtOnce(context, cancelled, nowMs);
  const kept = rows.filter((row) => row.cancel_requested_at_ms === null);
  if (kept.length === 0) return;
  await context.tx.updateMany(
    'messages',
    'key',
    ['due_at_ms', 'claimed_at_ms', 'claim_token', 'worker', 'parked'],
    kept.map((row): SqlValue[] => [row.key, nowMs, null, null, null, 0]),
  );
}
