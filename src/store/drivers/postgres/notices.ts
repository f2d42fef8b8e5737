/**
 * How do workers tell each other that something is due sooner than they expect, or that accounts have changed?
 *
 * By a notification of the database, outside the transactions: inside, each commit would wait for all others that
 * notify. Nothing depends on it. If a notice is lost, or the server has none, the worker learns of it at its next
 * heartbeat.
 */
import pg from 'pg';
import type { Clock, Timer } from '../../../engine/ports.ts';
import { clientOptions } from './connections.ts';

export interface NoticesOptions {
  /** The URL to listen at: not of a pooler that changes connections between transactions. Empty: do not listen. */
  listenUrl: string;
  timeoutMs: number;
  clock: Clock;
  /** Names the sender, which ignores its own notices. */
  sender: string;
  /** Sends one statement outside a transaction. */
  send: (text: string, params: string[]) => Promise<unknown>;
}

const CHANNEL = 'waypost_due';
/** Sent instead of a time. Programs that do not know it ignore it. */
const ACCOUNTS = 'accounts';
/** At most one notice in this time: a worker that hears one looks at all that is due. */
const PAUSE_MS = 20;
/** A worker learns of what is due later from a heartbeat. */
const SOON_MS = 10_000;
const RECONNECT_MS = { first: 200, max: 10_000 };

export class Notices {
  readonly #options: NoticesOptions;
  #listener: (dueAtMs: number) => void = () => {};
  #onAccounts: () => void = () => {};
  #client: pg.Client | undefined;
  #reconnectMs = RECONNECT_MS.first;
  #timer: Timer | undefined;
  #toSendMs = Infinity;
  #sending = false;
  #isClosed = false;

  constructor(options: NoticesOptions) {
    this.#options = options;
    if (options.listenUrl !== '') void this.#connect();
  }

  /** From now on `listener` is told what other workers make due. */
  listen(listener: (dueAtMs: number) => void): void {
    this.#listener = listener;
  }

  /** From now on `listener` is told when others have changed projects, tokens or keys. */
  listenForAccounts(listener: () => void): void {
    this.#onAccounts = listener;
  }

  /** Tells the others that projects, tokens or keys have changed. */
  tellOfAccounts(): void {
    void this.#send(`${this.#options.sender} ${ACCOUNTS}`);
  }

  /** Tells the others that something unclaimed is due at `dueAtMs`. */
  tell(dueAtMs: number): void {
    if (this.#isClosed || dueAtMs > this.#options.clock.nowMs() + SOON_MS) return;
    this.#toSendMs = Math.min(this.#toSendMs, dueAtMs);
    if (!this.#sending) void this.#sendAll();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#client?.end().catch(() => {});
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
    await this.#options.send(`select pg_notify('${CHANNEL}', $1)`, [payload]).catch(() => {});
  }

  async #connect(): Promise<void> {
    const { listenUrl, timeoutMs } = this.#options;
    const client = new pg.Client(clientOptions(listenUrl, timeoutMs));
    client.on('error', () => {}); // the event `end` follows
    client.on('end', () => this.#reconnect(client));
    client.on('notification', ({ payload = '' }) => this.#hear(payload));
    this.#client = client;
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
      this.#reconnectMs = RECONNECT_MS.first;
      // Notices sent while it was not connected are lost: look at once.
      this.#listener(this.#options.clock.nowMs());
    } catch {
      await client.end().catch(() => {});
      this.#reconnect(client);
    }
  }

  #reconnect(client: pg.Client): void {
    if (this.#isClosed || this.#client !== client) return;
    this.#client = undefined;
    this.#timer = this.#options.clock.startTimer(this.#reconnectMs, () => void this.#connect());
    this.#reconnectMs = Math.min(this.#reconnectMs * 2, RECONNECT_MS.max);
  }

  #hear(payload: string): void {
    const [sender, what] = payload.split(' ');
    if (sender === this.#options.sender) return;
    const dueAtMs = Number(what);
    if (what === ACCOUNTS) this.#onAccounts();
    else if (Number.isSafeInteger(dueAtMs)) this.#listener(dueAtMs);
  }
}
