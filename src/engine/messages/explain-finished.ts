/** Explains how a finished message ended, in one sentence and in fields, from its log. Pure. */
import { dlqIdOf } from '../../protocol/cursor.ts';
import type { LogEntry } from '../stores.ts';
import type { Explanation } from './explain.ts';

/** `log`: the events of one message, latest first. Returns `undefined` if the log does not show that the message is finished. */
export function explainFinished(log: readonly LogEntry[], { isInDlq }: { isInDlq: boolean }): Explanation | undefined {
  const [last] = log;
  if (!last) return undefined;
  const { atMs, message } = last;
  const at = new Date(atMs).toISOString();
  const failures = log.filter(({ state }) => state === 'ERROR');
  const retried = log.filter(({ state }) => state === 'RETRY').length;
  switch (last.state) {
    case 'DELIVERED':
      return {
        reason: 'delivered',
        sentence: `Delivered at ${at} by attempt ${failures.length + 1}.`,
        atMs,
        retried,
      };
    case 'CANCELED':
      return { reason: 'cancelled', sentence: `Cancelled at ${at}.`, atMs, retried };
    case 'FAILED': {
      const why = failures[0]?.detail?.error ?? 'cause unknown';
      const attempts = failures.length === 1 ? '1 attempt' : `${failures.length} attempts`;
      const dead = `Dead since ${at} after ${attempts}: ${why}`;
      const dlqId = dlqIdOf(atMs, message.key);
      return isInDlq
        ? { reason: 'dead', sentence: `${dead}. It is in the DLQ as ${dlqId}.`, atMs, retried, dlqId }
        : { reason: 'dead', sentence: `${dead}. It is not in the DLQ.`, atMs, retried };
    }
    default:
      return undefined;
  }
}

/** The DLQ id of the message, if its log shows that it is dead. */
export function dlqIdIn([last]: readonly LogEntry[]): string | undefined {
  return last?.state === 'FAILED' ? dlqIdOf(last.atMs, last.message.key) : undefined;
}
