/** What `api` asks of the engine about the calls of endpoints: checked, typed (contract K 3). */

import type { HeaderMap } from '../../protocol/options/settings.ts';
import type { RunKey } from '../../workflow/model.ts';
import type { EntryPlace } from '../../workflow/steps.ts';
import type { PublishCommand } from '../messages/publish-command.ts';
import type { ClaimToken, MessageId, MessageKey, Millis, Outcome } from '../model.ts';

export interface CheckpointCommand {
  runKey: RunKey;
  /** Messages of the run that are delivered with it: at least one, if anything is appended. */
  done: readonly { key: MessageKey; claimToken: ClaimToken }[];
  /** Messages of the run whose attempt has failed. */
  failed?: readonly Failed[];
  /** What enters the journal, in this order. */
  append: readonly Appended[];
  /** Of all that was sent: the same checkpoint again has the same. */
  hash: string;
  callerIp?: string;
  /** How long the idle call waits for more work; absent: it continues with the appended messages. */
  lingerMs?: Millis;
  /** Aborts when nobody waits for the answer any more. */
  hangUp?: AbortSignal;
}

export interface Failed {
  key: MessageKey;
  claimToken: ClaimToken;
  /** As if the call had ended with it. */
  outcome: Extract<Outcome, { kind: 'answered' }>;
}

export type Appended =
  /** The result or the plan of a step; its time is as in a publish. */
  | { kind: 'step'; body: Uint8Array; place: EntryPlace; delayMs?: Millis; notBeforeMs?: Millis }
  /** A call to somebody else, as it would be published. Whatever run it names, it is of this one. */
  | { kind: 'call'; command: PublishCommand }
  /** The trigger of a run that this one waits for. */
  | { kind: 'invoke'; command: PublishCommand }
  | { kind: 'wait'; eventId: string; timeout: string; timeoutMs: Millis; step: Uint8Array; stepId: number };

export type CheckpointAnswer =
  /** For each of `append`: its message, and its claim if the call continues with it. */
  | {
      kind: 'saved';
      entries: { messageId: MessageId; held?: { key: MessageKey; claimToken: ClaimToken } }[];
      /** The message with which the idle call continues; `undefined`: none came. Never rejects. */
      next?: Promise<Handover | undefined>;
    }
  /** The call is given up, or a message is done already. */
  | { kind: 'lost' }
  /** The run is over. */
  | { kind: 'ended' };

/** A message with which an idle call continues, with all that its delivery would contain. */
export interface Handover {
  messageId: MessageId;
  key: MessageKey;
  claimToken: ClaimToken;
  /** Retries already made. */
  retried: number;
  brings: /** The entries of the journal, up to the message's own, that the endpoint does not have yet, as a JSON array. */
    | { kind: 'journal'; entries: Uint8Array }
    /** The result of a call to somebody else. */
    | { kind: 'callResult'; header: HeaderMap; body: Uint8Array }
    /** It is so long that the endpoint fetches it. `header`: of the result of a call. */
    | { kind: 'nothing'; header?: HeaderMap };
}
