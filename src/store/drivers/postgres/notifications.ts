/**
 * Notifies other workers (`pg_notify`) that a message is due earlier than they expect, that accounts have changed, or
 * that messages in flight were cancelled.
 *
 * Notifications are sent outside the transactions: inside them, each commit would wait for all other commits that notify.
 * Delivery does not depend on notifications. If a notification is lost, or the server does not support them, a worker
 * learns of due messages and changed accounts at its next heartbeat; an attempt of a cancelled message then continues to
 * its end.
 */
import type { ClaimToken } from '../../../engine/model.ts';
import type { Clock } from '../../../engine/ports.ts';
import type { StoreEvents } from '../../connection.ts';
import { locationOf } from './connections/url.ts';
import type { PostgresDriver } from './driver.ts';
import type { ListenConnection } from './listen-connection.ts';

const CHANNEL = 'waypost_due';

/** The notification channel of the store in this schema. */
export function channelOf(schema: string | undefined): string {
  return schema === undefined ? CHANNEL : `${CHANNEL}_${schema}`;
}
/** Stands instead of a due time if accounts have changed. Programs that do not know this word ignore the notification. */
const ACCOUNTS = 'accounts';
/** The first word of a payload with claim tokens. */
const CANCELLED = 'cancelled';
/** Maximum claims in one notification: PostgreSQL limits its payload to 8,000 bytes. */
const CANCELLED_MAX = 400;
/** Minimum pause between two notifications of due messages: a notified worker claims all messages that are due. */
const PAUSE_MS = 20;
/** Messages that are due later are not notified: other workers find them at a heartbeat. */
const NOTIFIED_AHEAD_MS = 10_000;

export class Notifications {
  readonly #driver: Pick<PostgresDriver, 'execute'>;
  readonly #clock: Clock;
  readonly #sender: string;
  readonly #events: StoreEvents;
  readonly #listenConnection: ListenConnection | undefined;
  #dueAtMs = Infinity;
  #sending = false;
  #isClosed = false;

  readonly #channel: string;

  /**
   * `sender` identifies this worker, which ignores its own notifications. `events` receives the notifications of other
   * workers. `listening` is shared by the stores of this worker on the server; if undefined, this store only sends.
   */
  constructor(
    driver: Pick<PostgresDriver, 'execute'>,
    { url, clock, sender }: { url: string; clock: Clock; sender: string },
    events: StoreEvents,
    listenConnection: ListenConnection | undefined,
  ) {
    this.#driver = driver;
    this.#clock = clock;
    this.#sender = sender;
    this.#events = events;
    this.#listenConnection = listenConnection;
    this.#channel = channelOf(locationOf(url).schema);
    listenConnection?.add(this.#channel, {
      onNotification: (payload) => this.#receive(payload),
      // Notifications sent while the connection was down are lost, so the worker claims at once.
      onGap: () => events.onDue(clock.nowMs()),
    });
  }

  /** Notifies that projects, tokens or keys have changed. */
  publishAccountsChange(): void {
    void this.#send(`${this.#sender} ${ACCOUNTS}`);
  }

  /** Notifies that the messages of these claims, which other workers may have, were cancelled. */
  publishCancelled(claimTokens: readonly ClaimToken[]): void {
    for (let at = 0; at < claimTokens.length; at += CANCELLED_MAX) {
      const tokens = claimTokens.slice(at, at + CANCELLED_MAX);
      void this.#send(`${this.#sender} ${CANCELLED} ${tokens.join(' ')}`);
    }
  }

  /** Notifies that an unclaimed message is due at `dueAtMs`. */
  publishDue(dueAtMs: number): void {
    if (this.#isClosed || dueAtMs > this.#clock.nowMs() + NOTIFIED_AHEAD_MS) return;
    this.#dueAtMs = Math.min(this.#dueAtMs, dueAtMs);
    if (!this.#sending) void this.#sendDue();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#listenConnection?.remove(this.#channel);
  }

  async #sendDue(): Promise<void> {
    this.#sending = true;
    while (this.#dueAtMs !== Infinity && !this.#isClosed) {
      const payload = `${this.#sender} ${this.#dueAtMs}`;
      this.#dueAtMs = Infinity;
      await this.#send(payload);
      await new Promise<void>((resolve) => this.#clock.startTimer(PAUSE_MS, resolve));
    }
    this.#sending = false;
  }

  /** Ignores errors: while the database is unavailable, other workers can claim nothing either. */
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
