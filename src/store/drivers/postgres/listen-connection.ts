/** The connection on which this worker listens for notifications of all its stores on one server. */
import pg from 'pg';
import type { Clock, Timer } from '../../../engine/ports.ts';
import { BoundClient } from './connections/channel-binding.ts';
import { destroyUnlessClosed } from './connections/stream.ts';
import { clientOptions } from './connections/url.ts';
import type { PostgresContext } from './context.ts';

export interface Listener {
  onNotification(payload: string): void;
  /** Called whenever listening starts, also after a reconnect. Earlier notifications may be lost. */
  onGap(): void;
}

const RECONNECT_MS = { first: 200, max: 10_000 };

/** Connects when the first channel is added, and disconnects when the last one is removed. */
export class ListenConnection {
  readonly #clock: Clock;
  readonly #options: ReturnType<typeof clientOptions>;
  readonly #listeners = new Map<string, Listener>();
  #client: pg.Client | undefined;
  #isConnected = false;
  #reconnectMs = RECONNECT_MS.first;
  #timer: Timer | undefined;

  /** `url` must not lead through a pooler in transaction mode. */
  constructor({ url, timeoutMs, clock }: Pick<PostgresContext, 'url' | 'timeoutMs' | 'clock'>) {
    this.#clock = clock;
    this.#options = clientOptions(url, timeoutMs);
  }

  /** `channel` is an identifier that needs no quotes. */
  add(channel: string, listener: Listener): void {
    this.#listeners.set(channel, listener);
    if (this.#client && this.#isConnected) void this.#listen(this.#client, [channel]);
    else if (!this.#client && !this.#timer) void this.#connect();
  }

  async remove(channel: string): Promise<void> {
    this.#listeners.delete(channel);
    const client = this.#client;
    if (this.#listeners.size > 0) {
      // Nothing awaits the result: if it fails, later notifications of the channel have no listener.
      if (this.#isConnected) void client?.query(`unlisten ${channel}`).catch(() => {});
      return;
    }
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#clear();
    if (!client) return;
    destroyUnlessClosed(client, this.#clock);
    await client.end().catch(() => {});
  }

  async #connect(): Promise<void> {
    this.#timer = undefined;
    const { config, encryption, isBound } = this.#options;
    const { ssl } = encryption;
    const client = new (isBound ? BoundClient : pg.Client)({ ...config, ssl });
    client.on('error', () => {}); // the event `end` follows
    client.on('end', () => this.#reconnect(client));
    client.on('notification', ({ channel, payload = '' }) => this.#listeners.get(channel)?.onNotification(payload));
    this.#client = client;
    try {
      await client.connect();
      if (this.#client !== client) return;
      this.#isConnected = true;
      if (await this.#listen(client, [...this.#listeners.keys()])) this.#reconnectMs = RECONNECT_MS.first;
    } catch (error) {
      encryption.recordFailure(ssl, error);
      await client.end().catch(() => {});
      this.#reconnect(client);
    }
  }

  /** On failure, as on a standby, returns false and closes the connection. The next connection adds all channels. */
  async #listen(client: pg.Client, channels: readonly string[]): Promise<boolean> {
    try {
      for (const channel of channels) await client.query(`listen ${channel}`);
    } catch {
      await client.end().catch(() => {});
      return false;
    }
    for (const channel of channels) this.#listeners.get(channel)?.onGap();
    return true;
  }

  #reconnect(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#clear();
    this.#timer = this.#clock.startTimer(this.#reconnectMs, () => void this.#connect());
    this.#reconnectMs = Math.min(this.#reconnectMs * 2, RECONNECT_MS.max);
  }

  #clear(): void {
    this.#client = undefined;
    this.#isConnected = false;
  }
}
