/**
 * Clients that send the same publish several times at once, to several servers, with one deduplication id, until one response
 * reports success, as the official clients do. Each id may create only one message.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '../crash/client.ts';
import type { Ledger } from '../crash/ledger.ts';
import type { Load } from '../crash/mixed-load.ts';
import { newTag, recordAnswer } from '../crash/publishing.ts';

const AT_ONCE = 3;
const WORKERS = 2;

export class RepeatLoad {
  readonly #load: Load;
  readonly #slowness: number;
  readonly #ids = new Map<string, Set<string>>();

  /** `slowness`: factor of the pauses. */
  constructor(load: Load, slowness = 1) {
    this.#load = load;
    this.#slowness = slowness;
  }

  async run(client: Client, signal: AbortSignal): Promise<void> {
    const work = async () => {
      while (!signal.aborted) {
        await this.#publishOnce(client);
        await sleep(this.#load.random.int(5, 30) * this.#slowness);
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
  }

  /** The number of used ids. */
  get count(): number {
    return this.#ids.size;
  }

  /** Ids with several messages, according to the responses and to the arrivals. */
  madeTwice(ledger: Ledger): string[] {
    for (const { tag, messageId } of ledger.arrivals()) this.#ids.get(tag)?.add(messageId);
    return [...this.#ids].filter(([, ids]) => ids.size > 1).map(([tag, ids]) => `${tag}: ${[...ids].join(', ')}`);
  }

  async #publishOnce(client: Client): Promise<void> {
    const { ledger, endpoints, random } = this.#load;
    const tag = newTag();
    const ids = new Set<string>();
    this.#ids.set(tag, ids);
    ledger.attempted(tag);
    const headers = {
      'Upstash-Deduplication-Id': tag,
      ...(random.chance(0.5) ? { 'Upstash-Delay': `0.${random.int(1, 6)}s` } : {}),
    };
    const publish = async () => {
      const reply = await client.publish(endpoints.ok, tag, headers);
      const id = recordAnswer(ledger, tag, reply, reply.kind === 'ok' ? reply.json : undefined);
      if (id !== undefined) ids.add(id);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, publish));
    if (ids.size === 0) await publish(); // outcome unknown: the client tries again or gives up
  }
}
