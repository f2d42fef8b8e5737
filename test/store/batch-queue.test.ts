/** The commands that form the next transaction, out of all that wait. */
import { describe, expect, it } from 'vitest';
import { emptyMinute } from '../../src/engine/minutes/counts.ts';
import { BatchQueue } from '../../src/store/batches/batch-queue.ts';
import type { WriteCommand } from '../../src/store/operations/all.ts';
import { MESSAGE_AT, type NewContentRow, type NewMessageRow } from '../../src/store/operations/messages/columns.ts';
import type { StoredNewMessage } from '../../src/store/operations/messages/rows.ts';

interface Named {
  name: string;
  command: WriteCommand;
}

/** An accept of `rows` small messages of a project. */
function accept(projectId: number, rows = 1): WriteCommand {
  const message = [] as unknown as NewMessageRow;
  message[MESSAGE_AT.project_id] = projectId;
  const stored: StoredNewMessage = { message, content: [] as unknown as NewContentRow, events: [] };
  return { method: 'accept', args: { messages: Array.from({ length: rows }, () => stored), nowMs: 0 } };
}

const heartbeat: WriteCommand = {
  method: 'heartbeat',
  args: { worker: 'w', timeoutMs: 1, isLeaving: false, accountsVersion: 1 },
};
const numbers: WriteCommand = { method: 'reserveNumbers', args: { count: 1 } };
const pause: WriteCommand = {
  method: 'setQueuePaused',
  args: { projectId: 1, name: 'q', isPaused: true, nowMs: 0 },
};
const minutes: WriteCommand = { method: 'addMinutes', args: { projectId: 1, minutes: [emptyMinute(0)] } };

function release(rows = 1): WriteCommand {
  const claims = Array.from({ length: rows }, (_, key) => ({ key, projectId: 1, claimToken: key }));
  return { method: 'release', args: { claims, nowMs: 0 } };
}

class NamedQueue {
  readonly #queue: BatchQueue<Named>;

  constructor(costMax: number) {
    this.#queue = new BatchQueue(costMax);
  }

  add(name: string, command: WriteCommand, times = 1): void {
    for (let time = 0; time < times; time += 1) this.#queue.push({ name, command });
  }

  take(): string[] {
    return this.#queue.take().map(({ name }) => name);
  }

  /** How often each name is in the next batch. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const name of this.take()) counts[name] = (counts[name] ?? 0) + 1;
    return counts;
  }
}

describe('a batch', () => {
  it('takes heartbeats and numbers first, then commands that advance messages, then accepts and counts in rotation', () => {
    const queue = new NamedQueue(200);
    queue.add('minutes', minutes);
    queue.add('accept', accept(1), 2);
    queue.add('release', release());
    queue.add('pause', pause);
    queue.add('numbers', numbers);
    queue.add('heartbeat', heartbeat);
    expect(queue.take()).toEqual(['numbers', 'heartbeat', 'release', 'pause', 'minutes', 'accept', 'accept']);
    expect(queue.take()).toEqual([]);
  });

  it('reserves a quarter of it for accepts, however many others wait', () => {
    const queue = new NamedQueue(200);
    queue.add('accept', accept(1), 500);
    queue.add('release', release(), 500);
    expect(queue.counts()).toEqual({ release: 150, accept: 50 });
    expect(queue.counts()).toEqual({ release: 150, accept: 50 });
  });

  it('reserves the share of accepts even if another command exceeds its limit', () => {
    const queue = new NamedQueue(200);
    queue.add('accept', accept(1), 500);
    queue.add('large', release(512), 2);
    expect(queue.counts()).toEqual({ large: 1, accept: 50 });
    expect(queue.counts()).toEqual({ large: 1, accept: 50 });
  });

  it('reserves no more than accepts need, and gives them unused capacity', () => {
    const queue = new NamedQueue(200);
    queue.add('accept', accept(1), 10);
    queue.add('release', release(), 300);
    expect(queue.counts()).toEqual({ release: 190, accept: 10 });
    queue.add('accept', accept(1), 500);
    expect(queue.counts()).toEqual({ release: 110, accept: 90 });
    expect(queue.counts()).toEqual({ accept: 200 });
  });

  it('ends with the command that fills it, even if that is larger than the whole batch', () => {
    const queue = new NamedQueue(200);
    queue.add('small', accept(1), 199);
    queue.add('large', accept(1, 1_000));
    queue.add('later', accept(1));
    expect(queue.counts()).toEqual({ small: 199, large: 1 });
    expect(queue.counts()).toEqual({ later: 1 });
  });

  it('has accepts pay back the part of a large one that exceeded their share', () => {
    const queue = new NamedQueue(200);
    queue.add('large', accept(1, 300));
    queue.add('accept', accept(1), 500);
    queue.add('release', release(), 2_000);
    expect(queue.counts()).toEqual({ release: 150, large: 1 }); // 250 too many
    for (let batch = 0; batch < 5; batch += 1) expect(queue.counts()).toEqual({ release: 200 });
    expect(queue.counts()).toEqual({ release: 150, accept: 50 });
  });

  it('counts bodies: one of 4 MiB fills it', () => {
    const queue = new NamedQueue(200);
    const large = accept(1);
    if (large.method === 'accept') large.args.messages[0]?.content.push(new Uint8Array(4 * 1024 * 1024));
    queue.add('large', large, 2);
    expect(queue.take()).toEqual(['large']);
    expect(queue.take()).toEqual(['large']);
  });
});

describe('accepts', () => {
  it('of one project keep their order', () => {
    const queue = new NamedQueue(4);
    for (let nth = 0; nth < 10; nth += 1) queue.add(String(nth), accept(1));
    const taken = [queue.take(), queue.take(), queue.take()].flat();
    expect(taken).toEqual(Array.from({ length: 10 }, (_, nth) => String(nth)));
  });

  it('of a project with few commands join the next batch, however many another project has queued', () => {
    const queue = new NamedQueue(100);
    queue.add('much', accept(1), 5_000);
    queue.add('little', accept(2), 3);
    expect(queue.counts()).toEqual({ much: 97, little: 3 });
  });

  it('share batches evenly among projects by rows, however many a request has', () => {
    const queue = new NamedQueue(100);
    queue.add('single', accept(1), 2_000);
    queue.add('batch', accept(2, 20), 100);
    const rows = { single: 0, batch: 0 };
    for (let batch = 0; batch < 10; batch += 1) {
      const counts = queue.counts();
      rows.single += counts['single'] ?? 0;
      rows.batch += 20 * (counts['batch'] ?? 0);
    }
    expect(Math.abs(rows.single - rows.batch)).toBeLessThanOrEqual(40);
  });

  it('of a project that has had a large one wait for the others, even if it sends one at a time', () => {
    const queue = new NamedQueue(20);
    queue.add('other', accept(2), 200);
    queue.add('large', accept(1, 100));
    const batches = [queue.counts()];
    while (!batches.at(-1)?.['large']) batches.push(queue.counts());
    queue.add('large', accept(1, 100));
    let others = 0;
    for (let counts = queue.counts(); !counts['large']; counts = queue.counts()) others += counts['other'] ?? 0;
    expect(others).toBeGreaterThanOrEqual(80);
  });
});
