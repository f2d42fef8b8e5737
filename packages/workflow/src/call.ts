/**
 * One HTTP call of the server to the endpoint: the messages that the call owns, and the checkpoints that save the results
 * of the call (contract K). A call that has lost its messages gets a conflict response to its next checkpoint, and stops.
 */
import { WorkflowError, WorkflowNonRetryableError } from './errors.ts';
import type { Reply } from './http.ts';
import { messageOf, type Server } from './server.ts';
import type { RawStep, Step } from './types.ts';

/** The fencing token of a message that the call owns. */
export type Token = string;

/** An entry to add to the journal. */
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

/** A saved entry. If it has a token, the call owns the message of the entry and may continue after the entry. */
export interface SavedEntry {
  messageId: string;
  token?: Token;
}

/** A message that the server hands to an open call instead of delivering it in a new one. */
export interface Handover {
  messageId: string;
  token: Token;
  retried: number;
  /** The entries of the journal that the call has not received yet, up to the entry of the message. */
  entries?: RawStep[];
  /** The headers of the callback, if the message brings the response to a `context.call`. */
  headers?: Record<string, string[]>;
  body?: string;
}

/** The body of a checkpoint. */
interface CheckpointRequest {
  done?: readonly Token[];
  append?: readonly Append[];
  failed?: readonly ({ token: Token } & Reply)[];
  lingerMs?: number;
}

interface CheckpointResponse {
  entries: SavedEntry[];
  next?: Handover;
}

export interface CallLimits {
  /** Maximum duration of the call. */
  budgetMs?: number | undefined;
  /** Maximum time that the call stays open without work. */
  lingerMs: number;
  /** Maximum size of a last step that is sent together with the end of the run. */
  lastStepBytesMax: number;
}

/** Called with the entries that the server has saved for `append`. */
type OnSaved = (append: readonly Append[], entries: readonly SavedEntry[]) => Promise<void>;

/** Added to `lingerMs`: a message that becomes due at the end of the wait still has to be claimed. */
const LINGER_GRACE_MS = 250;
export const LINGER_MS_MAX = 10_000;

/**
 * The call must not continue: the server has given the call's messages to another call (`lost`), or the run has ended
 * (`ended`).
 */
export class CallOver extends Error {
  override name = 'CallOver';
  readonly reason: 'lost' | 'ended';

  constructor(message: string, reason: 'lost' | 'ended') {
    super(message);
    this.reason = reason;
  }
}

/** Whether the server rejected a checkpoint permanently, so that a retry is useless. */
export function isRejected(error: unknown): boolean {
  if (error instanceof WorkflowNonRetryableError) return true;
  return error instanceof WorkflowError && error.status === 422;
}

export class Call {
  readonly #server: Server;
  readonly #onSaved: OnSaved;
  readonly #abort = new AbortController();
  readonly #endsAtMs: number;
  /** How long the call stays open without work. With 0, the call ends at once. */
  readonly lingerMs: number;
  /** Maximum size of a last step that is sent together with the end of the run. With 0, no step is sent in this way. */
  readonly lastStepBytesMax: number;
  /** The token of the delivered message. */
  readonly #delivered: Token;
  #owned: Token[];
  /** Checkpoints that have no response yet. */
  readonly #pending = new Set<Promise<CheckpointResponse>>();
  /** After `close`, only the response of the call reaches the server. */
  #isClosed = false;

  constructor(server: Server, token: Token, limits: CallLimits, onSaved: OnSaved) {
    const { budgetMs = Number.POSITIVE_INFINITY, lingerMs, lastStepBytesMax } = limits;
    this.#server = server;
    this.#onSaved = onSaved;
    this.#delivered = token;
    this.#owned = [token];
    this.#endsAtMs = performance.now() + budgetMs;
    this.lingerMs = lingerMs;
    this.lastStepBytesMax = lastStepBytesMax;
  }

  /** Aborts when the call must not continue, so that the workflow can stop its own work. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The token of a message that the call owns; otherwise the token of the delivered message. */
  get token(): Token {
    return this.#owned[0] ?? this.#delivered;
  }

  /** Whether the time budget is used up, so that the run continues in another call. */
  get isOverBudget(): boolean {
    return performance.now() >= this.#endsAtMs;
  }

  /**
   * Saves `append` and finishes the messages `done`. Throws `CallOver`; `WorkflowNonRetryableError` when a limit is
   * reached; `WorkflowError` otherwise.
   */
  async checkpoint(done: readonly Token[], append: readonly Append[]): Promise<SavedEntry[]> {
    return (await this.#track({ done, append })).entries;
  }

  /**
   * Like `checkpoint`, for a call that has no other work in progress. Returns the next message of the run if that message
   * becomes due while the call is open.
   */
  async waitForNext(done: readonly Token[], append: readonly Append[]): Promise<Handover | undefined> {
    return (await this.#track({ done, append, ...this.#lingerMember })).next;
  }

  /** Finishes the messages `done` when the call is about to end. The delivered message is finished by the response itself. */
  async finish(done: readonly Token[]): Promise<void> {
    if (done.some((token) => token !== this.#delivered)) await this.checkpoint(done, []);
  }

  /**
   * Reports that all messages of the call have failed with `reply`. Returns the next message of the run if that message
   * becomes due while the call is open. Throws like `checkpoint` if the failure could not be reported.
   */
  async fail({ status, headers, body }: Reply): Promise<Handover | undefined> {
    const { lingerMs } = this.#lingerMember;
    if (lingerMs === undefined || this.#owned.length === 0 || this.#isClosed) return undefined;
    const failed = this.#owned.map((token) => ({ token, status, headers, body }));
    return (await this.#track({ failed, lingerMs })).next;
  }

  /** Resolves once all checkpoints have a response, so that the owned messages are known. */
  async responded(): Promise<void> {
    await Promise.allSettled(this.#pending);
  }

  /**
   * Stops all further checkpoints. Returns the token of a message that the call still owns, if there is one. Throws if a
   * checkpoint got no response, since ownership is unknown then.
   */
  async close(): Promise<Token | undefined> {
    this.#isClosed = true;
    const outcomes = await Promise.allSettled(this.#pending);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected' && !isRejected(outcome.reason)) throw outcome.reason;
    }
    return this.#owned[0];
  }

  get #lingerMember(): { lingerMs?: number } {
    const wantedMs = this.lingerMs === 0 ? 0 : Math.min(this.lingerMs + LINGER_GRACE_MS, LINGER_MS_MAX);
    const lingerMs = Math.floor(Math.min(wantedMs, this.#endsAtMs - performance.now()));
    return lingerMs > 0 ? { lingerMs } : {};
  }

  async #track(request: CheckpointRequest): Promise<CheckpointResponse> {
    if (this.#isClosed) return new Promise(() => {});
    const response = this.#send(request);
    this.#pending.add(response);
    try {
      return await response;
    } finally {
      this.#pending.delete(response);
    }
  }

  async #send(request: CheckpointRequest): Promise<CheckpointResponse> {
    const reportedTokens = [...(request.done ?? []), ...(request.failed ?? []).map(({ token }) => token)];
    const { status, text } = await this.#server.send({
      method: 'POST',
      path: '/v2/waypost/checkpoints',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
      token: reportedTokens[0] ?? this.#delivered,
      isRepeatable: true,
    });
    if (status === 409) {
      const { error, reason } = JSON.parse(text) as { error: string; reason: 'lost' | 'ended' };
      const over = new CallOver(error, reason);
      this.#abort.abort(over);
      throw over;
    }
    if (status === 412 || status === 413) throw new WorkflowNonRetryableError(messageOf(text));
    if (status !== 200) throw new WorkflowError(`the server did not save a step: ${messageOf(text)}`, status);
    const saved = JSON.parse(text) as CheckpointResponse;
    const newTokens = [...saved.entries, ...(saved.next ? [saved.next] : [])].flatMap(({ token }) => token ?? []);
    this.#owned = [...this.#owned.filter((token) => !reportedTokens.includes(token)), ...newTokens];
    await this.#onSaved(request.append ?? [], saved.entries);
    return saved;
  }
}
