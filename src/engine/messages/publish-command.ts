/** What does a publish ask for, and what becomes of it? */
import type { PublishOptions, ResultPart, WorkflowFeature } from '../../protocol/options/settings.ts';
import type { MessageId, Millis } from '../model.ts';

/** One message to publish. A publish to a URL group has one for each endpoint, which its settings name. */
export interface PublishCommand {
  url: string;
  body: Uint8Array;
  callerIp?: string;
  options: PublishOptions;
  /** Present when another run invokes the run that it starts: then the body is the payload. */
  invocation?: Invocation;
}

/** Which step of which run waits for the run that is started (contract W 14.8). */
export interface Invocation {
  runId: string;
  /** When the run was created, if the sender says so: runs may have the same id one after the other. */
  createdAtMs?: Millis;
  /** The step, verbatim. */
  step: Uint8Array;
  /** The message that will bring the result, as the request describes it, and what its receiver supports. */
  result: ResultPart;
  features: WorkflowFeature[];
}

/** By which version of the accounts the caller was admitted. Absent: no other worker can change them. */
export interface Admitted {
  accountsVersion: number | undefined;
  /** Checks the caller again with the newest accounts, and returns their version. Throws `ApiError` 401 or 403. */
  readmit: () => Promise<number>;
}

export interface Published {
  messageId: MessageId;
  url: string;
  /** The run that was started, or runs already. */
  run?: { id: string; createdAtMs: Millis };
  /** True when an earlier message with the same deduplication id stands for this one. */
  deduplicated: boolean;
  /** That earlier message will never be delivered. */
  state?: 'FAILED' | 'CANCELED';
}

/** `tooManyQueues`: its queue does not exist, and the project has as many as it may; nothing was made. */
export type PublishOutcome = Published | 'tooManyQueues';
