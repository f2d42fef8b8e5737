/** Which claims does a worker work on, and which slot does each have? */
import { beforeEach, describe, expect, test } from 'vitest';
import { Permits } from '../../src/engine/dispatch/permits.ts';
import { InFlight } from '../../src/engine/lanes/in-flight.ts';
import { lineOf } from '../../src/engine/lanes/origin-line.ts';

const LINE = lineOf(1, 'https://a.example');
const OTHER = lineOf(1, 'https://b.example');

const clock = { elapsedMs: 0 };
let inFlight: InFlight;
let permits: Permits;
let freed: number;

beforeEach(() => {
  clock.elapsedMs = 0;
  freed = 0;
  inFlight = new InFlight({ inFlightMax: 4, inFlightPerOriginMax: 1, inFlightBytesMax: 1_000 });
  permits = new Permits(inFlight, clock, () => {
    freed += 1;
  });
});

describe('a slot', () => {
  test('passes to another message of its line although the line may have no more, and comes back', () => {
    permits.take(1, LINE, 600);
    expect(permits.tryTake(2, LINE, 0)).toBe(false);
    expect(permits.tryPass(1, 2, 100)).toBe(true);
    expect([inFlight.count, inFlight.freeBytes]).toEqual([1, 900]);
    permits.takeBack(1, 2);
    expect([inFlight.count, inFlight.freeBytes, permits.find(2)]).toEqual([1, 400, undefined]);
  });

  test('that was passed is given up by the message that has it, and by no other', () => {
    permits.take(1, LINE, 0);
    permits.tryPass(1, 2, 0);
    permits.giveBack(1);
    expect([inFlight.count, freed]).toEqual([1, 0]);
    permits.giveBack(2);
    expect([inFlight.count, freed]).toEqual([0, 1]);
  });

  test('keeps its bytes when there is no space for more', () => {
    permits.take(1, LINE, 10);
    permits.take(2, OTHER, 500);
    expect([permits.resize(1, 600), inFlight.freeBytes]).toEqual([false, 490]);
    expect([permits.resize(1, 400), inFlight.freeBytes]).toEqual([true, 100]);
    expect([permits.resize(1, 0), inFlight.freeBytes]).toEqual([true, 500]);
  });
});

test('a claim that was expected is as old as the request for it, and stays cancelled', () => {
  permits.expect(1, LINE);
  clock.elapsedMs = 5_000;
  Object.assign(permits.find(1) ?? {}, { isCancelled: true });
  permits.take(1, OTHER, 7);
  expect(permits.find(1)).toEqual({ line: OTHER, askedAtMs: 0, bytes: 7, hasSlot: true, isCancelled: true });
});
