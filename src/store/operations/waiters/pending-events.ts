/** Pending events: notifications that are saved for waits that a run has not registered yet. */
import { NUMBERS_OF_CELL, type ProjectId } from '../../../engine/model.ts';
import type { PendingEvent, PendingEventLimits } from '../../../engine/runs/stores.ts';
import type { RunKey } from '../../../workflow/model.ts';
import type { Queries, Transaction } from '../../driver.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { encodeBytes } from '../messages/content-rows.ts';
import { bytesOf } from '../messages/rows.ts';
import { read, write } from '../operation.ts';
import { RUN_STATE } from '../runs/run-rows.ts';

export interface PendingEventRow {
  key: number;
  body: Uint8Array | null;
}

interface PendingEventTarget {
  runKey: RunKey;
  eventId: string;
}

/** An event with a key of another cell came with a move of the project, so it is older than all events of this cell. */
const OLDEST_FIRST = `order by case when key > (select until - ${NUMBERS_OF_CELL} from numbers where name = 'keys and tokens')
  and key <= (select until from numbers where name = 'keys and tokens') then 1 else 0 end, key`;

/** The oldest pending event of a run with an event id. */
export const nextPendingEvent = read(
  async (queries: Queries, { runKey, eventId }: PendingEventTarget): Promise<PendingEventRow | undefined> => {
    const [row] = await queries.query<PendingEventRow>(
      `select key, body from pending_events where run_key = ? and event_id = ? ${OLDEST_FIRST} limit 1`,
      [runKey, eventId],
    );
    return row;
  },
  (row): PendingEvent | undefined => row && { key: row.key, body: row.body ?? new Uint8Array(0) },
);

/** The key of the oldest pending event. */
export async function nextPendingEventKey(
  tx: Transaction,
  { runKey, eventId }: PendingEventTarget,
): Promise<number | null> {
  const [row] = await tx.query<{ key: number }>(
    `select key from pending_events where run_key = ? and event_id = ? ${OLDEST_FIRST} limit 1`,
    [runKey, eventId],
  );
  return row?.key ?? null;
}

export async function deletePendingEvent(tx: Transaction, key: number): Promise<void> {
  await tx.send('delete from pending_events where key = ?', [key]);
}

export interface SavePendingEventArgs extends PendingEventTarget {
  projectId: ProjectId;
  key: number;
  body: Uint8Array | null;
  limits: PendingEventLimits;
}

/** Saves an event for a run that has no waiter for it, within `limits`. */
export const savePendingEvent = write(
  { weight: ({ body }) => ({ rows: 1, bytes: bytesOf(body) }) },
  async (
    { tx }: WriteContext,
    { projectId, runKey, eventId, key, body, limits }: SavePendingEventArgs,
  ): Promise<'saved' | 'over' | 'waited' | 'tooMuch'> => {
    const [run] = await tx.query(
      `select key from runs where key = ? and project_id = ? and state = ${RUN_STATE.RUN_STARTED}`,
      [runKey, projectId],
    );
    if (!run) return 'over';
    const [waiter] = await tx.query('select key from waiters where run_key = ? and event_id = ? limit 1', [
      runKey,
      eventId,
    ]);
    if (waiter) return 'waited';
    const [saved] = await tx.query<{ events: number; bytes: number }>(
      'select count(*) as events, coalesce(sum(length(body)), 0) as bytes from pending_events where run_key = ?',
      [runKey],
    );
    const { events = 0, bytes = 0 } = saved ?? {};
    const isTooLong = events > 0 && bytes + (body?.length ?? 0) > limits.bytes;
    if (events >= limits.events || isTooLong) return 'tooMuch';
    await tx.insertMany(
      'pending_events',
      ['key', 'project_id', 'run_key', 'event_id', 'body'],
      [[key, projectId, runKey, eventId, body]],
    );
    return 'saved';
  },
  (given: SavePendingEventArgs & PendingEvent) => ({ ...given, body: encodeBytes(given.body) }),
);
