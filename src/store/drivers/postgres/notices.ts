/**
 * Notifies other workers that something is due earlier than they expect, that accounts have changed, or that messages in
 * flight were cancelled.
 *
 * Notifications of the database are sent outside the transactions: inside, each commit would wait for all others that
 * notify. Delivery does not depend on them. If one is lost, or the server has none, the worker learns the change at its
 * next heartbeat; an attempt of a cancelled message then continues to its end.
 */
import type { ClaimToken } from '../../../engine/model.ts';
import type { Clock } from '../../../engine/ports.ts';
import type { StoreEvents } from '../../connection.ts';
import { locationOf } from './connections/url.ts';
import type { PostgresDriver } from './driver.ts';
import type { Listening } from './listening.ts';

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
/** At most one notice in this time: a worker that receives one claims everything that is due. */
const PAUSE_MS = 20;
/** A worker learns of what is due later from a heartbeat. */
const SOON_MS = 10_000;

export class Notices {
  readonly #driver: Pick<PostgresDriver, 'execute'>;
  readonly #clock: Clock;
  readonly #sender: string;
  readonly #events: StoreEvents;
  readonly #listening: Listening | undefined;
  #toSendMs = Infinity;
  #sending = false;
  #isClosed = false;

  readonly #channel: string;

  /**
   * `sender`: ignores its own notices. `events`: reports those of other workers. `listening`: shared by the stores of this worker on
   * the server; absent: it does not listen.
   */
  constructor(
    driver: Pick<PostgresDriver, 'execute'>,
    { url, clock, sender }: { url: string; clock: Clock; sender: string },
    events: StoreEvents,
    listening: Listening | undefined,
  ) {
    this.#driver = driver;
    this.#clock = clock;
    this.#sender = sender;
    this.#events = events;
    this.#listening = listening;
    this.#channel = channelOf(locationOf(url).schema);
    listening?.add(this.#channel, {
      onNotification: (payload) => this.#receive(payload),
      // Notices sent while it was not connected are lost: look at once.
      onGap: () => events.onDue(clock.nowMs()),
    });
  }

  /** Projects, tokens or keys have changed. */
  publishAccountsChange(): void {
    void this.#send(`${this.#sender} ${ACCOUNTS}`);
  }

  /** The messages of these claims, which other workers may have, were cancelled. */
  publishCancelled(claimTokens: readonly ClaimToken[]): void {
    for (let at = 0; at < claimTokens.length; at += CANCELLED_MAX) {
      const tokens = claimTokens.slice(at, at + CANCELLED_MAX);
      void this.#send(`${this.#sender} ${CANCELLED} ${tokens.join(' ')}`);
    }
  }

  /** An unclaimed message is due at `dueAtMs`. */
  publishDue(dueAtMs: number): void {
    if (this.#isClosed || dueAtMs > this.#clock.nowMs() + SOON_MS) return;
    this.#toSendMs = Math.min(this.#toSendMs, dueAtMs);
    if (!this.#sending) void this.#sendAll();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#listening?.remove(this.#channel);
  }

  async #sendAll(): Promise<void> {
    this.#sending = true;
    while (this.#toSendMs !== Infinity && !this.#isClosed) {
      const payload = `${this.#sender} ${this.#toSendMs}`;
      this.#toSendMs = Infinity;
      await this.#send(payload);
      await new Promise<void>((resolve) => this.#clock.startTimer(PAUSE_MS, resolve));
    }
    this.#sending = false;
  }

  /** A notice is lost while the database is away; so is everything else that needs the database then. */
  async #send(payload: string): Promise<void> {
    await this.#driver.execute(`select pg_notify('${this.#channel}', $1)`, [payload]).catch(() => {});
  }

  #receive(payload: string): void {
    const [sender, what, ...claimTokens] = payload.split(' ');
    if (sender === this.#sender) return;
    const dueAtMs = Number(what);
    if (what === ACCOUNTS) this.#events.onAccountsChanged();
    else if (what === CANCELLED) this.#events.onCancelled(claimTokens.map(Number));
    else if (Number.isSafeInteger(dueAtMs)) this.#events.onDue(dueAtMs);
  }
}
