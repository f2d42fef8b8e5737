/** The arguments and the result of a publish. */
import type { PublishOptions, ResultMessage, WorkflowFeature } from '../../protocol/options/settings.ts';
import type { MessageId, Millis } from '../model.ts';

/** One message to publish. A publish to a URL group has one command for each endpoint, named in the settings. */
export interface PublishCommand {
  url: string;
  body: Uint8Array;
  callerIp?: string;
  options: PublishOptions;
  /**
   * Present when another run invokes the run that this message starts. The body of the message is then the payload of the
   * new run.
   */
  invocation?: Invocation;
}

/** The step of another run that waits for the started run (contract W 14.8). */
export interface Invocation {
  runId: string;
  /** When the invoking run was created, if the sender names this time: several runs may have had the same id. */
  createdAtMs?: Millis;
  /** The step, verbatim. */
  step: Uint8Array;
  /** The message that will carry the result, as the request describes this message, and the features of its receiver. */
  result: ResultMessage;
  features: WorkflowFeature[];
}

/** The version of the accounts with which the caller was admitted. Absent: no other worker can change the accounts. */
export interface Admitted {
  accountsVersion: number | undefined;
  /** Checks the caller again with the latest accounts, and returns their version. Throws `ApiError` 401 or 403. */
  readmit: () => Promise<number>;
}

export interface Published {
  messageId: MessageId;
  url: string;
  /** The run that was started, or that already exists. */
  run?: { id: string; createdAtMs: Millis };
  /** Whether an earlier message with the same deduplication id replaces this message. */
  deduplicated: boolean;
  /** The state of the earlier message, if that message will never be delivered. */
  state?: 'FAILED' | 'CANCELED';
}

/** `tooManyQueues`: the queue does not exist, and the project has reached its limit of queues; nothing was saved. */
export type PublishOutcome = Published | 'tooManyQueues';
