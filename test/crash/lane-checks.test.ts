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

/** A complete attempt: an arrival and its response. */
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
  it('find nothing wrong with a queue that delivers one by one, including retries', () => {
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

  it('report a message that starts before an earlier one, unless the parallelism explains it', () => {
    const events = [...inQueue, ...attempted('b'), ...attempted('a'), ...attempted('c')];
    expect(judgeLanes([QUEUE], events).outOfOrder).toEqual(['line: b']);
    const wide = { ...QUEUE, parallelism: 2 };
    const inWide = ['a', 'b', 'c'].map((tag) => entered(tag, wide));
    expect(judgeLanes([wide], [...inWide, ...events.slice(3)]).outOfOrder).toEqual([]);
    const last = [...inWide, ...attempted('c'), ...attempted('b'), ...attempted('a')];
    expect(judgeLanes([wide], last).outOfOrder).toEqual(['line: c']);
  });

  it('report a message that starts while the previous one waits for its retry', () => {
    const events = [...inQueue, ...attempted('a', { status: 500 }), arrived('b')];
    expect(judgeLanes([QUEUE], events).overParallelism).toEqual(['line: msg_b retried 0 as number 2']);
  });

  it('allow the next message to start when the previous one is dead', () => {
    const events = [...inQueue, ...attempted('a', { status: 500, retried: 1 }), arrived('b')];
    expect(judgeLanes([QUEUE], events).overParallelism).toEqual([]);
  });

  it('report a message that starts before the callbacks of the previous one have ended', () => {
    const events = [entered('a', QUEUE, true), entered('b', QUEUE), ...attempted('a')];
    const told: LaneEvent = { kind: 'told', sourceId: 'msg_a', sourceRetried: 0 };
    expect(judgeLanes([QUEUE], [...events, arrived('b'), told]).overParallelism).toHaveLength(1);
    expect(judgeLanes([QUEUE], [...events, told, arrived('b')]).overParallelism).toEqual([]);
  });

  it('count the attempts of a key, but not those that a kill has interrupted', () => {
    const events = [entered('a', KEY), entered('b', KEY), arrived('a')];
    expect(judgeLanes([KEY], [...events, arrived('b')]).overParallelism).toHaveLength(1);
    expect(judgeLanes([KEY], [...events, arrived('b', { incarnation: 1 })]).overParallelism).toEqual([]);
  });

  it('report more starts than any alignment of the periods allows', () => {
    const starts = (count: number) =>
      Array.from({ length: count }, (_, n) => [entered(`${n}`, RATED), ...attempted(`${n}`, {}, 100)]).flat();
    expect(judgeLanes([RATED], starts(6)).overRate).toEqual([]);
    expect(judgeLanes([RATED], starts(9)).overRate).toEqual(['slow: 3 starts too many']);
  });

  it('report an attempt of a paused lane by a server that started after the pause, and by no other', () => {
    const paused: LaneEvent = { kind: 'paused', lane: QUEUE, incarnation: 0 };
    const resumed: LaneEvent = { kind: 'resumed', lane: QUEUE };
    const later = arrived('a', { incarnation: 1 });
    expect(judgeLanes([QUEUE], [...inQueue, paused, arrived('a')]).notHeldBack).toEqual([]);
    expect(judgeLanes([QUEUE], [...inQueue, paused, later]).notHeldBack).toEqual(['line was paused: msg_a']);
    expect(judgeLanes([QUEUE], [...inQueue, paused, resumed, later]).notHeldBack).toEqual([]);
  });

  it('report a message of a deleted queue, but not of a later queue with the same name', () => {
    const deleted: LaneEvent = { kind: 'deleted', lane: QUEUE, incarnation: 0 };
    const events = [entered('a', QUEUE), deleted, entered('b', QUEUE)];
    const later = [arrived('a', { incarnation: 1 }), arrived('b', { incarnation: 1 })];
    expect(judgeLanes([QUEUE], [...events, ...later]).notHeldBack).toEqual(['line was deleted: msg_a']);
  });
});
