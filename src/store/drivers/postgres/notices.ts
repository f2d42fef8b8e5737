/**
 * How do workers tell each other that something is due sooner than they expect, that accounts have changed, or that messages in flight were cancelled?
 *
 * By a notification of the database, outside the transactions: inside, each commit would wait for all others that
 * notify. Nothing depends on it. If a notice is lost, or the server has none, the worker learns of it at its next
 * heartbeat; an attempt whose message was cancelled then goes on until it ends by itself.
 */
import type { ClaimToken } from '../../../engine/model.ts';
import type { Clock } from '../../../engine/ports.ts';
import type { StoreEvents } from '../../connection.ts';
import type { Listening } from './listening.ts';

export interface NoticesOptions {
  /** The stores of this worker on the same server share it. Absent: do not listen. */
  listening: Listening | undefined;
  /** Where the tables are: each store has a channel of its own. */
  schema: string | undefined;
  clock: Clock;
  /** What other workers have told is reported here. */
  events: StoreEvents;
  /** Names the sender, which ignores its own notices. */
  sender: string;
  /** Sends one statement outside a transaction. */
  send: (text: string, params: string[]) => Promise<unknown>;
}

const CHANNEL = 'waypost_due';

/** Of the store with this schema. */
export function channelOf(schema: string | undefined): string {
  return schema === undefined ? CHANNEL : `${CHANNEL}_${schema}`;
}
/** Sent instead of a time. Programs that do not know it ignore it. */
const ACCOUNTS = 'accounts';
/** Followed by claim tokens. */
const CANCELLED = 'cancelled';
/** Claims in one notice, whose payload is at most 8,000 bytes. */
const CANCELLED_MAX = 400;
/** At most one notice in this time: a worker that hears one looks at all that is due. */
const PAUSE_MS = 20;
/** A worker learns of what is due later from a heartbeat. */
const SOON_MS = 10_000;

export class Notices {
  readonly #options: NoticesOptions;
  #toSendMs = Infinity;
  #sending = false;
  #isClosed = false;

  readonly #channel: string;

  constructor(options: NoticesOptions) {
    const { listening, schema, clock, events } = options;
    this.#options = options;
    this.#channel = channelOf(schema);
    listening?.add(this.#channel, {
      hear: (payload) => this.#hear(payload),
      // Notices sent while it was not connected are lost: look at once.
      noteGap: () => events.onDue(clock.nowMs()),
    });
  }

  /** Tells the others that projects, tokens or keys have changed. */
  tellOfAccounts(): void {
    void this.#send(`${this.#options.sender} ${ACCOUNTS}`);
  }

  /** Tells the others, one of which may have these claims, that their messages were cancelled. */
  tellOfCancelled(claimTokens: readonly ClaimToken[]): void {
    for (let at = 0; at < claimTokens.length; at += CANCELLED_MAX) {
      const tokens = claimTokens.slice(at, at + CANCELLED_MAX);
      void this.#send(`${this.#options.sender} ${CANCELLED} ${tokens.join(' ')}`);
    }
  }

  /** Tells the others that something unclaimed is due at `dueAtMs`. */
  tell(dueAtMs: number): void {
    if (this.#isClosed || dueAtMs > this.#options.clock.nowMs() + SOON_MS) return;
    this.#toSendMs = Math.min(this.#toSendMs, dueAtMs);
    if (!this.#sending) void this.#sendAll();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#options.listening?.remove(this.#channel);
  }

  async #sendAll(): Promise<void> {
    this.#sending = true;
    while (this.#toSendMs !== Infinity && !this.#isClosed) {
      const payload = `${this.#options.sender} ${this.#toSendMs}`;
      this.#toSendMs = Infinity;
      await this.#send(payload);
      await new Promise<void>((resolve) => this.#options.clock.startTimer(PAUSE_MS, resolve));
    }
    this.#sending = false;
  }

  /** A notice is lost while the database is away; so is everything else that needs the database then. */
  async #send(payload: string): Promise<void> {
    await this.#options.send(`select pg_notify('${this.#channel}', $1)`, [payload]).catch(() => {});
  }

  #hear(payload: string): void {
    const { events } = this.#options;
    const [sender, what, ...claimTokens] = payload.split(' ');
    if (sender === this.#options.sender) return;
    const dueAtMs = Number(what);
    if (what === ACCOUNTS) events.onAccountsChanged();
    else if (what === CANCELLED) events.onCancelled(claimTokens.map(Number));
    else if (Number.isSafeInteger(dueAtMs)) events.onDue(dueAtMs);
  }
}
