/** What does the outcome of an attempt change, provided that the attempt still owns its message? */
import type { Settled } from '../../engine/stores.ts';
import type { SqlValue } from '../driver.ts';
import { insertMessages } from './accept.ts';
import type { MessageEvents, WriteContext } from './log-writer.ts';
import { BURIAL_COLUMNS, type StoredNewMessage, type StoredSettlement } from './rows.ts';

interface OwnerRow {
  key: number;
  project_id: number;
  claim_token: number | null;
  claimed_at_ms: number | null;
  cancel_requested_at_ms: number | null;
}

/** Saves all settlements whose token is still their message's; says of each whether it was (P6). */
export async function settleAll(context: WriteContext, settlements: readonly StoredSettlement[]): Promise<Settled[]> {
  const { tx, logs } = context;
  const rows = await tx.query<OwnerRow>(
    'select key, project_id, claim_token, claimed_at_ms, cancel_requested_at_ms from messages where key in (??)',
    [settlements.map(({ key }) => key)],
  );
  const owners = new Map(rows.map((row) => [row.key, row]));

  const finished: number[] = [];
  const waiting: SqlValue[][] = [];
  const dead: SqlValue[][] = [];
  const follows: StoredNewMessage[] = [];
  const events: MessageEvents[] = [];
  const answers = settlements.map((settlement): Settled => {
    const { key, projectId, claimToken } = settlement;
    const owner = owners.get(key);
    if (!owner || owner.project_id !== projectId || owner.claim_token !== claimToken) return 'stale';
    owners.delete(key); // the same result sent twice in one batch is stale the second time
    const alternative = owner.cancel_requested_at_ms === null ? undefined : settlement.changeIfCancelRequested;
    const change = alternative ?? settlement.change;
    if (change.waiting) waiting.push([key, change.waiting.dueAtMs, change.waiting.retried, null, null, null, 0]);
    else finished.push(key);
    if (change.burial) dead.push([projectId, key, ...change.burial]);
    if (change.follows) follows.push(...change.follows);
    const floorMs = Math.max(owner.claimed_at_ms ?? 0, owner.cancel_requested_at_ms ?? 0);
    events.push({ projectId, key, events: change.events, floorMs });
    return alternative ? 'cancelled' : 'saved';
  });

  if (finished.length > 0) await tx.run('delete from messages where key in (??)', [finished]);
  if (waiting.length > 0) {
    await tx.updateMany(
      'messages',
      'key',
      ['due_at_ms', 'retried', 'claimed_at_ms', 'claim_token', 'worker', 'parked'],
      waiting,
    );
  }
  if (dead.length > 0) await tx.insertMany('dead', ['project_id', 'key', ...BURIAL_COLUMNS], dead);
  await logs.append(tx, events);
  await insertMessages(context, follows);
  return answers;
}
