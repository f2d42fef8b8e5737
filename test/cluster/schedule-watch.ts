/**
 * Watches schedules that trigger every minute: an endpoint checks that each time created one message, on whichever worker
 * (P16).
 */
import { createServer } from 'node:http';
import type { Client } from '../crash/client.ts';
import { eventually } from '../support/eventually.ts';
import { listen, originOf } from '../support/listen.ts';

const SCHEDULES = 5;
const MINUTE_MS = 60_000;
// A trigger during an outage is made up for after the outage.
const LATE_MAX_MS = 30_000;

export class ScheduleWatch {
  readonly #nowMs: () => number;
  readonly #server = createServer((request, response) => {
    const id = String(request.headers['upstash-message-id']);
    const name = request.url?.slice(1) ?? '';
    this.#seen.set(name, (this.#seen.get(name) ?? new Map<string, number>()).set(id, this.#nowMs()));
    request.resume().once('end', () => response.end());
    request.once('error', () => response.destroy()); // its sender was killed
  });
  /** The messages of each schedule with their arrival times, by schedule. */
  readonly #seen = new Map<string, Map<string, number>>();
  readonly #ids: string[] = [];
  /** When the creation of the schedules started and ended. */
  #made = { fromMs: 0, toMs: 0 };
  /** When the pause of the schedules started and ended. */
  #paused = { fromMs: 0, toMs: 0 };

  constructor(nowMs = () => Date.now()) {
    this.#nowMs = nowMs;
  }

  async start(client: Client): Promise<void> {
    await listen(this.#server);
    const fromMs = this.#nowMs();
    for (const name of names()) {
      const url = `${originOf(this.#server)}/${name}`;
      const reply = await client.call('POST', `/v2/schedules/${url}`, { 'Upstash-Cron': '* * * * *' });
      if (reply.kind !== 'ok') throw new Error(`the schedule was not made: ${JSON.stringify(reply)}`);
      this.#ids.push((reply.json as { scheduleId: string }).scheduleId);
    }
    this.#made = { fromMs, toMs: this.#nowMs() };
  }

  /** Stops the triggers: a message that is created during the final checks would have no final state yet. */
  async stop(client: Client): Promise<void> {
    const fromMs = this.#nowMs();
    for (const id of this.#ids) {
      const pause = async () => (await client.call('POST', `/v2/schedules/${id}/pause`)).kind === 'ok';
      await eventually(`${id} to be paused`, pause);
    }
    this.#paused = { fromMs, toMs: this.#nowMs() };
  }

  /** The schedules with more or fewer messages than triggers. Must be called after `stop`. */
  findings(): string[] {
    const times = minutesBetween(this.#made.fromMs, this.#paused.toMs);
    const certain = minutesBetween(this.#made.toMs, this.#paused.fromMs - LATE_MAX_MS);
    return names().flatMap((name) => {
      const count = this.#seen.get(name)?.size ?? 0;
      return count > times || count < certain ? [`${name}: ${count} messages for ${times} times`] : [];
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}

function names(): string[] {
  return Array.from({ length: SCHEDULES }, (_, index) => `schedule-${index + 1}`);
}

function minutesBetween(fromMs: number, toMs: number): number {
  return Math.max(0, Math.floor(toMs / MINUTE_MS) - Math.floor(fromMs / MINUTE_MS));
}
