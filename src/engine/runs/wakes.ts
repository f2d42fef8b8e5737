/** How waiters are woken, by a notification or by their deadline: each once, whoever else would wake it too. */
import type { FollowUp, Message, Millis, NewMessage } from '../model.ts';
import { type Places, setGoing } from '../placement.ts';
import type { Clock } from '../ports.ts';
import type { Waiter, WaiterStore } from '../run-stores.ts';

export interface WakeDeps {
  store: { waiters: Pick<WaiterStore, 'resolveWaiters'> };
  clock: Clock;
  places: Places;
  /** Gives each a key, an id and a place. */
  placeFollowUps(follows: FollowUp[]): Promise<NewMessage[]>;
}

/** A waiter and the message that its run is woken with. */
export interface Woken {
  waiter: Waiter;
  message: Message;
}

/** Wakes those of `waiters` that nobody else has woken: all in one transaction, with what `resultOf` makes of each. */
export async function wake(
  waiters: readonly Waiter[],
  resultOf: (record: Message, atMs: Millis) => FollowUp,
  { store, clock, places, placeFollowUps }: WakeDeps,
): Promise<Woken[]> {
  const nowMs = clock.nowMs();
  const news = await placeFollowUps(waiters.map(({ record }) => resultOf(record, nowMs)));
  const resolutions = news.map((result, index) => ({ waiterKey: waiters[index]?.record.key ?? 0, result }));
  let answers: Awaited<ReturnType<WaiterStore['resolveWaiters']>> = [];
  try {
    answers = await store.waiters.resolveWaiters(resolutions, nowMs);
  } finally {
    news.forEach((entry, index) => {
      const answer = answers[index];
      setGoing(entry, answer === 'gone' ? undefined : answer, places);
    });
  }
  return waiters.flatMap((waiter, index) => {
    const answer = answers[index] ?? 'gone';
    const message = news[index]?.message;
    return answer === 'gone' || answer.standing === 'dropped' || !message ? [] : [{ waiter, message }];
  });
}
