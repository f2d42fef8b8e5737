/** What `api` asks of the engine about the calls of endpoints: checked, typed (contract K 3). */

import type { RunKey } from '../../workflow/model.ts';
import type { PublishCommand } from '../messages/publish-command.ts';
import type { ClaimToken, MessageId, MessageKey, Millis, ProjectId } from '../model.ts';

export interface CheckpointCommand {
  runKey: RunKey;
  /** Messages of the run that are delivered with it: at least one. */
  done: readonly { key: MessageKey; claimToken: ClaimToken }[];
  /** What enters the journal, in this order. */
  append: readonly Appended[];
  /** Of all that was sent: the same checkpoint again has the same. */
  hash: string;
  callerIp?: string;
}

export type Appended =
  /** The result or the plan of a step; its time is as in a publish. */
  | { kind: 'step'; body: Uint8Array; delayMs?: Millis; notBeforeMs?: Millis }
  /** A call to somebody else, as it would be published. Whatever run it names, it is of this one. */
  | { kind: 'call'; command: PublishCommand }
  /** The trigger of a run that this one waits for. */
  | { kind: 'invoke'; command: PublishCommand }
  | { kind: 'wait'; eventId: string; timeout: string; timeoutMs: Millis; step: Uint8Array; stepId: number };

export type CheckpointAnswer =
  /** For each of `append`: its message, and its claim if the call goes on with it. */
  | { kind: 'saved'; entries: { messageId: MessageId; held?: { key: MessageKey; claimToken: ClaimToken } }[] }
  /** The call is given up, or a message is done already. */
  | { kind: 'lost' }
  /** The run is over. */
  | { kind: 'ended' };

export interface CheckpointCommands {
  /** Whether this worker makes the call that holds the message with the claim, or held it lately. */
  hasCall(claimToken: ClaimToken): boolean;
  /**
   * Resolves after the commit (P1). Throws only when nothing was saved, and then the call holds what it held: `ApiError` 412
   * when the journal would be too long, `RateLimited` (429) when the project has fewer messages left today, `StoreUnavailable`.
   */
  checkpoint(projectId: ProjectId, command: CheckpointCommand): Promise<CheckpointAnswer>;
}
