/** A client of several servers, as one behind a load balancer is: each call goes to any of those that are up. */
import type { SeededRandom } from '../../src/testing/seeded-random.ts';
import { Client, type Reply } from '../crash/client.ts';
import type { Workers } from './workers.ts';

// Longer than a worker is ever frozen here: whoever gives up on a request leaves it in the server's hands nevertheless.
const PATIENCE_MS = 90_000;

export class BalancedClient extends Client {
  readonly #workers: Workers;
  readonly #random: SeededRandom;
  readonly #clients = new Map<string, Client>();

  constructor(workers: Workers, random: SeededRandom) {
    super('http://127.0.0.1');
    this.#workers = workers;
    this.#random = random;
  }

  override async call(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    headers: Record<string, string> = {},
    body = '',
  ): Promise<Reply> {
    const up = this.#workers.up();
    if (up.length === 0) return { kind: 'unknown' };
    const reply = await this.#clientOf(this.#random.choose(up).url).call(method, path, headers, body);
    // Whoever cannot say whether its commit happened says 503 too.
    return reply.kind === 'refused' && reply.status === 503 ? { kind: 'unknown' } : reply;
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), ...Array.from(this.#clients.values(), (client) => client.close())]);
  }

  #clientOf(url: string): Client {
    const known = this.#clients.get(url);
    if (known !== undefined) return known;
    const client = new Client(url, PATIENCE_MS);
    this.#clients.set(url, client);
    return client;
  }
}
