/**
 * The calls that are in progress on this worker. A call is one HTTP request that delivers a message of a run, until the endpoint
 * has responded. It has claims of messages of the run: first the message that it delivers. Each checkpoint settles some of these
 * messages as delivered and adds those with which the call continues. When the request ends, its outcome becomes the outcome of
 * each message that the call still has (contract K).
 */
import { takesCheckpoints } from '../../protocol/workflow/checkpoints.ts';
import type { Run } from '../../workflow/model.ts';
import type { Claimed, ClaimToken, Millis, Outcome } from '../model.ts';
import type { AttemptInFlight } from '../ports.ts';
import type { CheckpointAnswer } from './commands.ts';
import type { StepParts } from './drafts.ts';
import { type CallEnd, endsOf } from './ends.ts';
import type { IdleCall } from './idle-calls.ts';

/** A message whose claim belongs to a call. */
export interface Held {
  claimed: Claimed;
  /** When the call got it, in elapsed time. */
  sinceMs: Millis;
  /** The checkpoint that appended it; absent for the message that the call delivers. */
  from?: Kept | undefined;
}

/** The messages of a call that a checkpoint names. */
export interface Given {
  done: readonly Held[];
  failed: readonly Held[];
  /** Adds a message to the call, which continues with it. */
  hold: (held: Held) => void;
}

/** A checkpoint's call, with the messages that the checkpoint names. */
export interface Around extends Given {
  call: Call;
  /** Appended messages that were saved as claimed, with slots, for an idle call: it continues with only one of them. */
  arrivals: Claimed[];
}

type Save = (given: Given) => Promise<CheckpointAnswer>;

/** A checkpoint that is being saved, or may be repeated because its response was lost. */
interface Kept {
  hash: string;
  /** The messages that it names. */
  named: readonly ClaimToken[];
  answer: Promise<CheckpointAnswer>;
  /** The messages that it appended and the call still has. */
  appended: Set<ClaimToken>;
}

const LOST: CheckpointAnswer = { kind: 'lost' };

export class Calls {
  /** By the messages that calls have, and by those of checkpoints that may be repeated. */
  readonly #byToken = new Map<ClaimToken, Call>();

  /** A new call for the attempt of `claimed`; `undefined` when its endpoint cannot send checkpoints. */
  begin(claimed: Claimed, sinceMs: Millis): Call | undefined {
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
  /** Its run, as last read. */
  run: Run | undefined;
  /** Header and settings that all steps of the call share. */
  stepParts: StepParts | undefined;
  /** The message whose slot the call keeps while it has no messages. */
  rest: Claimed | undefined;
  /** Set while the call is idle, waiting for more messages of its run. */
  #idle: IdleCall | undefined;
  /** The endpoint has the journal entries up to this position. */
  #hasUpTo: number;
  #attempt: AttemptInFlight | undefined;
  readonly #callByToken: Map<ClaimToken, Call>;
  readonly #held = new Map<ClaimToken, Held>();
  /** By each message that the checkpoint names. */
  readonly #kept = new Map<ClaimToken, Kept>();
  /** Checkpoints without a complete answer yet, including the next message of an idle call. */
  readonly #saving = new Set<Kept>();
  #isEnding = false;

  constructor(first: Claimed, sinceMs: Millis, callByToken: Map<ClaimToken, Call>) {
    this.first = first;
    this.#callByToken = callByToken;
    this.#hasUpTo = first.message.settings.run?.callType === 'step' ? (first.journal?.position ?? -1) : -1;
    this.#hold({ claimed: first, sinceMs });
  }

  /** Whether the call has no messages, and no checkpoint but the caller's can add one. */
  get isEmpty(): boolean {
    return this.#held.size === 0 && this.#saving.size <= 1;
  }

  /** Whether its request has ended. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Notes the attempt whose request is being sent. */
  begun(attempt: AttemptInFlight): void {
    this.#attempt = attempt;
  }

  /**
   * Carries out a checkpoint that names the messages `done` and `failed`. `save` gets them and returns the answer. A repeated
   * checkpoint gets the same answer as the first time. If `save` throws, the error is rethrown and the call keeps its messages.
   */
  checkpoint(
    { done, failed }: { done: readonly ClaimToken[]; failed: readonly ClaimToken[] },
    hash: string,
    save: Save,
  ): CheckpointAnswer | Promise<CheckpointAnswer> {
    const named = [...done, ...failed];
    const [first = -1] = named;
    const earlier = this.#kept.get(first);
    if (earlier) return earlier.hash === hash ? earlier.answer : LOST;
    const held = named.flatMap((token) => this.#held.get(token) ?? []);
    if (this.#isEnding || held.length < named.length) return LOST;
    this.#attempt?.extend();
    const kept: Kept = { hash, named, answer: Promise.resolve(LOST), appended: new Set() };
    for (const token of named) {
      this.#held.delete(token);
      this.#kept.set(token, kept);
    }
    this.#saving.add(kept);
    kept.answer = this.#save(kept, { done: held.slice(0, done.length), failed: held.slice(done.length) }, save);
    return kept.answer;
  }

  /** Keeps the request open, with its time limit paused, until `linger` is over. Returns the next message, if there is one. */
  async stay(linger: IdleCall): Promise<Claimed | undefined> {
    this.#idle = linger;
    this.#attempt?.pause();
    const next = await linger.over;
    this.#idle = undefined;
    this.#attempt?.extend();
    return next;
  }

  /** Ends an idle call without a message. */
  endLinger(): void {
    this.#idle?.end();
  }

  /** Notes that the endpoint gets the journal up to `position`. Returns the position up to which it already had it. */
  tell(position: number): number {
    const had = this.#hasUpTo;
    this.#hasUpTo = Math.max(had, position);
    return had;
  }

  /** Ends the call with the outcome of its request. Returns the outcome of each message that it still has. */
  async end(outcome: Outcome, endedAtMs: Millis): Promise<CallEnd[]> {
    this.#isEnding = true;
    this.endLinger();
    for (const { answer } of this.#saving) await answer.then(nextOf).catch(() => {});
    for (const token of [...this.#held.keys(), ...this.#kept.keys()]) this.#callByToken.delete(token);
    this.#kept.clear();
    const held = [...this.#held.values()];
    for (const each of held) each.claimed.durationMs = endedAtMs - each.sinceMs;
    return endsOf(
      held.map(({ claimed }) => claimed),
      this.first,
      outcome,
    );
  }

  async #save(kept: Kept, { done, failed }: Omit<Given, 'hold'>, save: Save): Promise<CheckpointAnswer> {
    const named = [...done, ...failed];
    const hold = (held: Held): void => {
      kept.appended.add(held.claimed.claimToken);
      this.#hold({ ...held, from: kept });
    };
    try {
      const answer = await save({ done, failed, hold });
      if (answer.kind === 'ended') this.#restore(kept, named);
      else for (const { claimed, from } of named) this.#forget(from, claimed.claimToken);
      // The messages in `done` may have been attempted by another worker by now, so the call does not get them back.
      if (answer.kind === 'lost') for (const each of failed) this.#hold(each);
      const next = nextOf(answer);
      if (next !== undefined) void next.finally(() => this.#saving.delete(kept));
      else this.#saving.delete(kept);
      return answer;
    } catch (error) {
      this.#restore(kept, named);
      this.#saving.delete(kept);
      throw error;
    }
  }

  #hold(held: Held): void {
    const { claimToken } = held.claimed;
    this.#held.set(claimToken, held);
    this.#callByToken.set(claimToken, this);
  }

  /** Undoes a checkpoint that saved nothing. */
  #restore({ named }: Kept, held: readonly Held[]): void {
    for (const token of named) this.#kept.delete(token);
    for (const each of held) this.#hold(each);
  }

  /** Notes that a message is settled. A checkpoint is not repeated any more once all messages that it appended are settled. */
  #forget(from: Kept | undefined, claimToken: ClaimToken): void {
    if (!from) return;
    from.appended.delete(claimToken);
    if (from.appended.size > 0) return;
    for (const token of from.named) {
      this.#kept.delete(token);
      this.#callByToken.delete(token);
    }
  }
}

function nextOf(answer: CheckpointAnswer): Promise<unknown> | undefined {
  return answer.kind === 'saved' ? answer.next : undefined;
}
