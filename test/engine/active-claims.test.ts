/** The claims that a worker is working on, and their slots. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ActiveClaims } from '../../src/engine/dispatch/active-claims.ts';
import { backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import { InFlight } from '../../src/engine/lanes/in-flight.ts';

const LINE = backlogKey(1, 'https://a.example');
const OTHER = backlogKey(1, 'https://b.example');

const clock = { elapsedMs: 0 };
let inFlight: InFlight;
let activeClaims: ActiveClaims;
let freed: number;

beforeEach(() => {
  clock.elapsedMs = 0;
  freed = 0;
  inFlight = new InFlight({ inFlightMax: 4, inFlightPerOriginMax: 1, inFlightBytesMax: 1_000 });
  activeClaims = new ActiveClaims(inFlight, clock, () => {
    freed += 1;
  });
});

describe('a slot', () => {
  test('passes to another message of its lane although the lane is at its limit, and comes back', () => {
    activeClaims.takeSlot(1, LINE, 600);
    expect(activeClaims.tryTakeSlot(2, LINE, 0)).toBe(false);
    expect(activeClaims.tryPassSlot(1, 2, 100)).toBe(true);
    expect([inFlight.count, inFlight.freeBytes]).toEqual([1, 900]);
    activeClaims.returnSlot(1, 2);
    expect([inFlight.count, inFlight.freeBytes, activeClaims.find(2)]).toEqual([1, 400, undefined]);
  });

  test('that was passed on is released by the message that has it, and by no other', () => {
    activeClaims.takeSlot(1, LINE, 0);
    activeClaims.tryPassSlot(1, 2, 0);
    activeClaims.giveBack(1);
    expect([inFlight.count, freed]).toEqual([1, 0]);
    activeClaims.giveBack(2);
    expect([inFlight.count, freed]).toEqual([0, 1]);
  });

  test('keeps its bytes when there is no capacity for more', () => {
    activeClaims.takeSlot(1, LINE, 10);
    activeClaims.takeSlot(2, OTHER, 500);
    expect([activeClaims.resize(1, 600), inFlight.freeBytes]).toEqual([false, 490]);
    expect([activeClaims.resize(1, 400), inFlight.freeBytes]).toEqual([true, 100]);
    expect([activeClaims.resize(1, 0), inFlight.freeBytes]).toEqual([true, 500]);
  });
});

test('an expected claim is as old as its request, and stays cancelled', () => {
  activeClaims.expect(1, LINE);
  clock.elapsedMs = 5_000;
  Object.assign(activeClaims.find(1) ?? {}, { isCancelled: true });
  activeClaims.takeSlot(1, OTHER, 7);
  expect(activeClaims.find(1)).toEqual({
    backlog: OTHER,
    requestedAtMs: 0,
    bytes: 7,
    hasSlot: true,
    isCancelled: true,
  });
});
