/**
 * One call of the endpoint, as the server counts it: which messages it holds, and how what was done is kept
 * (contract K). A call that has been given up is told so by its next checkpoint, and stops.
 */
import { WorkflowError, WorkflowNonRetryableError } from './errors.ts';
import type { Reply } from './http.ts';
import { messageOf, type Server } from './server.ts';
import type { RawStep, Step } from './types.ts';

/** Of a message that the call holds. */
export type Token = string;

/** What enters the journal. */
export type Append =
  | { step: Step; delay?: string; notBefore?: number }
  | { call: Publish }
  | { invoke: Publish }
  | { wait: { eventId: string; timeout: string; step: Step } };

export interface Publish {
  destination: string;
  headers: Record<string, string>;
  body?: string;
}

/** An entry that is kept. With a token the call holds it and goes on with it. */
export interface Entry {
  messageId: string;
  token?: Token;
}

/** A message that is handed to the call in place of a request: what a delivery of it would bring. */
export interface Handover {
  messageId: string;
  token: Token;
  retried: number;
  /** Entries of the journal that the call does not have yet, up to the message's own. */
  entries?: RawStep[];
  /** With the result of a call to somebody else. */
  headers?: Record<string, string[]>;
  body?: string;
}

/** What a request to the server says of the call. */
interface Told {
  done?: readonly Token[];
  append?: readonly Append[];
  failed?: readonly ({ token: Token } & Reply)[];
  lingerMs?: number;
}

interface Kept {
  entries: Entry[];
  next?: Handover;
}

export interface CallLimits {
  /** How long it may go on. */
  budgetMs?: number | undefined;
  /** How long it may stay for what comes next. */
  lingerMs: number;
  /** How many bytes its last step may have to come with the end of the run. */
  lastStepBytesMax: number;
}

/** Hears which entries the server has kept for `append`. */
type OnKept = (append: readonly Append[], entries: readonly Entry[]) => Promise<void>;

/** What is due at the end of a linger still has to be claimed. */
const LINGER_GRACE_MS = 250;
export const LINGER_MS_MAX = 10_000;

/** The call has no right to go on: the server has given it up (`lost`), or its run has ended. */
export class CallOver extends Error {
  override name = 'CallOver';
  readonly reason: 'lost' | 'ended';

  constructor(message: string, reason: 'lost' | 'ended') {
    super(message);
    this.reason = reason;
  }
}

/** Whether the server has refused what was to be kept, and will do so again. */
export function isRefused(error: unknown): boolean {
  if (error instanceof WorkflowNonRetryableError) return true;
  return error instanceof WorkflowError && error.status === 422;
}

export class Call {
  readonly #server: Server;
  readonly #onKept: OnKept;
  readonly #abort = new AbortController();
  readonly #endsAtMs: number;
  /** How long it stays for what comes next; 0: it does not. */
  readonly lingerMs: number;
  /** How many bytes the last step may have to come with the end of the run; 0: none comes with it. */
  readonly lastStepBytesMax: number;
  /** Of the message that it delivers. */
  readonly #delivered: Token;
  #held: Token[];
  /** What is told to the server and not answered yet. */
  readonly #underWay = new Set<Promise<Kept>>();
  /** Nothing is told any more, but by the answer. */
  #isClosed = false;

  constructor(server: Server, token: Token, limits: CallLimits, onKept: OnKept) {
    const { budgetMs = Number.POSITIVE_INFINITY, lingerMs, lastStepBytesMax } = limits;
    this.#server = server;
    this.#onKept = onKept;
    this.#delivered = token;
    this.#held = [token];
    this.#endsAtMs = performance.now() + budgetMs;
    this.lingerMs = lingerMs;
    this.lastStepBytesMax = lastStepBytesMax;
  }

  /** Aborts when the call is over: the workflow's own work may stop with it. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Of a message that it holds, if it holds any. */
  get token(): Token {
    return this.#held[0] ?? this.#delivered;
  }

  /** Whether its time is used up, so that what comes next is left to another call. */
  get isLate(): boolean {
    return performance.now() >= this.#endsAtMs;
  }

  /**
   * Says that the messages `done` need nothing more, and keeps `append`. Throws `CallOver`; `WorkflowNonRetryableError`
   * when a limit is reached; `WorkflowError` otherwise.
   */
  async checkpoint(done: readonly Token[], append: readonly Append[]): Promise<Entry[]> {
    return (await this.#tell({ done, append })).entries;
  }

  /** As `checkpoint`, when nothing else is under way. Answers what comes next of the run, if it comes soon. */
  async stay(done: readonly Token[], append: readonly Append[]): Promise<Handover | undefined> {
    return (await this.#tell({ done, append, ...this.#linger })).next;
  }

  /**
   * As `checkpoint` without anything to keep, when the call is about to end. What it has delivered is done with its answer.
   */
  async finish(done: readonly Token[]): Promise<void> {
    if (done.some((token) => token !== this.#delivered)) await this.checkpoint(done, []);
  }

  /**
   * Says that all that the call holds has failed, as if `reply` were its answer. Answers what comes next, if it comes soon.
   * Throws as `checkpoint` does: then nobody has been told.
   */
  async fail({ status, headers, body }: Reply): Promise<Handover | undefined> {
    const { lingerMs } = this.#linger;
    if (lingerMs === undefined || this.#held.length === 0 || this.#isClosed) return undefined;
    const failed = this.#held.map((token) => ({ token, status, headers, body }));
    return (await this.#tell({ failed, lingerMs })).next;
  }

  /** Resolves once the server has answered all that it was told: then it is known what the call holds. */
  async answered(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  /**
   * Tells the server nothing more. Answers the token of a message that the call holds then, if it holds any. Throws if that is
   * not known, since something was told without an answer.
   */
  async close(): Promise<Token | undefined> {
    this.#isClosed = true;
    const outcomes = await Promise.allSettled(this.#underWay);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected' && !isRefused(outcome.reason)) throw outcome.reason;
    }
    return this.#held[0];
  }

  get #linger(): { lingerMs?: number } {
    const wantedMs = this.lingerMs === 0 ? 0 : Math.min(this.lingerMs + LINGER_GRACE_MS, LINGER_MS_MAX);
    const lingerMs = Math.floor(Math.min(wantedMs, this.#endsAtMs - performance.now()));
    return lingerMs > 0 ? { lingerMs } : {};
  }

  async #tell(told: Told): Promise<Kept> {
    if (this.#isClosed) return new Promise(() => {});
    const telling = this.#send(told);
    this.#underWay.add(telling);
    try {
      return await telling;
    } finally {
      this.#underWay.delete(telling);
    }
  }

  async #send(told: Told): Promise<Kept> {
    const named = [...(told.done ?? []), ...(told.failed ?? []).map(({ token }) => token)];
    const { status, text } = await this.#server.send({
      method: 'POST',
      path: '/v2/waypost/checkpoints',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(told),
      token: named[0] ?? this.#delivered,
      isRepeatable: true,
    });
    if (status === 409) {
      const { error, reason } = JSON.parse(text) as { error: string; reason: 'lost' | 'ended' };
      const over = new CallOver(error, reason);
      this.#abort.abort(over);
      throw over;
    }
    if (status === 412 || status === 413) throw new WorkflowNonRetryableError(messageOf(text));
    if (status !== 200) throw new WorkflowError(`the server has not kept a step: ${messageOf(text)}`, status);
    const kept = JSON.parse(text) as Kept;
    const gained = [...kept.entries, ...(kept.next ? [kept.next] : [])].flatMap(({ token }) => token ?? []);
    this.#held = [...this.#held.filter((token) => !named.includes(token)), ...gained];
    await this.#onKept(told.append ?? [], kept.entries);
    return kept;
  }
}
