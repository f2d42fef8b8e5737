/** Prints the states of messages from the server's log, as they change. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@upstash/qstash';

type LogEvent = Awaited<ReturnType<Client['logs']>>['logs'][number];

const POLL_MS = 100;

const STATE_COLOURS: Record<string, number> = { DELIVERED: 32, ERROR: 33, RETRY: 33, FAILED: 31, CANCELED: 31 };

export class Narrator {
  readonly #client: Client;
  readonly #write: (line: string) => void;
  readonly #colour: boolean;
  readonly #titleById = new Map<string, string>();
  readonly #statesById = new Map<string, string[]>();

  constructor(client: Client, write: (line: string) => void, colour: boolean) {
    this.#client = client;
    this.#write = write;
    this.#colour = colour;
  }

  /** Follows the message under `title`. */
  follow(title: string, messageId: string): void {
    this.#titleById.set(messageId, title);
    this.#statesById.set(messageId, []);
  }

  /** Resolves when every message has reached the state in `stateById`; rejects after `limitMs`. */
  async waitForStates(stateById: Record<string, string>, limitMs: number): Promise<void> {
    const pending = new Set(Object.keys(stateById));
    for (let waitedMs = 0; waitedMs < limitMs; waitedMs += POLL_MS) {
      for (const event of await this.#newEvents()) {
        this.#print(event);
        if (stateById[event.messageId] === event.state) pending.delete(event.messageId);
      }
      if (pending.size === 0) return;
      await delay(POLL_MS);
    }
    const missing = [...pending].map((id) => `"${this.#titleById.get(id)}" did not reach ${stateById[id]}`);
    throw new Error(`after ${limitMs} ms ${missing.join(', ')}`);
  }

  /** Log entries since the last call, oldest first. */
  async #newEvents(): Promise<LogEvent[]> {
    const messageIds = [...this.#titleById.keys()];
    const { logs } = await this.#client.logs({ messageIds, count: 1000 });
    const seenById = new Map<string, number>();
    return logs.reverse().filter((event) => {
      const states = this.#statesById.get(event.messageId);
      const seen = seenById.get(event.messageId) ?? 0;
      seenById.set(event.messageId, seen + 1);
      if (!states || seen < states.length) return false;
      states.push(event.state);
      return true;
    });
  }

  #print(event: LogEvent): void {
    const time = new Date(event.time).toISOString().slice(11, 23);
    const title = (this.#titleById.get(event.messageId) ?? '').padEnd(24);
    this.#write(`  ${time}  ${title}  ${this.#paint(event.state)}${explain(event)}`);
  }

  #paint(state: string): string {
    const padded = state.padEnd(9);
    const colour = STATE_COLOURS[state];
    return this.#colour && colour ? `\u001B[${colour}m${padded}\u001B[0m` : padded;
  }
}

function explain(event: LogEvent): string {
  if (event.state === 'ERROR') return `  ${event.error ?? ''}`;
  if (event.state === 'FAILED') return '  moved to the dead letter queue';
  if (event.nextDeliveryTime) return `  next attempt in ${event.nextDeliveryTime - event.time} ms`;
  return '';
}
