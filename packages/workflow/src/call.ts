/**
 * One call of the endpoint, as the server counts it: which messages it holds, and how what was done is kept
 * (contract K). A call that has been given up is told so by its next checkpoint, and stops.
 */
import { WorkflowError, WorkflowNonRetryableError } from './errors.ts';
import { messageOf, type Server } from './server.ts';
import type { Step } from './types.ts';

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

/** The call has no right to go on: the server has given it up (`lost`), or its run has ended. */
export class CallOver extends Error {
  override name = 'CallOver';
  readonly reason: 'lost' | 'ended';

  constructor(message: string, reason: 'lost' | 'ended') {
    super(message);
    this.reason = reason;
  }
}

export class Call {
  readonly #server: Server;
  readonly #abort = new AbortController();
  readonly #endsAtMs: number;
  #token: Token;

  constructor(server: Server, token: Token, budgetMs = Number.POSITIVE_INFINITY) {
    this.#server = server;
    this.#token = token;
    this.#endsAtMs = performance.now() + budgetMs;
  }

  /** Aborts when the call is over: the workflow's own work may stop with it. */
  get signal(): AbortSignal {
    return this.#abort.signal;
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
    const { status, text } = await this.#server.send({
      method: 'POST',
      path: '/v2/waypost/checkpoints',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ done, append }),
      token: this.#token,
      isRepeatable: true,
    });
    if (status === 409) {
      const { error, reason } = JSON.parse(text) as { error: string; reason: 'lost' | 'ended' };
      const over = new CallOver(error, reason);
      this.#abort.abort(over);
      throw over;
    }
    if (status === 412) throw new WorkflowNonRetryableError(messageOf(text));
    if (status !== 200) throw new WorkflowError(`the server has not kept a step: ${messageOf(text)}`, status);
    const { entries } = JSON.parse(text) as { entries: Entry[] };
    this.#token = entries.find(({ token }) => token !== undefined)?.token ?? this.#token;
    return entries;
  }
}
