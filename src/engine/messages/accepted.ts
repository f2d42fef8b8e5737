/** What became of messages that a store was given? */
import type { JournalPlace, MessageId, Millis } from '../model.ts';
import type { WaitState } from '../wait-state.ts';

/** `dropped`: it was for the journal of a run that is over, and was not saved. */
export type AcceptedState = WaitState | 'claimed' | 'dropped';

/** How a message was saved. */
export interface Saved {
  state: AcceptedState;
  /** Present when it entered the journal of a run. */
  journal?: JournalPlace;
}

export type Accepted =
  | ({ kind: 'accepted' } & Saved)
  /** A message, or an entry of its run's journal, stands for it already; or the run that it was to begin, which is named. */
  | { kind: 'duplicate'; messageId: MessageId; run?: { id: string; createdAtMs: Millis } }
  /** All messages of its publish are refused: the run of one of them is over. */
  | { kind: 'runOver' }
  /** Nothing of its publish was saved: a run of it is not as was supposed, and is to be read again. */
  | { kind: 'runChanged' }
  /** Nothing of its publish was saved: a run of it is to begin after `latestMs`, when the one before with its id began. */
  | { kind: 'runTooEarly'; latestMs: Millis }
  /** All messages of its publish are refused: the journal of a run would be too long. */
  | { kind: 'journalFull'; limit: number }
  /** All messages of its publish are refused: too many runs would wait for the end of one. */
  | { kind: 'tooManyInvokers'; limit: number }
  /** Its queue does not exist, and the project has as many as it may. */
  | { kind: 'tooManyQueues' }
  /** All messages of its publish are refused: they are more than the `remaining` ones that its project has left today. */
  | { kind: 'overDayLimit'; limit: number; remaining: number };

/** How each was saved that was. */
export function savedOf(accepted: readonly Accepted[]): (Saved | undefined)[] {
  return accepted.map((each) => (each.kind === 'accepted' ? each : undefined));
}
