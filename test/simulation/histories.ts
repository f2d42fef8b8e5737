/** Summarizes the log of each message. */
import type { LogState, Message, MessageId, Millis } from '../../src/engine/model.ts';
import type { LogEntry } from '../../src/engine/stores.ts';

/**
 * The attempts between two RETRY entries: one attempt, and one more for each attempt that the end of its process
 * interrupted.
 */
export interface Round {
  /** The earliest time at which its first attempt may start. */
  dueAtMs: Millis;
  activeCount: number;
}

export interface History {
  message: Message;
  /** One letter per log entry, in order. */
  letters: string;
  /** Indexed by the number of earlier retries. */
  rounds: Round[];
  /** When the message was parked, until when, and when it was attempted again. */
  parkings: { atMs: Millis; dueAtMs: Millis; triedAtMs?: Millis }[];
}

const LETTERS: Record<LogState, string> = {
  CREATED: 'C',
  ACTIVE: 'A',
  DELIVERED: 'D',
  ERROR: 'E',
  RETRY: 'R',
  STEP_PARKED: 'P',
  FAILED: 'F',
  CANCEL_REQUESTED: 'Q',
  CANCELED: 'X',
};

/** The entries in `logs` must be sorted, earliest first. */
export function historiesOf(logs: readonly LogEntry[]): Map<MessageId, History> {
  const histories = new Map<MessageId, History>();
  for (const { message, state, detail, atMs } of logs) {
    let history = histories.get(message.id);
    if (!history) {
      history = { message, letters: '', rounds: [{ dueAtMs: message.notBeforeMs, activeCount: 0 }], parkings: [] };
      histories.set(message.id, history);
    }
    history.letters += LETTERS[state];
    const round = history.rounds.at(-1);
    if (state === 'ACTIVE' && round) round.activeCount += 1;
    const parking = history.parkings.at(-1);
    if (state === 'ACTIVE' && parking) parking.triedAtMs ??= atMs;
    if (state === 'STEP_PARKED') history.parkings.push({ atMs, dueAtMs: detail?.nextDeliveryTimeMs ?? 0 });
    if (state === 'RETRY') history.rounds.push({ dueAtMs: detail?.nextDeliveryTimeMs ?? Infinity, activeCount: 0 });
  }
  return histories;
}
