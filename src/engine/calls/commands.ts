/**
 * The validated checkpoint requests that `api` passes to the engine, and the results that the engine returns (contract K
 * 3).
 */

import type { HeaderMap } from '../../protocol/options/settings.ts';
import type { RunKey } from '../../workflow/model.ts';
import type { EntryIdentity } from '../../workflow/steps.ts';
import type { PublishCommand } from '../messages/publish-command.ts';
import type { ClaimToken, MessageId, MessageKey, Millis, Outcome } from '../model.ts';

export interface CheckpointCommand {
  runKey: RunKey;
  /** Messages of the run that the checkpoint settles as delivered: at least one, if anything is appended. */
  done: readonly { key: MessageKey; claimToken: ClaimToken }[];
  /** Messages of the run whose attempt has failed. */
  failed?: readonly FailedMessage[];
  /** New journal entries, in the order in which they enter the journal. */
  append: readonly AppendedEntry[];
  /** The hash of the whole request: a repeated checkpoint has the same hash. */
  hash: string;
  callerIp?: string;
  /** How long the idle call waits for more work; absent: the call continues with the appended messages. */
  lingerMs?: Millis;
  /** Aborts when the client has disconnected. */
  hangUp?: AbortSignal;
}

export interface FailedMessage {
  key: MessageKey;
  claimToken: ClaimToken;
  /** The outcome of the attempt. The effect is the same as if the whole call had ended with this outcome. */
  outcome: Extract<Outcome, { kind: 'responded' }>;
}

export type AppendedEntry =
  /** The result of a step, or the plan of a step in a parallel group. The times have the same meaning as in a publish. */
  | { kind: 'step'; body: Uint8Array; identity: EntryIdentity; delayMs?: Millis; notBeforeMs?: Millis }
  /** A call to another service, in the form of a publish. It belongs to this run, whichever run the publish names. */
  | { kind: 'call'; command: PublishCommand }
  /** The trigger of another run, for whose end this run waits. */
  | { kind: 'invoke'; command: PublishCommand }
  | { kind: 'wait'; eventId: string; timeout: string; timeoutMs: Millis; step: Uint8Array; stepId: number };

export type CheckpointResult =
  /** `entries`: for each entry of `append`, its message, and the claim of the message if the call continues with it. */
  | {
      kind: 'saved';
      entries: { messageId: MessageId; claim?: { key: MessageKey; claimToken: ClaimToken } }[];
      /** Resolves to the idle call's next message, or to undefined if no message came. Never rejects. */
      next?: Promise<Handover | undefined>;
    }
  /** The call has lost its claims, or a message is already settled. */
  | { kind: 'lost' }
  /** The run has ended. */
  | { kind: 'ended' };

/** A message with which an idle call continues, with everything that its delivery would contain. */
export interface Handover {
  messageId: MessageId;
  key: MessageKey;
  claimToken: ClaimToken;
  /** Retries already made. */
  retried: number;
  content: /** The entries of the journal, up to the message's own, that the endpoint does not have yet, as a JSON array. */
    | { kind: 'journal'; entries: Uint8Array }
    /** The result of a call to another service. */
    | { kind: 'callResult'; header: HeaderMap; body: Uint8Array }
    /** The content is too long to be sent: the endpoint fetches it. `header`: the header of the result, for a call. */
    | { kind: 'nothing'; header?: HeaderMap };
}
