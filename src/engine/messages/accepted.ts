/** The results of saving new messages. */
import type { JournalPosition, MessageId, Millis } from '../model.ts';
import type { WaitState } from '../wait-state.ts';

/** `dropped`: the message was not saved, because its run has ended, or the journal already has its entry. */
export type AcceptedState = WaitState | 'claimed' | 'dropped';

/** How a message was saved. */
export interface Saved {
  state: AcceptedState;
  /** Present when the message entered the journal of a run. */
  journal?: JournalPosition;
  /** For a dropped message: the message that already has the journal entry. */
  messageId?: MessageId;
}

export type Accepted =
  | ({ kind: 'accepted' } & Saved)
  /**
   * An earlier message, or an entry of the journal of its run, replaces the message. `run`: the existing run that the
   * message would have started.
   */
  | { kind: 'duplicate'; messageId: MessageId; run?: { id: string; createdAtMs: Millis } }
  /** All messages of the publish are rejected, because the run of one message has ended. */
  | { kind: 'runOver' }
  /** No message of the publish was saved: a run of the publish has changed and must be read again. */
  | { kind: 'runChanged' }
  /**
   * No message of the publish was saved: a run of the publish must start after `latestMs`, when the last run with the
   * same id started.
   */
  | { kind: 'runTooEarly'; latestMs: Millis }
  /** All messages of the publish are rejected: the journal of a run would be too long. */
  | { kind: 'journalFull'; limit: number }
  /** All messages of the publish are rejected: too many runs would wait for the end of one run. */
  | { kind: 'tooManyInvokers'; limit: number }
  /** The queue of the message does not exist, and the project has reached its limit of queues. */
  | { kind: 'tooManyQueues' }
  /** All messages of the publish are rejected: the project may publish only `remaining` more messages today. */
  | { kind: 'overDayLimit'; limit: number; remaining: number };
