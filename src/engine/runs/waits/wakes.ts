/** Wakes waiters by a notification or at their deadline: each waiter only once, even when both occur. */
import type { EngineContext } from '../../context.ts';
import { DueLoop } from '../../loops/due-loop.ts';
import type { Saved } from '../../messages/accepted.ts';
import type { DeliverySlots } from '../../messages/intake.ts';
import type { FollowUp, Message, Millis, NewMessage } from '../../model.ts';
import type { Waiter } from '../stores.ts';
import { timedOutResult } from './wait-records.ts';

/** The maximum of waiters that are woken in one transaction. */
export const WAKE_BATCH = 200;

/** A waiter and the message that wakes its run. */
export interface WokenWaiter {
  waiter: Waiter;
  message: Message;
}

/**
 * Wakes the `waiters` that have not been woken yet, in one transaction. `resultOf` makes the result of each waiter.
 * `slots`: as in `Intake.save`.
 */
export async function wake(
  { store, clock, dispatcher: { intake }, reports }: EngineContext,
  waiters: readonly Waiter[],
  by: 'event' | 'deadline',
  resultOf: (record: Message, atMs: Millis) => FollowUp,
  slots?: DeliverySlots,
): Promise<WokenWaiter[]> {
  const nowMs = clock.nowMs();
  const drafts = await intake.draftsOf(waiters.map(({ record }) => resultOf(record, nowMs)));
  const save = (results: NewMessage[]) => {
    const resolutions = results.map((result, index) => ({ waiterKey: waiters[index]?.record.key ?? 0, result }));
    return store.waiters.resolveWaiters({ resolutions, nowMs });
  };
  const savedOf = (all: readonly (Saved | 'gone')[]) => all.map((each) => (each === 'gone' ? undefined : each));
  const results = await intake.save(drafts, save, savedOf, { ...(slots && { slots }) });
  return waiters.flatMap((waiter, index) => {
    const result = results[index] ?? 'gone';
    const message = drafts[index]?.message;
    if (result === 'gone' || result.state === 'dropped' || !message) return [];
    reports.woken(waiter.record, by, nowMs);
    return [{ waiter, message }];
  });
}

/** Ends waits whose deadline has passed. Call `noteNext` for every registered deadline. */
export function waiterLoop(context: EngineContext): DueLoop {
  const { store, clock } = context;
  return new DueLoop(context, 'waiters_failed', async () => {
    const page = { nowMs: clock.nowMs(), limit: WAKE_BATCH };
    const { due, nextAtMs = Infinity } = await store.waiters.dueWaiters(page);
    if (due.length === 0) return nextAtMs;
    await wake(context, due, 'deadline', timedOutResult);
    return 'more';
  });
}
