/** What is asked for with a publish, and what becomes of it? */
import type { PublishOptions, ResultPart, WorkflowFeature } from '../../protocol/settings.ts';
import type { MessageId, Millis } from '../model.ts';

/** One message to be published; to a URL group, there is one for each endpoint, which names it in its settings. */
export interface PublishCommand {
  url: string;
  body: Uint8Array;
  callerIp?: string;
  options: PublishOptions;
  /** Present when the run that it starts is invoked by another: then the body is the payload. */
  invocation?: Invocation;
}

/** Which step of which run waits for the run that is started (contract W 14.8). */
export interface Invocation {
  runId: string;
  /** Which incarnation of the run, where the sender says so. */
  createdAtMs?: Millis;
  /** The step, verbatim. */
  step: Uint8Array;
  /** The message for the result, as read from what was sent, and what its receiver can do. */
  result: ResultPart;
  features: WorkflowFeature[];
}

export interface Published {
  messageId: MessageId;
  url: string;
  /** The run that was started, or runs already. */
  run?: { id: string; createdAtMs: Millis };
  /** True when an earlier message with the same deduplication id stands for this one. */
  deduplicated: boolean;
}

/** `tooManyQueues`: its queue does not exist, and the project has as many as it may; nothing was made. */
export type PublishOutcome = Published | 'tooManyQueues';
