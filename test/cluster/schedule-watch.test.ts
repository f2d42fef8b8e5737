import { beforeEach, describe, expect, it } from 'vitest';
import { Client, type Reply } from '../crash/client.ts';
import { ScheduleWatch } from './schedule-watch.ts';

const MINUTE_MS = 60_000;

/** Creates schedules, and loses the response to every second pause, starting with the first. */
class LossyClient extends Client {
  readonly paused: string[] = [];
  #made = 0;
  #pauses = 0;

  override async call(_method: string, path: string): Promise<Reply> {
    const ok = { kind: 'ok', status: 200, retryAfter: undefined } as const;
    const id = /^\/v2\/schedules\/(scd_\d)\/pause$/.exec(path)?.[1];
    if (id === undefined) {
      this.#made += 1;
      return { ...ok, json: { scheduleId: `scd_${this.#made}` } };
    }
    this.#pauses += 1;
    if (this.#pauses % 2 === 1) return { kind: 'unknown', why: 'lost' };
    this.paused.push(id);
    return { ...ok, json: undefined };
  }
}

describe('the schedule watch', () => {
  const client = new LossyClient('http://127.0.0.1');
  let nowMs: number;
  let watch: ScheduleWatch;

  beforeEach(async () => {
    // Half a minute after a full minute.
    nowMs = 1_000.5 * MINUTE_MS;
    watch = new ScheduleWatch(() => nowMs);
    await watch.start(client);
    return () => watch.close();
  });

  it('pauses all its schedules, so that no message is created during the final checks', async () => {
    await watch.stop(client);
    expect(client.paused).toEqual(['scd_1', 'scd_2', 'scd_3', 'scd_4', 'scd_5']);
  });

  it('expects no messages for the times after the pause', async () => {
    await watch.stop(client);
    nowMs += 10 * MINUTE_MS;
    expect(watch.findings()).toEqual([]);
  });

  it('expects the messages of the times before the pause, except those of the last half minute', async () => {
    nowMs += 2 * MINUTE_MS;
    await watch.stop(client);
    expect(watch.findings()).toHaveLength(5);
    expect(watch.findings()[0]).toBe('schedule-1: 0 messages for 2 times');
  });
});
