/** Why an unfinished message waits, in one sentence and in fields (P14). Pure. */
import type { Millis } from './model.ts';
import type { LiveMessage } from './stores.ts';

export interface Explanation {
  reason: 'delayed' | 'retrying' | 'due' | 'endpoint_busy' | 'attempting' | 'cancelling';
  sentence: string;
  /** When the attempt began, for `attempting` and `cancelling`. */
  sinceMs?: Millis;
  /** When it becomes due, or became so. */
  dueAtMs?: Millis;
  /** Retries already made. */
  retried: number;
}

/** Says what `live` waits for at `nowMs`. */
export function explain(live: LiveMessage, nowMs: Millis): Explanation {
  const { standing, retried, message } = live;
  switch (standing.kind) {
    case 'claimed':
      return explainAttempt(live, standing.claimedAtMs);
    case 'parked':
      return {
        reason: 'endpoint_busy',
        sentence: `Waits in the line of ${message.origin} until one of its attempts in flight ends or there is room for another.`,
        dueAtMs: standing.dueAtMs,
        retried,
      };
    case 'waiting':
      return { ...explainDueTime(standing.dueAtMs, retried, nowMs), dueAtMs: standing.dueAtMs, retried };
  }
}

function explainAttempt({ cancelRequested, retried }: LiveMessage, sinceMs: Millis): Explanation {
  const since = new Date(sinceMs).toISOString();
  if (!cancelRequested) {
    return { reason: 'attempting', sentence: `Is being attempted since ${since}.`, sinceMs, retried };
  }
  const sentence = `A cancel was asked for while it is being attempted (since ${since}); it will not be retried.`;
  return { reason: 'cancelling', sentence, sinceMs, retried };
}

function explainDueTime(dueAtMs: Millis, retried: number, nowMs: Millis): Pick<Explanation, 'reason' | 'sentence'> {
  const due = new Date(dueAtMs).toISOString();
  if (dueAtMs <= nowMs)
    return { reason: 'due', sentence: `Is due since ${due} and goes out as soon as a worker has room.` };
  if (retried > 0) return { reason: 'retrying', sentence: `Waits for retry ${retried}, planned for ${due}.` };
  return { reason: 'delayed', sentence: `Is delayed until ${due}, as its publisher asked.` };
}
