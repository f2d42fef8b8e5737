/**
 * The calls that are in progress on this worker. A call is one HTTP request that delivers a message of a run, until the
 * endpoint has responded. A call has claims of messages of the run, at first only of the message that it delivers. Each
 * checkpoint settles some of these messages as delivered and adds the messages with which the call continues. When the
 * request ends, its outcome becomes the outcome of each message that the call still has (contract K).
 */
import { takesCheckpoints } from '../../protocol/workflow/checkpoints.ts';
import type { Run } from '../../workflow/model.ts';
import type { Claimed, ClaimToken, Millis, Outcome } from '../model.ts';
import type { AttemptInFlight } from '../ports.ts';
import type { CheckpointResult } from './commands.ts';
import type { StepTemplate } from './drafts.ts';
import type { IdleCall } from './idle-calls.ts';
import { type MessageOutcome, messageOutcomes } from './message-outcomes.ts';

/** A message that a call has, with the claim of the message. */
export interface CallMessage {
  claimed: Claimed;
  /** When the message was added to the call, in elapsed time. */
  sinceMs: Millis;
  /** The checkpoint that appended the message; absent for the message that the call delivers. */
  appendedBy?: SavedCheckpoint | undefined;
}

/** The messages of a call that a checkpoint names. */
export interface NamedMessages {
  done: readonly CallMessage[];
  failed: readonly CallMessage[];
  /** Adds a message to the call, which continues with it. */
  add: (message: CallMessage) => void;
}

/** A checkpoint's call, with the messages that the checkpoint names. */
export interface CheckpointInCall extends NamedMessages {
  call: Call;
  /**
   * For an idle call: appended messages that were saved as claimed, with slots. The call continues with only one of them.
   */
  claimedForIdleCall: Claimed[];
}

type SaveCheckpoint = (named: NamedMessages) => Promise<CheckpointResult>;

/** A checkpoint that is being saved, or may be repeated because its response was lost. */
interface SavedCheckpoint {
  hash: string;
  /** The messages that the checkpoint names. */
  named: readonly ClaimToken[];
  result: Promise<CheckpointResult>;
  /** The appended messages that the call still has. */
  appended: Set<ClaimToken>;
}

const LOST: CheckpointResult = { kind: 'lost' };

export class Calls {
  /** Each call, under the claim tokens of its messages and of the messages that its repeatable checkpoints named. */
  readonly #byToken = new Map<ClaimToken, Call>();

  /** Returns a new call for the attempt of `claimed`, or undefined if its endpoint cannot send checkpoints. */
  start(claimed: Claimed, sinceMs: Millis): Call | undefined {
    const { run } = claimed.message.settings;
    return run && takesCheckpoints(run) ? new Call(claimed, sinceMs, this.#byToken) : undefined;
  }

  find(claimToken: ClaimToken): Call | undefined {
    return this.#byToken.get(claimToken);
  }
}

export class Call {
  /** The message that the call delivers. */
  readonly first: Claimed;
  /** The run of the call, as last read. */
  run: Run | undefined;
  /** Header and settings that all steps of the call share. */
  stepTemplate: StepTemplate | undefined;
  /** The settled or failed message whose slot the call keeps while the call has no messages. */
  idleSlotClaim: Claimed | undefined;
  /** Set while the call is idle, waiting for more messages of its run. */
  #idle: IdleCall | undefined;
  /** The position in the journal up to which the endpoint has the entries. */
  #journalSentUpTo: number;
  #attempt: AttemptInFlight | undefined;
  readonly #callByToken: Map<ClaimToken, Call>;
  readonly #messages = new Map<ClaimToken, CallMessage>();
  /** Each checkpoint, under the claim token of each message that the checkpoint names. */
  readonly #checkpointByToken = new Map<ClaimToken, SavedCheckpoint>();
  /** Checkpoints with an incomplete response, for example a response that waits for the next message of an idle call. */
  readonly #unfinished = new Set<SavedCheckpoint>();
  #isEnding = false;

  constructor(first: Claimed, sinceMs: Millis, callByToken: Map<ClaimToken, Call>) {
    this.first = first;
    this.#callByToken = callByToken;
    this.#journalSentUpTo = first.message.settings.run?.callType === 'step' ? (first.journal?.position ?? -1) : -1;
    this.#add({ claimed: first, sinceMs });
  }

  /** Whether the call has no messages, and no checkpoint except the caller's is unfinished, which could add a message. */
  get isEmpty(): boolean {
    return this.#messages.size === 0 && this.#unfinished.size <= 1;
  }

  /** Whether the request of the call has ended. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Notes the attempt whose request is being sent. */
  setAttempt(attempt: AttemptInFlight): void {
    this.#attempt = attempt;
  }

  /**
   * Carries out a checkpoint that names the messages `done` and `failed`. `save` gets these messages and returns the
   * result. A repeated checkpoint gets the same result as the first time. If `save` throws, the error is rethrown and the
   * call keeps its messages.
   */
  checkpoint(
    { done, failed }: { done: readonly ClaimToken[]; failed: readonly ClaimToken[] },
    hash: string,
    save: SaveCheckpoint,
  ): CheckpointResult | Promise<CheckpointResult> {
    const named = [...done, ...failed];
    const [first = -1] = named;
    const earlier = this.#checkpointByToken.get(first);
    if (earlier) return earlier.hash === hash ? earlier.result : LOST;
    const claimed = named.flatMap((token) => this.#messages.get(token) ?? []);
    if (this.#isEnding || claimed.length < named.length) return LOST;
    this.#attempt?.extend();
    const checkpoint: SavedCheckpoint = { hash, named, result: Promise.resolve(LOST), appended: new Set() };
    for (const token of named) {
      this.#messages.delete(token);
      this.#checkpointByToken.set(token, checkpoint);
    }
    this.#unfinished.add(checkpoint);
    checkpoint.result = this.#save(
      checkpoint,
      { done: claimed.slice(0, done.length), failed: claimed.slice(done.length) },
      save,
    );
    return checkpoint.result;
  }

  /** Keeps the request open, with its time limit paused, until `idleCall` ends. Returns the next message, if there is one. */
  async waitIdle(idleCall: IdleCall): Promise<Claimed | undefined> {
    this.#idle = idleCall;
    this.#attempt?.pause();
    const next = await idleCall.next;
    this.#idle = undefined;
    this.#attempt?.extend();
    return next;
  }

  /** Ends an idle call without a message. */
  endIdleCall(): void {
    this.#idle?.end();
  }

  /** Notes that the endpoint gets the journal up to `position`. Returns the position that the endpoint already had. */
  noteJournalSent(position: number): number {
    const had = this.#journalSentUpTo;
    this.#journalSentUpTo = Math.max(had, position);
    return had;
  }

  /** Ends the call with the outcome of its request. Returns the outcome of each message that the call still has. */
  async end(outcome: Outcome, endedAtMs: Millis): Promise<MessageOutcome[]> {
    this.#isEnding = true;
    this.endIdleCall();
    for (const { result } of this.#unfinished) await result.then(nextOf).catch(() => {});
    for (const token of [...this.#messages.keys(), ...this.#checkpointByToken.keys()]) this.#callByToken.delete(token);
    this.#checkpointByToken.clear();
    const messages = [...this.#messages.values()];
    for (const each of messages) each.claimed.durationMs = endedAtMs - each.sinceMs;
    return messageOutcomes(
      messages.map(({ claimed }) => claimed),
      this.first,
      outcome,
    );
  }

  async #save(
    checkpoint: SavedCheckpoint,
    { done, failed }: Omit<NamedMessages, 'add'>,
    save: SaveCheckpoint,
  ): Promise<CheckpointResult> {
    const named = [...done, ...failed];
    const add = (message: CallMessage): void => {
      checkpoint.appended.add(message.claimed.claimToken);
      this.#add({ ...message, appendedBy: checkpoint });
    };
    try {
      const result = await save({ done, failed, add });
      if (result.kind === 'ended') this.#restore(checkpoint, named);
      else for (const { claimed, appendedBy } of named) this.#forget(appendedBy, claimed.claimToken);
      // Another worker may have attempted the messages in `done` by now, so the call does not get these messages back.
      if (result.kind === 'lost') for (const each of failed) this.#add(each);
      const next = nextOf(result);
      if (next !== undefined) void next.finally(() => this.#unfinished.delete(checkpoint));
      else this.#unfinished.delete(checkpoint);
      return result;
    } catch (error) {
      this.#restore(checkpoint, named);
      this.#unfinished.delete(checkpoint);
      throw error;
    }
  }

  #add(message: CallMessage): void {
    const { claimToken } = message.claimed;
    this.#messages.set(claimToken, message);
    this.#callByToken.set(claimToken, this);
  }

  /** Undoes the effects of a checkpoint on the call, because nothing was saved. */
  #restore({ named }: SavedCheckpoint, messages: readonly CallMessage[]): void {
    for (const token of named) this.#checkpointByToken.delete(token);
    for (const each of messages) this.#add(each);
  }

  /** Notes that a message is settled. Forgets a checkpoint once all messages that it appended are settled. */
  #forget(checkpoint: SavedCheckpoint | undefined, claimToken: ClaimToken): void {
    if (!checkpoint) return;
    checkpoint.appended.delete(claimToken);
    if (checkpoint.appended.size > 0) return;
    for (const token of checkpoint.named) {
      this.#checkpointByToken.delete(token);
      this.#callByToken.delete(token);
    }
  }
}

function nextOf(result: CheckpointResult): Promise<unknown> | undefined {
  return result.kind === 'saved' ? result.next : undefined;
}
