/** How waiters are woken, by a notification or by their deadline: each only once, even when both come. */
import type { Store } from '../../store/store.ts';
import type { Saved } from '../messages/accepted.ts';
import type { Intake } from '../messages/intake.ts';
import type { DeliverySlots } from '../messages/placement.ts';
import type { FollowUp, Message, Millis, NewMessage } from '../model.ts';
import type { Clock } from '../ports.ts';
import type { Reports } from '../reports.ts';
import type { Waiter } from './stores.ts';

export interface WakeDeps {
  store: { waiters: Pick<Store['waiters'], 'resolveWaiters'> };
  clock: Clock;
  intake: Intake;
  reports: Pick<Reports, 'woken'>;
}

/** A waiter and the message that its run is woken with. */
export interface Woken {
  waiter: Waiter;
  message: Message;
}

/**
 * Wakes those of `waiters` that are not woken yet, all in one transaction. `resultOf` makes the result of each. `slots`: as
 * in `Intake.save`.
 */
export async function wake(
  waiters: readonly Waiter[],
  by: 'event' | 'deadline',
  resultOf: (record: Message, atMs: Millis) => FollowUp,
  { store, clock, intake, reports }: WakeDeps,
  slots?: DeliverySlots,
): Promise<Woken[]> {
  const nowMs = clock.nowMs();
  const drafts = await intake.draftsOf(waiters.map(({ record }) => resultOf(record, nowMs)));
  const save = (results: NewMessage[]) => {
    const resolutions = results.map((result, index) => ({ waiterKey: waiters[index]?.record.key ?? 0, result }));
    return store.waiters.resolveWaiters({ resolutions, nowMs });
  };
  const savedOf = (all: readonly (Saved | 'gone')[]) => all.map((each) => (each === 'gone' ? undefined : each));
  const answers = await intake.save(drafts, save, savedOf, { ...(slots && { slots }) });
  return waiters.flatMap((waiter, index) => {
    const answer = answers[index] ?? 'gone';
    const message = drafts[index]?.message;
    if (answer === 'gone' || answer.state === 'dropped' || !message) return [];
    reports.woken(waiter.record, by, nowMs);
    return [{ waiter, message }];
  });
}
