/** The rule by which publishes are refused, with clients and a server that are simulated to the millisecond. */
import { beforeEach, describe, expect, test } from 'vitest';
import { FairQueue } from '../../src/engine/admission/fair-queue.ts';
import { Admission } from '../../src/engine/admission/publish-gate.ts';

const TARGET_MS = 500;
const BUSY = 1;
const QUIET = 2;

interface Client {
  projectId: number;
  /** The wait after a response before the next publish. */
  pauseMs: number;
  nextAtMs: number;
}

interface Seen {
  delaysMs: number[];
  shed: number;
  retryAfterS: number[];
}

/** Clients that wait for each response and obey retry times, and a server that saves a number of publishes a second. */
class World {
  readonly #admission = new Admission(TARGET_MS);
  readonly #clients: Client[] = [];
  readonly #waiting = new FairQueue<{ client: Client; enteredMs: number }>();
  readonly #seen = new Map<number, Seen>();
  #nowMs = 0;
  #credit = 0;
  perSecond: number;

  constructor(perSecond: number) {
    this.perSecond = perSecond;
  }

  add(projectId: number, count: number, pauseMs = 0): void {
    for (let nth = 0; nth < count; nth += 1) {
      this.#clients.push({ projectId, pauseMs, nextAtMs: this.#nowMs + (pauseMs * nth) / count });
    }
  }

  leaveOnly(count: number): void {
    this.#clients.length = count;
  }

  /** The outcomes of publishes since the last call, by project. */
  run(ms: number): (projectId: number) => Seen {
    this.#seen.clear();
    for (const endMs = this.#nowMs + ms; this.#nowMs < endMs; this.#nowMs += 1) this.#step();
    return (projectId) => this.#of(projectId);
  }

  #step(): void {
    for (const client of this.#clients) if (client.nextAtMs <= this.#nowMs) this.#publish(client);
    this.#credit = Math.min(200, this.#credit + this.perSecond / 1_000);
    const done: { client: Client; enteredMs: number }[] = [];
    this.#credit -= this.#waiting.takeInto(done, Math.floor(this.#credit));
    for (const { client, enteredMs } of done) {
      this.#admission.leave(client.projectId, enteredMs, this.#nowMs);
      this.#of(client.projectId).delaysMs.push(this.#nowMs - enteredMs);
      client.nextAtMs = this.#nowMs + Math.max(1, client.pauseMs);
    }
  }

  #publish(client: Client): void {
    const refusal = this.#admission.refuse(client.projectId, this.#nowMs);
    if (refusal === undefined) {
      this.#admission.enter(client.projectId, this.#nowMs);
      this.#waiting.push(client.projectId, { client, enteredMs: this.#nowMs }, 1);
      client.nextAtMs = Infinity;
      return;
    }
    const seen = this.#of(client.projectId);
    seen.shed += 1;
    seen.retryAfterS.push(refusal);
    client.nextAtMs = this.#nowMs + 1_000 * refusal;
  }

  #of(projectId: number): Seen {
    const seen = this.#seen.get(projectId) ?? { delaysMs: [], shed: 0, retryAfterS: [] };
    this.#seen.set(projectId, seen);
    return seen;
  }
}

describe('nothing is refused', () => {
  test.each([20, 200, 5_000])('of 64 connections, when %i are saved a second', (perSecond) => {
    const world = new World(perSecond);
    world.add(BUSY, 64);
    expect(world.run(20_000)(BUSY).shed).toBe(0);
  });

  test('of 1,500 connections, when all are saved within the target', () => {
    const world = new World(4_000);
    world.add(BUSY, 1_500);
    expect(world.run(10_000)(BUSY).shed).toBe(0);
  });

  test('of a burst that is saved soon after', () => {
    const world = new World(4_000);
    world.add(BUSY, 3_000, 5_000);
    expect(world.run(20_000)(BUSY).shed).toBe(0);
  });
});

describe('of 2,000 connections, when 800 are saved a second', () => {
  let world: World;
  let busy: Seen;
  let quiet: Seen;
  beforeEach(() => {
    world = new World(800);
    world.add(BUSY, 2_000);
    world.add(QUIET, 20, 1_000);
    world.run(5_000);
    const seen = world.run(10_000);
    busy = seen(BUSY);
    quiet = seen(QUIET);
  });

  test('as many are refused as needed to save the others in about the target time', () => {
    expect(busy.shed).toBeGreaterThan(1_000);
    expect(Math.max(...busy.delaysMs)).toBeLessThan(2 * TARGET_MS);
    expect(busy.delaysMs.toSorted((a, b) => a - b)[busy.delaysMs.length >> 1]).toBeGreaterThan(TARGET_MS / 2);
  });

  test('the server is kept busy', () => {
    expect(busy.delaysMs.length + quiet.delaysMs.length).toBeGreaterThan(0.97 * 800 * 10);
  });

  test('refused publishes are told when the earlier ones, including refused ones, will be done', () => {
    expect(Math.min(...busy.retryAfterS)).toBeGreaterThanOrEqual(1);
    expect(Math.max(...busy.retryAfterS)).toBe(3);
  });

  test('those of another project that sends little are neither refused nor delayed', () => {
    expect(quiet.shed).toBe(0);
    expect(quiet.delaysMs.length).toBeGreaterThan(195);
    expect(Math.max(...quiet.delaysMs)).toBeLessThan(30);
  });

  test('nothing is refused any more once most clients have gone', () => {
    world.leaveOnly(300);
    world.run(5_000);
    expect(world.run(5_000)(BUSY).shed).toBe(0);
  });
});

test('all are refused while nothing is saved at all, and none soon after saving continues', () => {
  const world = new World(4_000);
  world.add(BUSY, 600, 200);
  expect(world.run(5_000)(BUSY).shed).toBe(0);
  world.perSecond = 0;
  world.run(3_000);
  world.add(BUSY, 2_000, 1_000);
  expect(world.run(1_000)(BUSY).shed).toBeGreaterThan(0);
  world.perSecond = 4_000;
  world.run(5_000);
  expect(world.run(5_000)(BUSY).shed).toBe(0);
});

test('a project without any saved publish may have a few in progress, and more while all projects together have few', () => {
  const admission = new Admission(TARGET_MS);
  const enter = (projectId: number, count: number): void => {
    for (let nth = 0; nth < count; nth += 1) admission.enter(projectId, 0);
  };
  const atMs = 2 * TARGET_MS;
  enter(QUIET, 123);
  enter(BUSY, 4);
  expect(admission.refuse(BUSY, atMs)).toBeUndefined();
  enter(QUIET, 1);
  expect(admission.refuse(BUSY, atMs)).toBe(30);
  admission.leave(BUSY, 0, 0);
  enter(QUIET, 1);
  expect(admission.refuse(BUSY, atMs)).toBeUndefined();
});

describe('a project is not limited', () => {
  let admission: Admission;
  beforeEach(() => {
    admission = new Admission(TARGET_MS);
    for (let nth = 0; nth < 128; nth += 1) admission.enter(QUIET, 0);
    for (let nth = 0; nth < 8; nth += 1) admission.enter(BUSY, 0);
  });

  test('because some waited too long, while others did not', () => {
    for (const [enteredMs, doneMs] of [
      [450, 500],
      [0, 600],
      [990, 1_000],
    ] as const) {
      if (enteredMs > 0) admission.enter(BUSY, enteredMs);
      admission.leave(BUSY, enteredMs, doneMs);
    }
    expect(admission.refuse(BUSY, 1_000)).toBeUndefined();
  });

  test('because of the first that is saved after a pause', () => {
    admission.leave(BUSY, 0, 5_000);
    expect(admission.refuse(BUSY, 5_001)).toBeUndefined();
  });

  test('because some waited exactly as long as they may', () => {
    admission.leave(BUSY, 0, 500);
    expect(admission.refuse(BUSY, 500)).toBeUndefined();
  });
});

test('a project is limited from the end of the first interval in which all waited too long', () => {
  const admission = new Admission(TARGET_MS);
  for (let nth = 0; nth < 132; nth += 1) admission.enter(BUSY, 0);
  admission.enter(BUSY, 400);
  admission.leave(BUSY, 400, 500);
  admission.leave(BUSY, 0, 999);
  expect(admission.refuse(BUSY, 999)).toBeUndefined();
  admission.leave(BUSY, 0, 1_000);
  expect(admission.refuse(BUSY, 1_000)).toBeGreaterThan(0);
});

describe('a limited project', () => {
  let admission: Admission;
  beforeEach(() => {
    admission = new Admission(TARGET_MS);
    for (let nth = 0; nth < 128; nth += 1) admission.enter(QUIET, 0);
    for (let nth = 0; nth < 20; nth += 1) admission.enter(BUSY, 0);
    admission.leave(BUSY, 0, 600);
  });

  /** Another publish is saved at `doneMs`, after `delayMs`. */
  function finish(delayMs: number, doneMs: number): void {
    admission.enter(BUSY, doneMs - delayMs);
    admission.leave(BUSY, doneMs - delayMs, doneMs);
  }

  test('stays limited while the fastest waits for more than half of the target', () => {
    finish(251, 1_100);
    expect(admission.refuse(BUSY, 1_100)).toBeGreaterThan(0);
  });

  test('is no longer limited once one waits for half of the target', () => {
    finish(250, 1_100);
    expect(admission.refuse(BUSY, 1_100)).toBeUndefined();
  });

  test('is no longer limited when none of its publishes is in progress, however many arrive then', () => {
    for (let nth = 0; nth < 19; nth += 1) admission.leave(BUSY, 0, 700);
    for (let nth = 0; nth < 19; nth += 1) admission.enter(BUSY, 700);
    expect(admission.refuse(BUSY, 700)).toBeUndefined();
  });
});
