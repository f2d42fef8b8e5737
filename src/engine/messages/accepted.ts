/** What became of messages that a store was asked to save? */
import type { JournalPlace, MessageId, Millis } from '../model.ts';
import type { WaitState } from '../wait-state.ts';

/** `dropped`: it was not saved, because the run of its journal is over, or the journal has its entry. */
export type AcceptedState = WaitState | 'claimed' | 'dropped';

/** How a message was saved. */
export interface Saved {
  state: AcceptedState;
  /** Present when it entered the journal of a run. */
  journal?: JournalPlace;
  /** Of a dropped one: the message that has its entry. */
  messageId?: MessageId;
}

export type Accepted =
  | ({ kind: 'accepted' } & Saved)
  /**
   * An earlier message, or an entry of its run's journal, stands for it. `run`: the run that it would have begun
   * exists.
   */
  | { kind: 'duplicate'; messageId: MessageId; run?: { id: string; createdAtMs: Millis } }
  /** All messages of its publish are refused: the run of one of them is over. */
  | { kind: 'runOver' }
  /** Nothing of its publish was saved: a run of it has changed and must be read again. */
  | { kind: 'runChanged' }
  /** Nothing of its publish was saved: a run of it must begin after `latestMs`, when the last run with its id began. */
  | { kind: 'runTooEarly'; latestMs: Millis }
  /** All messages of its publish are refused: the journal of a run would be too long. */
  | { kind: 'journalFull'; limit: number }
  /** All messages of its publish are refused: too many runs would wait for the end of one. */
  | { kind: 'tooManyInvokers'; limit: number }
  /** Its queue does not exist, and the project has as many as it may. */
  | { kind: 'tooManyQueues' }
  /** All messages of its publish are refused: its project has only `remaining` messages left today. */
  | { kind: 'overDayLimit'; limit: number; remaining: number };
