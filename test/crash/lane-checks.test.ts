import { describe, expect, it } from 'vitest';
import { judgeLanes } from './lane-checks.ts';
import type { Lane, LaneEvent } from './ledger.ts';

const QUEUE: Lane = { kind: 'queue', name: 'line', parallelism: 1 };
const KEY: Lane = { kind: 'key', name: 'few', parallelism: 1 };
const RATED: Lane = { kind: 'key', name: 'slow', rate: 2, periodMs: 1_000 };

function entered(tag: string, lane: Lane, hasCallback = false): LaneEvent {
  return { kind: 'entered', entrant: { tag, lanes: [lane], maxRetries: 1, hasCallback } };
}

function attemptOf(tag: string, { retried = 0, incarnation = 0, status = 200 } = {}) {
  return { tag, messageId: `msg_${tag}`, retried, incarnation, status };
}

/** A whole attempt: it arrives and is answered. */
function attempted(tag: string, options: Parameters<typeof attemptOf>[1] = {}, atMs = 0): LaneEvent[] {
  const attempt = attemptOf(tag, options);
  return [
    { kind: 'arrived', attempt, atMs },
    { kind: 'responded', attempt },
  ];
}

function arrived(tag: string, options: Parameters<typeof attemptOf>[1] = {}): LaneEvent {
  return { kind: 'arrived', attempt: attemptOf(tag, options), atMs: 0 };
}

const inQueue = ['a', 'b', 'c'].map((tag) => entered(tag, QUEUE));

describe('the checks of lanes', () => {
  it('find nothing wrong with a queue that goes on one by one, retries included', () => {
    const events = [
      ...inQueue,
      ...attempted('a', { status: 500 }),
      ...attempted('a', { retried: 1 }),
      ...attempted('b'),
    ];
    expect(judgeLanes([QUEUE], events)).toEqual({
      outOfOrder: [],
      overParallelism: [],
      overRate: [],
      notHeldBack: [],
      most: { line: 1 },
    });
  });

  it('see a message that starts before an earlier one, as far as the parallelism does not explain it', () => {
    const events = [...inQueue, ...attempted('b'), ...attempted('a'), ...attempted('c')];
    expect(judgeLanes([QUEUE], events).outOfOrder).toEqual(['line: b']);
    const wide = { ...QUEUE, parallelism: 2 };
    const inWide = ['a', 'b', 'c'].map((tag) => entered(tag, wide));
    expect(judgeLanes([wide], [...inWide, ...events.slice(3)]).outOfOrder).toEqual([]);
    const last = [...inWide, ...attempted('c'), ...attempted('b'), ...attempted('a')];
    expect(judgeLanes([wide], last).outOfOrder).toEqual(['line: c']);
  });

  it('see a message that starts while the one before waits for its retry', () => {
    const events = [...inQueue, ...attempted('a', { status: 500 }), arrived('b')];
    expect(judgeLanes([QUEUE], events).overParallelism).toEqual(['line: msg_b retried 0 as number 2']);
  });

  it('let the next one start when the one before has failed for good', () => {
    const events = [...inQueue, ...attempted('a', { status: 500, retried: 1 }), arrived('b')];
    expect(judgeLanes([QUEUE], events).overParallelism).toEqual([]);
  });

  it('let no message start before the callbacks of the one before have ended', () => {
    const events = [entered('a', QUEUE, true), entered('b', QUEUE), ...attempted('a')];
    const told: LaneEvent = { kind: 'told', sourceId: 'msg_a', sourceRetried: 0 };
    expect(judgeLanes([QUEUE], [...events, arrived('b'), told]).overParallelism).toHaveLength(1);
    expect(judgeLanes([QUEUE], [...events, told, arrived('b')]).overParallelism).toEqual([]);
  });

  it('count the attempts of a key, but not those that a kill has orphaned', () => {
    const events = [entered('a', KEY), entered('b', KEY), arrived('a')];
    expect(judgeLanes([KEY], [...events, arrived('b')]).overParallelism).toHaveLength(1);
    expect(judgeLanes([KEY], [...events, arrived('b', { incarnation: 1 })]).overParallelism).toEqual([]);
  });

  it('see more starts than any periods allow', () => {
    const starts = (count: number) =>
      Array.from({ length: count }, (_, n) => [entered(`${n}`, RATED), ...attempted(`${n}`, {}, 100)]).flat();
    expect(judgeLanes([RATED], starts(6)).overRate).toEqual([]);
    expect(judgeLanes([RATED], starts(9)).overRate).toEqual(['slow: 3 starts too many']);
  });

  it('see a server that forgot a pause, but none that is about to hear of it', () => {
    const paused: LaneEvent = { kind: 'paused', lane: QUEUE, incarnation: 0 };
    const resumed: LaneEvent = { kind: 'resumed', lane: QUEUE };
    const later = arrived('a', { incarnation: 1 });
    expect(judgeLanes([QUEUE], [...inQueue, paused, arrived('a')]).notHeldBack).toEqual([]);
    expect(judgeLanes([QUEUE], [...inQueue, paused, later]).notHeldBack).toEqual(['line was paused: msg_a']);
    expect(judgeLanes([QUEUE], [...inQueue, paused, resumed, later]).notHeldBack).toEqual([]);
  });

  it('see a message of a deleted queue, but not one of the next queue of that name', () => {
    const deleted: LaneEvent = { kind: 'deleted', lane: QUEUE, incarnation: 0 };
    const events = [entered('a', QUEUE), deleted, entered('b', QUEUE)];
    const later = [arrived('a', { incarnation: 1 }), arrived('b', { incarnation: 1 })];
    expect(judgeLanes([QUEUE], [...events, ...later]).notHeldBack).toEqual(['line was deleted: msg_a']);
  });
});
