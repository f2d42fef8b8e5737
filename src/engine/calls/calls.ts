/**
 * The calls of endpoints that are under way on this worker. A call is one HTTP request that delivers a message of a run, until
 * the endpoint has answered it. It holds messages of the run: at first the one that it delivers; with each checkpoint it gives
 * some up, which are delivered then, and claims the ones that it continues with. The outcome of the call is the outcome of each
 * message that it still holds at its end (contract K).
 */
import { takesCheckpoints } from '../../protocol/workflow/checkpoints.ts';
import type { Run } from '../../workflow/model.ts';
import type { Claimed, ClaimToken, Millis, Outcome } from '../model.ts';
import type { AttemptInFlight } from '../ports.ts';
import type { CheckpointAnswer } from './commands.ts';
import type { StepParts } from './drafts.ts';
import { type CallEnd, endsOf } from './ends.ts';
import type { IdleCall } from './idle-calls.ts';

/** A message that a call holds. */
export interface Held {
  claimed: Claimed;
  /** Since when, as elapsed time. */
  sinceMs: Millis;
  /** The checkpoint that appended it; absent: the call delivers it. */
  from?: Kept | undefined;
}

/** What a call does with a checkpoint that names messages which it holds. */
export interface Given {
  done: readonly Held[];
  failed: readonly Held[];
  /** Adds a message with which the call continues. */
  hold: (held: Held) => void;
}

/** The call that a checkpoint is of. */
export interface Around extends Given {
  call: Call;
  /** Messages saved as claimed, with slots, when the call asks for the next message instead of continuing with these. */
  arrivals: Claimed[];
}

type Save = (given: Given) => Promise<CheckpointAnswer>;

/** A checkpoint that is being saved, or whose answer may be asked for again since it was lost. */
interface Kept {
  hash: string;
  /** The messages that it names. */
  named: readonly ClaimToken[];
  answer: Promise<CheckpointAnswer>;
  /** What it appended and the call still holds. */
  appended: Set<ClaimToken>;
}

const LOST: CheckpointAnswer = { kind: 'lost' };

export class Calls {
  /** By the messages that calls hold, and by those that are done with a checkpoint that may be repeated. */
  readonly #byToken = new Map<ClaimToken, Call>();

  /** The call that delivers the message; `undefined`: its endpoint may send no checkpoints. */
  begin(claimed: Claimed, sinceMs: Millis): Call | undefined {
    const { run } = claimed.message.settings;
    return run && takesCheckpoints(run) ? new Call(claimed, sinceMs, this.#byToken) : undefined;
  }

  find(claimToken: ClaimToken): Call | undefined {
    return this.#byToken.get(claimToken);
  }
}

export class Call {
  /** The message that it delivers. */
  readonly first: Claimed;
  /** Its run, as it was read last. */
  run: Run | undefined;
  /** What its steps have beside their bodies. */
  stepParts: StepParts | undefined;
  /** Whose slot it has, once it holds nothing any more. */
  rest: Claimed | undefined;
  /** Set while the call is idle, waiting for more messages of its run. */
  #idle: IdleCall | undefined;
  /** Its endpoint has the entries of the journal up to this position. */
  #hasUpTo: number;
  #attempt: AttemptInFlight | undefined;
  readonly #callByToken: Map<ClaimToken, Call>;
  readonly #held = new Map<ClaimToken, Held>();
  /** By each message that is done with them. */
  readonly #kept = new Map<ClaimToken, Kept>();
  /** Those whose answers, with what is next, are not there yet. */
  readonly #saving = new Set<Kept>();
  #isEnding = false;

  constructor(first: Claimed, sinceMs: Millis, callByToken: Map<ClaimToken, Call>) {
    this.first = first;
    this.#callByToken = callByToken;
    this.#hasUpTo = first.message.settings.run?.callType === 'step' ? (first.journal?.position ?? -1) : -1;
    this.#hold({ claimed: first, sinceMs });
  }

  /** Whether it holds nothing, and no other checkpoint than the one that asks may change that. */
  get isEmpty(): boolean {
    return this.#held.size === 0 && this.#saving.size <= 1;
  }

  /** Whether its request has ended. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** The request is being sent. */
  begun(attempt: AttemptInFlight): void {
    this.#attempt = attempt;
  }

  /**
   * Carries out a checkpoint that names the messages `done` and `failed`. `save` is given them, and answers what the call goes
   * on with. The same checkpoint again is answered as the first time. Throws what `save` throws; the call then holds what it
   * held.
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

  /** Keeps the request open until `linger` is over, with its time limit paused. Returns the message that has come. */
  async stay(linger: IdleCall): Promise<Claimed | undefined> {
    this.#idle = linger;
    this.#attempt?.pause();
    const next = await linger.over;
    this.#idle = undefined;
    this.#attempt?.extend();
    return next;
  }

  /** Nothing more is to come to it. */
  endLinger(): void {
    this.#idle?.end();
  }

  /** The endpoint gets the entries up to `position`. Returns the position up to which it already had them. */
  tell(position: number): number {
    const had = this.#hasUpTo;
    this.#hasUpTo = Math.max(had, position);
    return had;
  }

  /** The outcome of each message that the call still holds, once the request has ended with `outcome`. */
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
      // Of what is done, somebody else may have made an attempt by now.
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

  /** Nothing was saved. */
  #restore({ named }: Kept, held: readonly Held[]): void {
    for (const token of named) this.#kept.delete(token);
    for (const each of held) this.#hold(each);
  }

  /** A message is done: the checkpoint that appended all such messages is not repeated any more. */
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
