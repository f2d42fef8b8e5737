/** Whose turn is it, and what does it cost to find out? */
import { expect, test } from 'vitest';
import { InFlight } from '../../src/engine/in-flight.ts';
import { lineOf, type OriginLine } from '../../src/engine/origin-line.ts';
import { ParkedLines } from '../../src/engine/parked-lines.ts';

const NONE: ReadonlySet<OriginLine> = new Set();
const LIMITS = { inFlightMax: 64, inFlightPerOriginMax: 64, inFlightBytesMax: 1_000 };

function linesOf(projectId: number, count: number): OriginLine[] {
  return Array.from({ length: count }, (_, nth) => lineOf(projectId, `https://${nth}.example`));
}

/** Counts how often it is asked what a line may have. */
class CountedInFlight extends InFlight {
  asked = 0;

  override roomOf(line: OriginLine): number {
    this.asked += 1;
    return super.roomOf(line);
  }
}

function parked(lines: OriginLine[], inFlight: InFlight = new InFlight(LIMITS)): ParkedLines {
  const row = new ParkedLines(inFlight);
  for (const line of lines) row.add(line);
  return row;
}

test('projects take turns, whichever has more lines', () => {
  const [a, b, c] = linesOf(1, 3);
  const [d] = linesOf(2, 1);
  expect(parked([a, b, c, d] as OriginLine[]).next(3, NONE)).toEqual([a, d, b]);
});

test('those with the fewest attempts in flight come first, of projects and of their lines', () => {
  const inFlight = new InFlight(LIMITS);
  const [a, b] = linesOf(1, 2) as [OriginLine, OriginLine];
  const [c] = linesOf(2, 1) as [OriginLine];
  inFlight.enter(a, 0);
  expect(parked([a, b, c], inFlight).next(3, NONE)).toEqual([c, b, a]);
});

test('who was served goes to the end of the row', () => {
  const [a, b, c] = linesOf(1, 3) as [OriginLine, OriginLine, OriginLine];
  const row = parked([a, b, c]);
  row.moveToEnd(a);
  expect(row.next(3, NONE)).toEqual([b, c, a]);
});

test('those that another claim serves are left out', () => {
  const [a, b] = linesOf(1, 2) as [OriginLine, OriginLine];
  expect(parked([a, b]).next(3, new Set([a]))).toEqual([b]);
});

test('a line keeps its turn when it has answered, or does not any more', () => {
  const [a, b, c] = linesOf(1, 3) as [OriginLine, OriginLine, OriginLine];
  const inFlight = new InFlight(LIMITS, (line) => row.reclassify(line));
  const row = parked([a, b, c], inFlight);
  inFlight.noteAnswer(b, 0);
  expect(row.next(3, NONE)).toEqual([a, b, c]);
  inFlight.noteNoAnswer(b);
  expect([row.next(3, NONE), row.has(b)]).toEqual([[a, b, c], true]);
});

test('P9: ten thousand lines that may not start cost no steps before one that has answered, or another project', () => {
  const inFlight = new CountedInFlight(LIMITS);
  const hanging = linesOf(1, 10_000);
  const answering = lineOf(1, 'https://answers.example');
  inFlight.noteAnswer(answering, 0);
  for (const line of hanging) if (inFlight.roomOf(line) > 0) inFlight.enter(line, 0);
  const other = lineOf(2, 'https://new.example');
  const row = parked([...hanging, answering, other], inFlight);
  inFlight.asked = 0;
  expect(row.next(64, NONE)).toEqual([other, answering]);
  expect(inFlight.asked).toBe(2);
});

test('P9: beside lines that may start, it takes about as many steps as there are attempts in flight', () => {
  const inFlight = new CountedInFlight(LIMITS);
  const lines = linesOf(1, 10_000);
  for (const line of lines.slice(0, 10)) inFlight.enter(line, 0);
  const row = parked(lines, inFlight);
  inFlight.asked = 0;
  expect(row.next(16, NONE)).toEqual(lines.slice(10, 26));
  expect(inFlight.asked).toBe(26);
});
