/** P9: the bounded, fair share of attempts in flight. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InFlight } from '../../src/engine/in-flight.ts';

const LIMITS = { inFlightMax: 10, inFlightPerOriginMax: 4, inFlightBytesMax: 1_000 };

function filledWith(origin: string, limits = LIMITS, bytes = 0): InFlight {
  const inFlight = new InFlight(limits);
  while (inFlight.hasSpace(bytes) && inFlight.roomOf(origin) > 0) inFlight.enter(origin, bytes);
  return inFlight;
}

describe('the share of one origin', () => {
  test('is its maximum while there is much free', () => {
    expect(filledWith('a').count).toBe(4);
  });

  test('is half of all places when its maximum is larger', () => {
    const inFlight = filledWith('a', { ...LIMITS, inFlightPerOriginMax: 100 });
    expect([inFlight.count, inFlight.freePlaces, inFlight.roomOf('b')]).toEqual([5, 5, 5]);
  });

  test('is about half of all bytes, however few its messages', () => {
    const inFlight = filledWith('a', LIMITS, 250);
    expect([inFlight.count, inFlight.freeBytes, inFlight.roomOf('b')]).toEqual([2, 500, 4]);
  });

  test('comes back when its attempts end', () => {
    const inFlight = filledWith('a');
    inFlight.leave('a', 0);
    expect([inFlight.roomOf('a'), inFlight.count]).toEqual([1, 3]);
  });
});

test('many slow origins together leave a place for a newcomer', () => {
  const inFlight = new InFlight(LIMITS);
  for (let round = 0; round < 10; round += 1) {
    for (let origin = 0; origin < 8; origin += 1) {
      if (inFlight.roomOf(`slow-${origin}`) > 0) inFlight.enter(`slow-${origin}`, 10);
    }
  }
  expect(inFlight.roomOf('newcomer')).toBeGreaterThan(0);
});

describe('an origin whose attempts end without an answer', () => {
  const limits = { inFlightMax: 1_000, inFlightPerOriginMax: 64, inFlightBytesMax: 1_000 };

  test('has half as much room each time, but never none', () => {
    const inFlight = new InFlight(limits);
    const rooms = Array.from({ length: 6 }, () => {
      inFlight.noteNoAnswer('a');
      return inFlight.roomOf('a');
    });
    expect(rooms).toEqual([32, 16, 8, 4, 4, 4]);
    expect(inFlight.roomOf('b')).toBe(64);
    expect(inFlight.offer(10).roomByOrigin).toEqual({ a: 2 });
  });

  test('is said to be held back when it comes to have the fewest attempts, not again with each failure', () => {
    const inFlight = new InFlight(limits);
    const said = Array.from({ length: 6 }, () => inFlight.noteNoAnswer('a'));
    expect(said).toEqual([false, false, false, true, false, false]);
  });

  test('may start nothing in the place of what ends until it has no more than its room', () => {
    const inFlight = new InFlight(limits);
    for (let nth = 0; nth < 6; nth += 1) inFlight.enter('a', 10);
    expect(inFlight.mayGoOn('a', 10)).toBe(true);
    for (let nth = 0; nth < 6; nth += 1) inFlight.noteNoAnswer('a');
    expect(inFlight.mayGoOn('a', 10)).toBe(false);
    for (let nth = 0; nth < 2; nth += 1) inFlight.leave('a', 10);
    expect([inFlight.roomOf('a'), inFlight.mayGoOn('a', 10)]).toEqual([0, true]);
  });

  test('has all of it again after as many answers', () => {
    const inFlight = new InFlight(limits);
    for (let failures = 0; failures < 9; failures += 1) inFlight.noteNoAnswer('a');
    for (let answers = 0; answers < 59; answers += 1) inFlight.noteAnswer('a');
    expect(inFlight.roomOf('a')).toBe(63);
    inFlight.noteAnswer('a');
    inFlight.noteAnswer('a');
    expect(inFlight.roomOf('a')).toBe(64);
  });

  test('is remembered only while there are few of them', () => {
    const inFlight = new InFlight(limits);
    for (let nth = 0; nth < 10_000; nth += 1) inFlight.noteNoAnswer(`dead-${nth}`);
    expect(Object.keys(inFlight.offer(128).roomByOrigin).length).toBeLessThan(1_000);
    inFlight.endOffer();
    expect([inFlight.roomOf('dead-0'), inFlight.roomOf('dead-9999')]).toEqual([64, 32]);
  });
});

test('a message larger than all bytes goes out when it is alone, and only then', () => {
  const inFlight = new InFlight(LIMITS);
  expect(inFlight.hasSpace(5_000)).toBe(true);
  inFlight.enter('a', 1);
  expect(inFlight.hasSpace(5_000)).toBe(false);
});

describe('an offer to a claim', () => {
  test('keeps half for those that are accepted meanwhile', () => {
    const inFlight = new InFlight(LIMITS);
    expect(inFlight.offer(128)).toMatchObject({ places: 5, bytes: 500, defaultRoom: 2 });
    expect([inFlight.freePlaces, inFlight.freeBytes, inFlight.roomOf('a')]).toEqual([5, 500, 2]);
  });

  test('has the last place', () => {
    const inFlight = new InFlight({ ...LIMITS, inFlightMax: 1 });
    expect(inFlight.offer(128).places).toBe(1);
    expect([inFlight.hasSpace(0), inFlight.roomOf('a')]).toEqual([false, 0]);
  });

  test('is no larger than asked for', () => {
    expect(new InFlight({ ...LIMITS, inFlightMax: 1_000 }).offer(128).places).toBe(128);
  });

  test('names the room of origins that are busy', () => {
    const inFlight = new InFlight(LIMITS);
    inFlight.enter('a', 0);
    inFlight.enter('a', 0);
    expect({ ...inFlight.offer(128).roomByOrigin }).toEqual({ a: 1 });
  });

  test('is free again when it has ended', () => {
    const inFlight = new InFlight(LIMITS);
    inFlight.offer(128);
    inFlight.endOffer();
    expect([inFlight.freePlaces, inFlight.freeBytes, inFlight.roomOf('a')]).toEqual([10, 1_000, 4]);
  });
});

const limits = fc.record({
  inFlightMax: fc.integer({ min: 1, max: 20 }),
  inFlightPerOriginMax: fc.integer({ min: 1, max: 20 }),
  inFlightBytesMax: fc.integer({ min: 1, max: 1_000 }),
});
const origins = fc.constantFrom('a', 'b', 'c', 'd');
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('accept' as const), origin: origins, bytes: fc.integer({ min: 0, max: 300 }) }),
    fc.record({ do: fc.constant('claim' as const), wanted: fc.array(origins, { maxLength: 20 }) }),
    fc.record({ do: fc.constant('answer' as const) }),
    fc.record({ do: fc.constant('finish' as const) }),
  ),
  { maxLength: 80 },
);

/** What a store may take of an offer at most: any number of the wanted messages within the rooms. */
function takeFrom(offer: ReturnType<InFlight['offer']>, wanted: string[]): string[] {
  const taken: string[] = [];
  for (const origin of wanted) {
    const room = offer.roomByOrigin[origin] ?? offer.defaultRoom;
    const has = taken.filter((other) => other === origin).length;
    if (taken.length < offer.places && has < room) taken.push(origin);
  }
  return taken;
}

test('accepts and claims together never exceed a limit, in whatever order they come', () => {
  fc.assert(
    fc.property(limits, steps, (given, todo) => {
      const inFlight = new InFlight(given);
      const running: { origin: string; bytes: number }[] = [];
      let answer: string[] | undefined;
      const enter = (origin: string, bytes: number) => {
        inFlight.enter(origin, bytes);
        running.push({ origin, bytes });
      };
      for (const step of todo) {
        if (step.do === 'accept') {
          if (inFlight.hasSpace(step.bytes) && inFlight.roomOf(step.origin) > 0) enter(step.origin, step.bytes);
        } else if (step.do === 'claim') {
          if (!answer && inFlight.freePlaces > 0) answer = takeFrom(inFlight.offer(8), step.wanted);
        } else if (step.do === 'answer') {
          inFlight.endOffer();
          for (const origin of answer ?? []) enter(origin, 0);
          answer = undefined;
        } else {
          const ended = running.shift();
          if (ended) inFlight.leave(ended.origin, ended.bytes);
        }
        expect(inFlight.count).toBe(running.length);
        expect(running.length).toBeLessThanOrEqual(given.inFlightMax);
        for (const origin of ['a', 'b', 'c', 'd']) {
          const count = running.filter((each) => each.origin === origin).length;
          expect(count).toBeLessThanOrEqual(given.inFlightPerOriginMax);
        }
      }
    }),
  );
});

test('when all have ended, everything is free again', () => {
  fc.assert(
    fc.property(limits, fc.array(fc.tuple(origins, fc.integer({ min: 0, max: 99 }))), (given, entries) => {
      const inFlight = new InFlight(given);
      for (const [origin, bytes] of entries) inFlight.enter(origin, bytes);
      for (const [origin, bytes] of entries.toReversed()) inFlight.leave(origin, bytes);
      expect([inFlight.count, inFlight.freePlaces, inFlight.freeBytes]).toEqual([
        0,
        given.inFlightMax,
        given.inFlightBytesMax,
      ]);
      expect(Object.keys(inFlight.offer(1).roomByOrigin)).toEqual([]);
    }),
  );
});

test('bytes set aside are nobody else’s until they are put back, and never more than are free', () => {
  const inFlight = new InFlight(LIMITS);
  inFlight.enter('a', 700);
  expect(inFlight.setAside(200)).toBe(200);
  expect([inFlight.freeBytes, inFlight.hasSpace(150), inFlight.isFull]).toEqual([100, false, false]);
  expect(inFlight.setAside(200)).toBe(100);
  expect([inFlight.isFull, inFlight.setAside(1), inFlight.setAside(-5)]).toEqual([true, 0, 0]);
  inFlight.putBack(300);
  expect(inFlight.freeBytes).toBe(300);
});
