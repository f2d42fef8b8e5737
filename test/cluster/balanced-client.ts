/** A client of several servers behind a load balancer: sends each request to any server that is up. */

import { Client, type Reply } from '../crash/client.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import type { Worker, Workers } from './workers.ts';

// Longer than any freeze of a worker in these tests: a server continues a request after its client has given up.
const PATIENCE_MS = 90_000;

export interface Caller {
  /** Default: the token of the development account. */
  token?: string;
  /** Called with each response that leaves the outcome of the request unknown. */
  onDoubt?: (what: string, worker: Worker) => void;
}

export class BalancedClient extends Client {
  readonly #workers: Pick<Workers, 'up'>;
  readonly #random: SeededRandom;
  readonly #caller: Caller;
  readonly #clients = new Map<string, Client>();
  readonly #replies = new Map<Worker, Record<Reply['kind'], number>>();

  constructor(workers: Pick<Workers, 'up'>, random: SeededRandom, caller: Caller = {}) {
    super('http://127.0.0.1');
    this.#workers = workers;
    this.#random = random;
    this.#caller = caller;
  }

  override async call(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    headers: Record<string, string> = {},
    body = '',
  ): Promise<Reply> {
    const up = this.#workers.up();
    if (up.length === 0) return { kind: 'unknown', why: 'no worker is up' };
    const worker = this.#random.choose(up);
    const said = await this.#clientOf(worker.url).call(method, path, headers, body);
    // A worker that does not know whether its commit succeeded also responds with 503.
    const reply: Reply =
      said.kind === 'refused' && said.status === 503 ? { kind: 'unknown', why: JSON.stringify(said) } : said;
    this.#repliesOf(worker)[reply.kind] += 1;
    if (reply.kind === 'unknown') this.#caller.onDoubt?.(`${method} ${path}: ${reply.why}`, worker);
    return reply;
  }

  /** The number of successful requests to `worker` so far. */
  done(worker: Worker): number {
    return this.#repliesOf(worker).ok;
  }

  /** The number of requests to `worker` with an unknown outcome so far. */
  leftInDoubt(worker: Worker): number {
    return this.#repliesOf(worker).unknown;
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), ...Array.from(this.#clients.values(), (client) => client.close())]);
  }

  #repliesOf(worker: Worker): Record<Reply['kind'], number> {
    const known = this.#replies.get(worker) ?? { ok: 0, refused: 0, unknown: 0 };
    this.#replies.set(worker, known);
    return known;
  }

  #clientOf(url: string): Client {
    const known = this.#clients.get(url);
    if (known !== undefined) return known;
    const client = new Client(url, PATIENCE_MS, this.#caller.token);
    this.#clients.set(url, client);
    return client;
  }
}
