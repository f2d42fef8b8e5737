/** P9: the bounded, fair shares of attempts in flight. */

import { describe, expect, test } from 'vitest';
import { type BacklogKey, backlogKey, parseBacklogKey } from '../../src/engine/lanes/backlog-key.ts';
import { InFlight, type Offer, type SentAttempt } from '../../src/engine/lanes/in-flight.ts';
import { ClaimCapacity } from '../../src/store/operations/claims/claim-capacity.ts';
import { fc } from '../support/fast-check.ts';

const LIMITS = { inFlightMax: 10, inFlightPerOriginMax: 4, inFlightBytesMax: 1_000 };

const A = backlogKey(1, 'a');
const B = backlogKey(1, 'b');

/** The backlogs of one project for that many origins. */
function backlogsOf(projectId: number, count: number): BacklogKey[] {
  return Array.from({ length: count }, (_, nth) => backlogKey(projectId, `${projectId}-${nth}`));
}

/** A state in which `backlogs` are healthy. */
function healthy(limits: typeof LIMITS & { silentMax?: number }, backlogs: BacklogKey[]): InFlight {
  const inFlight = new InFlight(limits);
  for (const backlog of backlogs) answer(inFlight, backlog, 0);
  return inFlight;
}

function answer(inFlight: InFlight, backlog: BacklogKey, atMs: number): void {
  inFlight.noteOutcome(inFlight.noteSent(backlog, atMs));
  inFlight.noteResponse(backlog, atMs);
}

function send(inFlight: InFlight, backlog: BacklogKey, atMs: number, bytes = 0): SentAttempt {
  inFlight.enter(backlog, bytes);
  return inFlight.noteSent(backlog, atMs);
}

/** Starts as many attempts as possible in rotation, one at a time; returns their number. */
function fill(inFlight: InFlight, backlogs: BacklogKey[], bytes = 0): number {
  let started = 0;
  for (let before = -1; before !== started; ) {
    before = started;
    for (const backlog of backlogs) {
      if (!inFlight.fits(bytes) || inFlight.capacityForNew(backlog) === 0) continue;
      inFlight.enter(backlog, bytes);
      started += 1;
    }
  }
  return started;
}

describe('the share of one origin', () => {
  test('is its maximum while most of the capacity is free', () => {
    expect(fill(healthy(LIMITS, [A]), [A])).toBe(4);
  });

  test('is half of all slots when its maximum is larger', () => {
    const inFlight = healthy({ ...LIMITS, inFlightPerOriginMax: 100 }, [A, B]);
    expect([fill(inFlight, [A]), inFlight.freeSlots]).toEqual([5, 5]);
    expect(inFlight.capacityForNew(B)).toBeGreaterThan(0);
  });

  test('is about half of all bytes, however few its messages', () => {
    const inFlight = healthy(LIMITS, [A, B]);
    expect([fill(inFlight, [A], 250), inFlight.freeBytes, inFlight.capacityForNew(B)]).toEqual([2, 500, 4]);
  });

  test('is free again when its attempts end', () => {
    const inFlight = healthy(LIMITS, [A]);
    fill(inFlight, [A]);
    inFlight.leave(A, 0);
    expect([inFlight.capacityForNew(A), inFlight.count]).toEqual([1, 3]);
  });

  test('depends on the bytes that it still has when one of its messages ends', () => {
    const inFlight = healthy(LIMITS, [A]);
    fill(inFlight, [A], 250);
    expect([inFlight.capacityForNew(A), inFlight.mayHandOff(A, 250)]).toEqual([0, true]);
  });
});

describe('the share of one project', () => {
  const limits = { inFlightMax: 200, inFlightPerOriginMax: 100, inFlightBytesMax: 8_000 };
  const [own, theirs] = [backlogsOf(1, 200), backlogsOf(2, 200)];

  test('is seven eighths of all slots while it is alone', () => {
    expect(fill(healthy(limits, own), own)).toBe(175);
  });

  test('leaves most of the remaining slots to others at once', () => {
    const inFlight = healthy(limits, [...own, ...theirs]);
    fill(inFlight, own);
    expect(fill(inFlight, theirs)).toBe(22);
  });

  test('is that of every other project that wants slots too, once enough of its attempts have ended', () => {
    const inFlight = healthy(limits, [...own, ...theirs]);
    fill(inFlight, own);
    fill(inFlight, theirs);
    for (const backlog of own.slice(0, 175)) {
      inFlight.leave(backlog, 0);
      fill(inFlight, [...own, ...theirs]);
    }
    const shares = [inFlight.countOfProject(1), inFlight.countOfProject(2)];
    expect(Math.min(...shares)).toBeGreaterThanOrEqual(7 * inFlight.freeSlots);
    expect(Math.max(...shares)).toBeLessThanOrEqual(7 * (inFlight.freeSlots + 1));
  });

  test('is seven eighths of all bytes, however few its messages', () => {
    const inFlight = healthy(limits, [...own, ...theirs]);
    expect([fill(inFlight, own, 50), inFlight.freeBytes]).toEqual([140, 1_000]);
    expect(inFlight.capacityForNew(backlogKey(2, '2-0'))).toBeGreaterThan(0);
  });
});

describe('backlogs that have not responded recently', () => {
  const limits = { inFlightMax: 800, inFlightPerOriginMax: 100, inFlightBytesMax: 8_000 };
  const [hanging, others] = [backlogsOf(1, 500), backlogsOf(2, 500)];

  test('have half of the slots together, and those of one project seven eighths of that', () => {
    const inFlight = new InFlight(limits);
    expect(fill(inFlight, hanging)).toBe(350);
    expect(fill(inFlight, [...others, ...backlogsOf(3, 100)])).toBe(50);
  });

  test('leave the other half to backlogs of their project that respond', () => {
    const inFlight = healthy(limits, [A]);
    fill(inFlight, hanging);
    expect(inFlight.capacityForNew(A)).toBe(100);
  });

  test('have half of the bytes together', () => {
    const inFlight = new InFlight(limits);
    fill(inFlight, hanging, 100);
    expect(inFlight.freeBytes).toBeGreaterThanOrEqual(4_000);
  });

  test('have each no more than about half of these bytes', () => {
    expect(fill(new InFlight(limits), [A], 100)).toBe(18);
  });

  test('become healthy by a response, with everything that they have in flight', () => {
    const inFlight = new InFlight(limits);
    fill(inFlight, hanging);
    expect(inFlight.capacityForNew(backlogKey(1, 'another'))).toBe(0);
    for (const backlog of hanging.slice(0, 100)) answer(inFlight, backlog, 0);
    expect(inFlight.capacityForNew(backlogKey(1, 'another'))).toBeGreaterThan(0);
  });

  test('count with everything that they have in flight once they are no longer healthy', () => {
    const backlogs = hanging.slice(0, 100);
    const inFlight = healthy(limits, backlogs);
    for (const backlog of backlogs) inFlight.enter(backlog, 0);
    const unknown = () => inFlight.capacityOfProject(1).unknown;
    expect(unknown()).toBe(350);
    for (const backlog of backlogs) inFlight.noteNoResponse(backlog, true);
    expect(unknown()).toBe(250);
    for (const backlog of backlogs) inFlight.leave(backlog, 0);
    expect(unknown()).toBe(350);
  });

  test('are those whose latest attempt timed out, and not those whose attempt was refused', () => {
    const inFlight = healthy(limits, [A, B]);
    inFlight.noteNoResponse(A, true);
    inFlight.noteNoResponse(B, false);
    expect([inFlight.isHealthy(A), inFlight.isHealthy(B)]).toEqual([false, true]);
  });

  test('are those with an attempt that waits for two seconds without any response', () => {
    const inFlight = healthy(limits, [A, B]);
    send(inFlight, A, 1_000);
    send(inFlight, B, 1_000);
    inFlight.noteOutcome(send(inFlight, B, 1_000));
    inFlight.noteResponse(B, 2_500);
    inFlight.findSilent(2_999);
    expect([inFlight.isHealthy(A), inFlight.isHealthy(B)]).toEqual([true, true]);
    send(inFlight, B, 3_000);
    inFlight.findSilent(3_000);
    expect([inFlight.isHealthy(A), inFlight.isHealthy(B)]).toEqual([false, true]);
    inFlight.findSilent(5_000);
    expect(inFlight.isHealthy(B)).toBe(false);
  });

  test('are those whose first attempt keeps waiting, however many follow, and although others are interrupted', () => {
    const inFlight = healthy(limits, [A, B]);
    const [first, second] = [1_000, 1_000, 1_000].map((atMs) => send(inFlight, B, atMs));
    for (const atMs of [1_000, 2_900]) send(inFlight, A, atMs);
    for (const sent of [first, second]) if (sent) inFlight.noteOutcome(sent);
    inFlight.findSilent(3_000);
    expect([inFlight.isHealthy(A), inFlight.isHealthy(B)]).toEqual([false, false]);
  });

  test('are not those whose attempts we interrupted, or whose outcome is still being saved', () => {
    const inFlight = healthy(limits, [A, B]);
    for (const sent of [A, B].map((backlog) => send(inFlight, backlog, 0))) inFlight.noteOutcome(sent);
    inFlight.noteResponse(B, 10);
    inFlight.findSilent(1e9);
    expect([inFlight.isHealthy(A), inFlight.isHealthy(B)]).toEqual([true, true]);
  });

  test('are those with the oldest response, when more have responded than fit into memory', () => {
    const backlogs = backlogsOf(1, 3_000);
    const inFlight = healthy(limits, backlogs);
    expect(backlogs.filter((backlog) => inFlight.isHealthy(backlog))).toEqual(backlogs.slice(-2_048));
  });
});

describe('an attempt without an outcome for two seconds', () => {
  const limits = { inFlightMax: 160, inFlightPerOriginMax: 100, inFlightBytesMax: 8_000, silentMax: 800 };
  const hanging = backlogsOf(1, 700);

  /** Starts as many attempts as possible, again every two seconds until no more may start; returns the time. */
  function hang(inFlight: InFlight, backlogs: BacklogKey[]): number {
    let nowMs = 0;
    for (let before = -1; before !== inFlight.count; nowMs += 2_000) {
      before = inFlight.count;
      inFlight.findSilent(nowMs);
      for (const backlog of backlogs)
        if (inFlight.capacityOf(backlog) > 0 && inFlight.countOf(backlog) === 0) send(inFlight, backlog, nowMs);
    }
    inFlight.findSilent(nowMs);
    return nowMs;
  }

  test('gives up its slot, and still counts for its origin, its project and the memory', () => {
    const inFlight = new InFlight({ ...limits, inFlightPerOriginMax: 1 });
    send(inFlight, A, 0, 500);
    inFlight.findSilent(1_999);
    expect(inFlight.freeSlots).toBe(159);
    inFlight.findSilent(2_000);
    expect([inFlight.freeSlots, inFlight.freeBytes, inFlight.capacityForNew(A)]).toEqual([160, 7_500, 0]);
    expect([inFlight.count, inFlight.countOf(A), inFlight.countOfProject(1), inFlight.busiest(1)]).toEqual([
      1,
      1,
      1,
      [[1, 1]],
    ]);
  });

  test('leaves the slots to a new endpoint of its project, seven eighths of as many as may be silent', () => {
    const inFlight = new InFlight(limits);
    const nowMs = hang(inFlight, hanging);
    expect([inFlight.count, nowMs]).toEqual([700, 22_000]);
    expect([inFlight.freeSlots, inFlight.capacityOfProject(1)]).toEqual([160, { all: 140, unknown: 0 }]);
    const others = new InFlight(limits);
    hang(others, hanging.slice(0, 600));
    expect([others.freeSlots, others.capacityOfProject(1).unknown, others.capacityForNew(A)]).toEqual([160, 70, 70]);
  });

  test('leaves the slots to endpoints that respond, and the silent capacity to other projects, however many hang', () => {
    const inFlight = healthy(limits, [A]);
    hang(inFlight, backlogsOf(1, 2_000));
    expect([inFlight.count, inFlight.capacityForNew(A), inFlight.capacityForNew(backlogKey(2, 'b'))]).toEqual([
      700, 100, 70,
    ]);
  });

  test('is limited to the number that its project may add, when its backlog has many messages', () => {
    const inFlight = new InFlight({ ...limits, inFlightPerOriginMax: 1_000 });
    const backlogs = backlogsOf(1, 6);
    for (let nowMs = 0; nowMs <= 60_000; nowMs += 2_000) {
      inFlight.findSilent(nowMs);
      for (let before = -1; before !== inFlight.count; ) {
        before = inFlight.count;
        for (const backlog of backlogs) if (inFlight.capacityForNew(backlog) > 0) send(inFlight, backlog, nowMs);
      }
    }
    expect(backlogs.map((backlog) => inFlight.countOf(backlog))).toEqual([100, 100, 100, 100, 100, 100]);
    expect([inFlight.freeSlots, inFlight.capacityForNew(A)]).toEqual([160, 70]);
  });

  test('keeps its slot while its backlog responds to others and there is no silent capacity', () => {
    const inFlight = healthy({ ...limits, silentMax: 1 }, [A]);
    send(inFlight, A, 0);
    send(inFlight, A, 0);
    inFlight.noteResponse(A, 1_000);
    inFlight.findSilent(2_000);
    expect([inFlight.freeSlots, inFlight.isHealthy(A)]).toEqual([159, true]);
  });

  test('is found however many attempts have ended before it', () => {
    const inFlight = healthy(limits, [A]);
    for (let nth = 0; nth < 5_000; nth += 1) answer(inFlight, A, 0);
    send(inFlight, B, 0);
    inFlight.findSilent(2_000);
    expect([inFlight.freeSlots, inFlight.silentAtMs]).toEqual([160, undefined]);
  });

  test('needs no slot again while its outcome is saved', () => {
    const inFlight = new InFlight(limits);
    const sent = [1, 2, 3].map(() => send(inFlight, A, 0));
    inFlight.findSilent(2_000);
    for (const each of sent) inFlight.noteOutcome(each);
    send(inFlight, A, 2_000);
    expect(inFlight.freeSlots).toBe(159);
    inFlight.leave(A, 0);
    expect([inFlight.freeSlots, inFlight.count]).toEqual([159, 3]);
    for (let nth = 0; nth < 3; nth += 1) inFlight.leave(A, 0);
    expect([inFlight.freeSlots, inFlight.count]).toEqual([160, 0]);
  });

  test('is not named to a claim with others like it: a thousand names would cost more than they save', () => {
    const inFlight = new InFlight(limits);
    hang(inFlight, hanging.slice(0, 600));
    const { capacityByOrigin, capacityByBacklog } = inFlight.offer(64);
    expect([Object.keys(capacityByOrigin), capacityByBacklog]).toEqual([[], {}]);
  });
});

describe('an origin whose attempts end without a response', () => {
  const limits = { inFlightMax: 1_000, inFlightPerOriginMax: 64, inFlightBytesMax: 1_000 };

  test('has half the capacity each time, but never none', () => {
    const inFlight = new InFlight(limits);
    const rooms = Array.from({ length: 6 }, () => {
      inFlight.noteNoResponse(A);
      return inFlight.capacityForNew(A);
    });
    expect(rooms).toEqual([32, 16, 8, 4, 4, 4]);
    expect(inFlight.capacityForNew(B)).toBe(64);
    expect(inFlight.offer(10).capacityByOrigin).toEqual({ a: 2 });
  });

  test('is reported as held back when it first has the fewest attempts, not again with each failure', () => {
    const inFlight = new InFlight(limits);
    const said = Array.from({ length: 6 }, () => inFlight.noteNoResponse(A));
    expect(said).toEqual([false, false, false, true, false, false]);
  });

  test('starts no attempt when one ends until it has no more than its capacity', () => {
    const inFlight = new InFlight(limits);
    for (let nth = 0; nth < 6; nth += 1) inFlight.enter(A, 10);
    expect(inFlight.mayHandOff(A, 10)).toBe(true);
    for (let nth = 0; nth < 6; nth += 1) inFlight.noteNoResponse(A);
    expect(inFlight.mayHandOff(A, 10)).toBe(false);
    for (let nth = 0; nth < 2; nth += 1) inFlight.leave(A, 10);
    expect([inFlight.capacityForNew(A), inFlight.mayHandOff(A, 10)]).toEqual([0, true]);
  });

  test('has its whole capacity again after as many responses', () => {
    const inFlight = new InFlight(limits);
    for (let failures = 0; failures < 9; failures += 1) inFlight.noteNoResponse(A);
    for (let answers = 0; answers < 59; answers += 1) inFlight.noteResponse(A, 0);
    expect(inFlight.capacityForNew(A)).toBe(63);
    inFlight.noteResponse(A, 0);
    inFlight.noteResponse(A, 0);
    expect(inFlight.capacityForNew(A)).toBe(64);
  });

  test('is remembered only while there are few such origins', () => {
    const inFlight = new InFlight(limits);
    for (let nth = 0; nth < 10_000; nth += 1) inFlight.noteNoResponse(backlogKey(1, `dead-${nth}`));
    const offer = inFlight.offer(128);
    expect(Object.keys(offer.capacityByOrigin).length).toBeLessThan(1_000);
    inFlight.endOffer(offer);
    expect([
      inFlight.capacityForNew(backlogKey(1, 'dead-0')),
      inFlight.capacityForNew(backlogKey(1, 'dead-9999')),
    ]).toEqual([64, 32]);
  });

  test('displaces the oldest one from memory, once there are 512', () => {
    const inFlight = new InFlight(limits);
    const backlogs = backlogsOf(1, 513);
    for (const backlog of backlogs.slice(0, 512)) inFlight.noteNoResponse(backlog);
    const remembered = () => backlogs.filter((backlog) => inFlight.capacityForNew(backlog) === 32);
    expect(remembered()).toEqual(backlogs.slice(0, 512));
    for (const backlog of backlogs.slice(512)) inFlight.noteNoResponse(backlog);
    expect(remembered()).toEqual(backlogs.slice(1));
  });
});

test('reports which share holds back a backlog', () => {
  const limits = { inFlightMax: 160, inFlightPerOriginMax: 4, inFlightBytesMax: 1_000 };
  const [own, cold] = [backlogsOf(1, 200), backlogKey(1, 'cold')];
  const inFlight = healthy(limits, [A, B]);
  expect(inFlight.limitReasonOf(A)).toBeUndefined();
  fill(inFlight, [A]);
  expect(inFlight.limitReasonOf(A)).toBe('origin');
  fill(inFlight, own);
  expect([inFlight.limitReasonOf(B), inFlight.limitReasonOf(cold)]).toEqual([undefined, 'unknown']);
  for (const backlog of own) answer(inFlight, backlog, 0);
  fill(inFlight, own);
  expect([inFlight.limitReasonOf(B), inFlight.limitReasonOf(backlogKey(2, 'c'))]).toEqual(['project', undefined]);
  expect(inFlight.limitReasonOf(A)).toBe('origin');
});

test('reports that a backlog is at the limit of its project, although its origin has capacity', () => {
  const inFlight = healthy({ ...LIMITS, inFlightPerOriginMax: 100 }, [A, B]);
  fill(inFlight, [A]);
  expect([inFlight.limitReasonOf(A), inFlight.limitReasonOf(B)]).toEqual(['origin', undefined]);
});

test('lists the projects with the most attempts', () => {
  const inFlight = new InFlight({ ...LIMITS, inFlightMax: 100 });
  for (const backlog of [...backlogsOf(1, 2), ...backlogsOf(2, 5), ...backlogsOf(3, 3)]) inFlight.enter(backlog, 0);
  expect(inFlight.busiest(2)).toEqual([
    [2, 5],
    [3, 3],
  ]);
  for (const backlog of backlogsOf(2, 5)) inFlight.leave(backlog, 0);
  expect(inFlight.busiest(5)).toEqual([
    [3, 3],
    [1, 2],
  ]);
});

test('no share holds back a backlog while the worker is full', () => {
  const backlogs = backlogsOf(1, 4);
  const inFlight = new InFlight({ ...LIMITS, inFlightMax: 4 });
  for (const backlog of backlogs.slice(0, 3)) inFlight.enter(backlog, 0);
  expect([inFlight.isFull, inFlight.limitReasonOf(A)]).toEqual([false, 'unknown']);
  for (const backlog of backlogs.slice(3)) inFlight.enter(backlog, 0);
  expect([inFlight.isFull, inFlight.limitReasonOf(A)]).toEqual([true, undefined]);
});

test('a slot is handed to the next message of a lane only while its project is within its limit', () => {
  const limits = { inFlightMax: 80, inFlightPerOriginMax: 100, inFlightBytesMax: 1_000 };
  const [own, theirs] = [backlogsOf(1, 100), backlogsOf(2, 100)];
  const inFlight = healthy(limits, [...own, ...theirs]);
  fill(inFlight, own);
  const [backlog = A] = own;
  expect(inFlight.mayHandOff(backlog, 0)).toBe(true);
  fill(inFlight, theirs);
  expect(inFlight.mayHandOff(backlog, 0)).toBe(false);
});

test('a slot is handed on when its project is exactly at its limit of slots and bytes', () => {
  const own = backlogsOf(1, 100);
  const [backlog = A, other = B] = own;
  const slots = healthy({ ...LIMITS, inFlightMax: 86, inFlightPerOriginMax: 100 }, own);
  for (const each of own.slice(0, 76)) slots.enter(each, 0);
  expect([slots.capacityForNew(backlog), slots.mayHandOff(backlog, 0)]).toEqual([0, true]);
  const bytes = healthy(LIMITS, own);
  bytes.enter(backlog, 100);
  bytes.enter(other, 860);
  expect([bytes.capacityForNew(backlog), bytes.mayHandOff(backlog, 100)]).toEqual([0, true]);
});

test('a slot is handed on when nothing else is in flight, although a claim was offered all bytes', () => {
  const inFlight = healthy({ ...LIMITS, inFlightBytesMax: 1 }, [A]);
  inFlight.enter(A, 0);
  inFlight.offer(128);
  expect([inFlight.freeBytes, inFlight.mayHandOff(A, 0)]).toEqual([0, true]);
  inFlight.enter(B, 0);
  expect(inFlight.mayHandOff(A, 0)).toBe(false);
});

test('a message larger than all bytes starts only when it is alone', () => {
  const inFlight = new InFlight(LIMITS);
  expect(inFlight.fits(5_000)).toBe(true);
  inFlight.enter(A, 1);
  expect(inFlight.fits(5_000)).toBe(false);
  expect([inFlight.fits(999), inFlight.fits(1_000)]).toEqual([true, false]);
});

describe('an offer to a claim', () => {
  test('keeps half for messages that are accepted in the meantime', () => {
    const inFlight = healthy(LIMITS, [A]);
    expect(inFlight.offer(128)).toMatchObject({ slots: 5, bytes: 500, defaultCapacity: 2 });
    expect([inFlight.freeSlots, inFlight.freeBytes, inFlight.capacityForNew(A)]).toEqual([5, 500, 2]);
  });

  test('includes the last slot', () => {
    const inFlight = new InFlight({ ...LIMITS, inFlightMax: 1 });
    expect(inFlight.offer(128).slots).toBe(1);
    expect([inFlight.fits(0), inFlight.capacityForNew(A)]).toEqual([false, 0]);
  });

  test('is no larger than requested', () => {
    expect(new InFlight({ ...LIMITS, inFlightMax: 1_000 }).offer(128).slots).toBe(128);
  });

  test('names the capacity of busy origins', () => {
    const inFlight = healthy(LIMITS, [A]);
    inFlight.enter(A, 0);
    inFlight.enter(A, 0);
    expect({ ...inFlight.offer(128).capacityByOrigin }).toEqual({ a: 1 });
  });

  test('names neither origins nor backlogs with capacity for all of it, or with nothing in flight any more', () => {
    const roomy = healthy({ ...LIMITS, inFlightMax: 1_000, inFlightPerOriginMax: 257 }, [A]);
    roomy.enter(A, 0);
    expect(roomy.offer(128)).toMatchObject({ slots: 128, capacityByOrigin: {}, capacityByBacklog: {} });
    const own = backlogsOf(1, 80);
    const inFlight = healthy({ ...LIMITS, inFlightMax: 80 }, own);
    fill(inFlight, own);
    const [first = A] = own;
    inFlight.leave(first, 0);
    const { capacityByOrigin, capacityByBacklog } = inFlight.offer(128);
    expect([capacityByOrigin[parseBacklogKey(first).origin], capacityByBacklog?.[first]]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test('names what a backlog may have of its project, if its origin has more capacity', () => {
    const inFlight = healthy({ ...LIMITS, inFlightPerOriginMax: 100 }, [A, B]);
    for (let nth = 0; nth < 5; nth += 1) answer(inFlight, A, 0);
    for (let nth = 0; nth < 3; nth += 1) inFlight.enter(A, 0);
    const { capacityByOrigin, capacityByBacklog } = inFlight.offer(128);
    expect([{ ...capacityByOrigin }, capacityByBacklog]).toEqual([{}, { [A]: 2 }]);
  });

  test('names no projects and healthy backlogs while there is capacity for all', () => {
    const inFlight = healthy({ ...LIMITS, inFlightMax: 1_000 }, [A]);
    const { projects, unknown } = inFlight.offer(128);
    expect([projects, unknown]).toEqual([undefined, undefined]);
  });

  test('names the limits of projects, if they are lower', () => {
    const own = backlogsOf(1, 80);
    const inFlight = healthy({ ...LIMITS, inFlightMax: 80 }, own);
    fill(inFlight, own);
    expect(inFlight.offer(128)).toMatchObject({
      slots: 5,
      projects: { capacityByProject: { 1: 0 }, defaultCapacity: 5 },
    });
  });

  test('names the limits of projects, and the healthy backlogs, if they are lower', () => {
    const inFlight = healthy({ ...LIMITS, inFlightMax: 800 }, [A]);
    fill(inFlight, backlogsOf(2, 1_000));
    const { projects, unknown } = inFlight.offer(128);
    expect(projects).toBeUndefined();
    expect(unknown).toEqual({ slots: 25, capacityByProject: { 2: 0 }, defaultCapacity: 22, healthy: [A] });
  });

  test('names no project that has nothing in flight any more', () => {
    const inFlight = healthy({ ...LIMITS, inFlightMax: 80 }, backlogsOf(1, 80));
    fill(inFlight, backlogsOf(1, 80));
    inFlight.enter(backlogKey(2, 'c'), 0);
    inFlight.leave(backlogKey(2, 'c'), 0);
    expect(Object.keys(inFlight.offer(128).projects?.capacityByProject ?? {})).toEqual(['1']);
  });

  test('counts in its response as the slots that the claim may take of a project', () => {
    const inFlight = healthy({ ...LIMITS, inFlightMax: 800 }, [A]);
    const offer = inFlight.offer(128);
    const { all } = inFlight.capacityOfProject(1);
    for (let nth = 0; nth < 128; nth += 1) inFlight.enter(A, 0);
    inFlight.endOffer(offer);
    expect(inFlight.capacityOfProject(1).all).toBe(all);
  });

  test('is free again when it has ended', () => {
    const inFlight = healthy(LIMITS, [A]);
    inFlight.endOffer(inFlight.offer(128));
    expect([inFlight.freeSlots, inFlight.freeBytes, inFlight.capacityForNew(A)]).toEqual([10, 1_000, 4]);
  });

  test('leaves half of the rest for one more', () => {
    const inFlight = new InFlight({ ...LIMITS, inFlightMax: 100 });
    const first = inFlight.offer(128);
    const second = inFlight.offer(128);
    expect([first.slots, second.slots, inFlight.freeSlots]).toEqual([50, 25, 25]);
    inFlight.endOffer(first);
    expect(inFlight.freeSlots).toBe(75);
  });
});

const limits = fc.record({
  inFlightMax: fc.integer({ min: 1, max: 40 }),
  inFlightPerOriginMax: fc.integer({ min: 1, max: 20 }),
  inFlightBytesMax: fc.integer({ min: 1, max: 1_000 }),
  silentMax: fc.integer({ min: 1, max: 40 }),
});
const backlogs = fc
  .tuple(fc.integer({ min: 1, max: 3 }), fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'))
  .map(([projectId, origin]) => backlogKey(projectId, origin));
const bytes = fc.integer({ min: 0, max: 300 });
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('accept' as const), backlog: backlogs, bytes }),
    fc.record({ do: fc.constant('claim' as const), wanted: fc.array(backlogs, { maxLength: 40 }) }),
    fc.record({ do: fc.constant('hear' as const), nth: fc.nat(2) }),
    fc.record({ do: fc.constantFrom('answer' as const, 'fail' as const), nth: fc.nat(40) }),
    fc.record({ do: fc.constant('wait' as const) }),
    fc.record({ do: fc.constant('save' as const), nth: fc.nat(40) }),
  ),
  { maxLength: 120 },
);

/** The most that a store may take of an offer: any number of the wanted messages within the capacities. */
function takeFrom({ reserved: _, slots, ...rest }: Offer, wanted: BacklogKey[]): BacklogKey[] {
  const request = {
    worker: '',
    firstToken: 1,
    limit: slots,
    bytesMax: 0,
    due: true,
    lanesFirst: false,
    backlogsToServe: [],
  };
  const rooms = new ClaimCapacity({ ...request, ...rest });
  const taken: BacklogKey[] = [];
  for (const backlog of wanted) {
    if (taken.length === slots || rooms.of(backlog) === 0) continue;
    rooms.take(backlog);
    taken.push(backlog);
  }
  return taken;
}

interface Attempt {
  backlog: BacklogKey;
  bytes: number;
  sent?: SentAttempt;
  isOver?: true;
}

/** The attempts that certainly have a slot. */
function withSlots(running: readonly Attempt[]): Attempt[] {
  return running.filter(({ sent }) => !sent?.isSilent);
}

/** Plays `todo`; `look` is called after each step with what is in flight, `started` if that was started by an accept. */
function play(
  inFlight: InFlight,
  todo: typeof steps extends fc.Arbitrary<infer T> ? T : never,
  look: (running: Attempt[], started: Attempt | undefined) => void,
): Attempt[] {
  const running: Attempt[] = [];
  const claims: { offer: Offer; taken: BacklogKey[] }[] = [];
  let nowMs = 0;
  const start = (attempt: Attempt) => {
    inFlight.enter(attempt.backlog, attempt.bytes);
    attempt.sent = inFlight.noteSent(attempt.backlog, nowMs);
    running.push(attempt);
  };
  for (const step of todo) {
    inFlight.findSilent(nowMs);
    let started: Attempt | undefined;
    if (step.do === 'accept') {
      if (inFlight.fits(step.bytes) && inFlight.capacityForNew(step.backlog) > 0) {
        started = { backlog: step.backlog, bytes: step.bytes };
        start(started);
      }
    } else if (step.do === 'claim') {
      if (claims.length < 3 && inFlight.freeSlots > 0) {
        const offer = inFlight.offer(8);
        claims.push({ offer, taken: takeFrom(offer, step.wanted) });
      }
    } else if (step.do === 'hear') {
      const [claim] = claims.splice(step.nth, 1);
      for (const backlog of claim?.taken ?? []) start({ backlog, bytes: 0 });
      if (claim) inFlight.endOffer(claim.offer);
    } else if (step.do === 'wait') nowMs += 1_000;
    else if (step.do === 'save') {
      const ended = running.filter(({ isOver }) => isOver)[step.nth];
      if (ended) {
        running.splice(running.indexOf(ended), 1);
        inFlight.leave(ended.backlog, ended.bytes);
      }
    } else {
      const ended = running.filter(({ isOver }) => !isOver)[step.nth];
      if (ended?.sent) {
        ended.isOver = true;
        inFlight.noteOutcome(ended.sent);
        if (step.do === 'answer') inFlight.noteResponse(ended.backlog, nowMs);
        else inFlight.noteNoResponse(ended.backlog, step.nth % 2 === 0);
      }
    }
    look(running, started);
  }
  for (const { offer } of claims) inFlight.endOffer(offer);
  return running;
}

test('concurrent claims are offered no more of an unknown origin than it may have', () => {
  const inFlight = new InFlight({ inFlightMax: 64, inFlightPerOriginMax: 8, inFlightBytesMax: 1_000 });
  const offered = [inFlight.offer(16), inFlight.offer(16), inFlight.offer(16)].map(
    ({ defaultCapacity }) => defaultCapacity,
  );
  expect(offered).toEqual([4, 2, 1]);
});

test('accepts and claims together never exceed a limit, in whatever order they arrive', () => {
  fc.assert(
    fc.property(limits, steps, (given, todo) => {
      const inFlight = new InFlight(given);
      play(inFlight, todo, (running) => {
        expect(inFlight.count).toBe(running.length);
        expect(withSlots(running).length).toBeLessThanOrEqual(given.inFlightMax);
        expect(inFlight.freeSlots).toBeGreaterThanOrEqual(0);
        expect(running.length - withSlots(running).length).toBeLessThanOrEqual(given.silentMax);
        for (const origin of ['a', 'b', 'c', 'd', 'e', 'f']) {
          const count = running.filter(({ backlog }) => backlog.endsWith(origin)).length;
          expect(count).toBeLessThanOrEqual(given.inFlightPerOriginMax);
        }
      });
    }),
  );
});

test('unknown backlogs never start attempts while they have half of the slots', () => {
  fc.assert(
    fc.property(limits, steps, (given, todo) => {
      const inFlight = new InFlight(given);
      play(inFlight, todo, (running, started) => {
        if (!started || inFlight.isHealthy(started.backlog)) return;
        const unknown = withSlots(running).filter(({ backlog }) => !inFlight.isHealthy(backlog)).length;
        expect(unknown).toBeLessThanOrEqual(Math.ceil(given.inFlightMax / 2));
      });
    }),
  );
});

test('no project starts another attempt while it has seven times the free slots', () => {
  fc.assert(
    fc.property(limits, steps, (given, todo) => {
      const inFlight = new InFlight(given);
      play(inFlight, todo, (running, started) => {
        if (!started) return;
        const [project] = started.backlog.split(' ');
        const holding = withSlots(running);
        const others = holding.filter(({ backlog }) => backlog.split(' ')[0] === project).length - 1;
        expect(others).toBeLessThan(7 * (given.inFlightMax - holding.length + 1));
      });
    }),
  );
});

test('a project that wants slots has its guaranteed share once as many attempts have ended as there are slots', () => {
  const counts = fc.record({ slots: fc.integer({ min: 50, max: 300 }), projects: fc.integer({ min: 2, max: 6 }) });
  fc.assert(
    fc.property(counts, fc.boolean(), ({ slots, projects }, answers) => {
      // Those that do not respond share half of the slots by the same rule.
      const inFlightMax = answers ? slots : 2 * slots;
      const all = Array.from({ length: projects }, (_, index) => backlogsOf(index + 1, slots));
      const limits = { inFlightMax, inFlightPerOriginMax: 10, inFlightBytesMax: 1_000 };
      const inFlight = answers ? healthy(limits, all.flat()) : new InFlight(limits);
      const running: BacklogKey[] = [];
      const startAll = (backlogs: BacklogKey[]) => {
        const { projectId } = parseBacklogKey(backlogs[0] ?? A);
        for (const backlog of backlogs) {
          const rooms = inFlight.capacityOfProject(projectId);
          if (rooms.all === 0 || (rooms.unknown === 0 && !answers)) return;
          if (inFlight.capacityForNew(backlog) === 0) continue;
          inFlight.enter(backlog, 0);
          running.push(backlog);
        }
      };
      startAll(all[0] ?? []);
      for (let ended = 0; ended < slots; ended += 1) {
        const backlog = running.shift();
        if (backlog) inFlight.leave(backlog, 0);
        for (const backlogs of all) startAll(backlogs);
      }
      const free = slots - running.length;
      expect(free).toBeLessThanOrEqual(Math.ceil(slots / (7 * projects + 1)));
      expect(free).toBeGreaterThanOrEqual(Math.floor((slots - 7 * projects) / (7 * projects + 1)));
      for (let index = 0; index < projects; index += 1) {
        expect(inFlight.countOfProject(index + 1)).toBeGreaterThanOrEqual(7 * free);
      }
    }),
  );
});

test('when all attempts have ended, everything is free again', () => {
  fc.assert(
    fc.property(limits, steps, (given, todo) => {
      const inFlight = new InFlight(given);
      for (const { backlog, bytes, sent, isOver } of play(inFlight, todo, () => {})) {
        if (sent && !isOver) inFlight.noteOutcome(sent);
        inFlight.noteResponse(backlog, 0);
        inFlight.leave(backlog, bytes);
      }
      expect([inFlight.count, inFlight.freeSlots, inFlight.freeBytes]).toEqual([
        0,
        given.inFlightMax,
        given.inFlightBytesMax,
      ]);
      for (const projectId of [1, 2, 3]) {
        expect(inFlight.capacityOfProject(projectId)).toEqual(new InFlight(given).capacityOfProject(projectId));
        expect(inFlight.countOfProject(projectId)).toBe(0);
      }
      expect(fill(new InFlight(given), [A])).toBe(fill(inFlight, [backlogKey(1, 'newcomer')]));
    }),
  );
});

test('reserved bytes belong to nobody else until they are released, and never exceed the free ones', () => {
  const inFlight = new InFlight(LIMITS);
  inFlight.enter(A, 700);
  expect(inFlight.reserveBytes(200)).toBe(200);
  expect([inFlight.freeBytes, inFlight.fits(150), inFlight.isFull]).toEqual([100, false, false]);
  expect(inFlight.reserveBytes(200)).toBe(100);
  expect([inFlight.isFull, inFlight.reserveBytes(1), inFlight.reserveBytes(-5)]).toEqual([true, 0, 0]);
  inFlight.returnBytes(300);
  expect(inFlight.freeBytes).toBe(300);
});

describe('the capacity of an origin in slow start', () => {
  const limits = { inFlightMax: 1_000, inFlightPerOriginMax: 64, inFlightBytesMax: 1_000 };

  /** Starts as many waiting messages as possible; returns the number of attempts of the backlog. */
  function start(inFlight: InFlight, nowMs = 0): number {
    while (inFlight.capacityOf(A) > 0) send(inFlight, A, nowMs);
    return inFlight.countOf(A);
  }

  function end(inFlight: InFlight, count: number, status: number): void {
    for (let nth = 0; nth < count; nth += 1) {
      inFlight.noteResponse(A, 0, status);
      inFlight.leave(A, 0);
    }
  }

  test('is a few messages at first, and doubles with each round of responses, up to its maximum', () => {
    const inFlight = new InFlight(limits);
    const rounds = Array.from({ length: 6 }, () => {
      const count = start(inFlight);
      end(inFlight, count, 200);
      return count;
    });
    expect(rounds).toEqual([4, 8, 16, 32, 64, 64]);
  });

  test('does not grow while the origin responds that it is overloaded', () => {
    const inFlight = new InFlight(limits);
    for (const status of [503, 429, 500]) end(inFlight, start(inFlight), status);
    expect(start(inFlight)).toBe(4);
  });

  test('is halved when an attempt ends without a response', () => {
    const inFlight = new InFlight(limits);
    for (let round = 0; round < 3; round += 1) end(inFlight, start(inFlight), 200);
    expect(inFlight.capacityOf(A)).toBe(32);
    inFlight.noteNoResponse(A);
    expect(inFlight.capacityOf(A)).toBe(16);
  });

  test('doubles each time the latest attempts have become silent', () => {
    const inFlight = new InFlight(limits);
    const counts = [0, 1_999, 2_000, 4_000, 6_000, 8_000, 10_000].map((nowMs) => {
      inFlight.findSilent(nowMs);
      return start(inFlight, nowMs);
    });
    expect(counts).toEqual([4, 4, 8, 16, 32, 64, 64]);
  });

  test('is that of its first response, when those messages have waited for no others', () => {
    const inFlight = new InFlight(limits);
    for (let nth = 0; nth < 20; nth += 1) inFlight.enter(A, 0);
    expect([inFlight.capacityOf(A), inFlight.capacityForNew(A)]).toEqual([0, 44]);
    inFlight.noteResponse(A, 0);
    expect(inFlight.capacityOf(A)).toBe(1);
  });

  test('is a few messages for an origin that a claim does not name', () => {
    expect(new InFlight(limits).offer(64)).toMatchObject({ capacityByOrigin: {}, defaultCapacity: 4 });
  });

  test('is its whole share for an idle origin whose backlog a claim serves, however many others have responded', () => {
    const inFlight = new InFlight(limits);
    for (let nth = 0; nth < 40; nth += 1) inFlight.noteResponse(backlogKey(2, `https://${nth}.example`), 0);
    for (let answers = 0; answers < 3; answers += 1) inFlight.noteResponse(A, 0);
    const { capacityByOrigin } = inFlight.offer(64, [A]);
    expect({ ...capacityByOrigin }).toEqual({ [parseBacklogKey(A).origin]: 7 });
  });
});
