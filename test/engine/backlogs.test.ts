/** The next backlog in the rotation, and the cost of finding it. */
import { describe, expect, test } from 'vitest';
import { type BacklogKey, backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import { type BacklogRange, Backlogs } from '../../src/engine/lanes/backlogs.ts';
import { InFlight } from '../../src/engine/lanes/in-flight.ts';
import { SeededRandom } from '../support/seeded-random.ts';

const NONE: ReadonlySet<BacklogKey> = new Set();
const LIMITS = { inFlightMax: 64, inFlightPerOriginMax: 64, inFlightBytesMax: 1_000 };

function linesOf(projectId: number, count: number): BacklogKey[] {
  return Array.from({ length: count }, (_, nth) => backlogKey(projectId, `https://${nth}.example`));
}

/** Counts the reads of a backlog's limit. */
class CountedInFlight extends InFlight {
  asked = 0;

  override capacityOf(backlog: BacklogKey): number {
    this.asked += 1;
    return super.capacityOf(backlog);
  }
}

function linesWith(backlogs: BacklogKey[], inFlight: InFlight = new InFlight(LIMITS)): Backlogs {
  const row = new Backlogs(inFlight);
  for (const line of backlogs) row.add(line);
  return row;
}

test('projects are rotated, whichever has more backlogs', () => {
  const [a, b, c] = linesOf(1, 3);
  const [d] = linesOf(2, 1);
  expect(linesWith([a, b, c, d] as BacklogKey[]).next(3, NONE).backlogs).toEqual([a, d, b]);
});

test('no more are returned than requested, although each of the projects has more', () => {
  const [a, b] = linesOf(1, 2);
  const [c, d] = linesOf(2, 2);
  expect(linesWith([a, b, c, d] as BacklogKey[]).next(3, NONE).backlogs).toEqual([a, c, b]);
});

test('those with the fewest attempts in flight come first, of projects and of their backlogs', () => {
  const inFlight = new InFlight(LIMITS);
  const [a, b] = linesOf(1, 2) as [BacklogKey, BacklogKey];
  const [c] = linesOf(2, 1) as [BacklogKey];
  inFlight.enter(a, 0);
  expect(linesWith([a, b, c], inFlight).next(3, NONE).backlogs).toEqual([c, b, a]);
});

test('a served backlog moves to the end of the rotation', () => {
  const [a, b, c] = linesOf(1, 3) as [BacklogKey, BacklogKey, BacklogKey];
  const row = linesWith([a, b, c]);
  row.moveToEnd(a);
  expect(row.next(3, NONE).backlogs).toEqual([b, c, a]);
});

test('of projects with as many attempts in flight the one that was served comes last', () => {
  const [a, b] = linesOf(1, 2) as [BacklogKey, BacklogKey];
  const [c] = linesOf(2, 1) as [BacklogKey];
  const row = linesWith([a, b, c]);
  row.moveToEnd(a);
  expect(row.next(3, NONE).backlogs).toEqual([c, b, a]);
});

test('every other time a backlog of each project comes first that is less than half as far behind as another one', () => {
  const [a, b] = linesOf(1, 2) as [BacklogKey, BacklogKey];
  const [c] = linesOf(2, 1) as [BacklogKey];
  const [d, e] = linesOf(3, 2) as [BacklogKey, BacklogKey];
  const row = linesWith([a, b, c, d, e]);
  for (const [projectId, lagMs] of [
    [1, 20_000],
    [2, 10_000],
    [3, 9_999],
  ] as const)
    row.noteLag(projectId, lagMs);
  expect([row.next(4, NONE), row.next(4, NONE), row.next(4, NONE)]).toEqual([
    { backlogs: [d, a, c, e], fresh: 1 },
    { backlogs: [a, c, d, b], fresh: 0 },
    { backlogs: [d, a, c, e], fresh: 1 },
  ]);
});

test('a project is as far behind as before when its only backlog becomes healthy, or is served', () => {
  const inFlight = new InFlight(LIMITS, (line) => row.reclassify(line));
  const [behind] = linesOf(1, 1) as [BacklogKey];
  const [farther] = linesOf(2, 1) as [BacklogKey];
  const row: Backlogs = linesWith([behind, farther], inFlight);
  row.noteLag(1, 15_000);
  row.noteLag(2, 20_000);
  inFlight.noteResponse(behind, 0);
  expect(inFlight.isHealthy(behind)).toBe(true);
  expect(row.next(2, NONE)).toEqual({ backlogs: [behind, farther], fresh: 0 });
  expect(row.next(2, NONE)).toEqual({ backlogs: [behind, farther], fresh: 0 });
  row.moveToEnd(behind);
  expect(row.next(2, NONE)).toEqual({ backlogs: [farther, behind], fresh: 0 });
});

test('a backlog that is added again keeps its position in the rotation', () => {
  const [a, b] = linesOf(1, 2) as [BacklogKey, BacklogKey];
  const row = linesWith([a, b]);
  row.add(a);
  expect(row.next(2, NONE).backlogs).toEqual([a, b]);
});

test('a removed backlog is not returned, and delays no other', () => {
  const [a, b, c] = linesOf(1, 3) as [BacklogKey, BacklogKey, BacklogKey];
  const [d] = linesOf(2, 1) as [BacklogKey];
  const inFlight = new InFlight(LIMITS);
  inFlight.noteResponse(a, 0);
  const row = linesWith([a, b, c, d], inFlight);
  row.delete(backlogKey(3, 'https://unknown.example'));
  row.delete(c);
  expect(row.next(4, NONE).backlogs).toEqual([a, d, b]);
  for (const line of [a, b]) row.delete(line);
  expect(row.next(1, NONE).backlogs).toEqual([d]);
});

test('a project without capacity delays no other, however few attempts it has in flight', () => {
  const inFlight = new InFlight(LIMITS);
  const [a] = linesOf(1, 1) as [BacklogKey];
  const [b, c] = linesOf(2, 2) as [BacklogKey, BacklogKey];
  inFlight.noteResponse(c, 0);
  inFlight.enter(a, 900);
  for (const line of [b, b]) inFlight.enter(line, 0);
  expect(linesWith([a, c], inFlight).next(1, NONE).backlogs).toEqual([c]);
});

test('no more of a project are returned than it may start, healthy or not', () => {
  const inFlight = new InFlight(LIMITS);
  const [busy, a, b] = linesOf(1, 3) as [BacklogKey, BacklogKey, BacklogKey];
  for (const line of [busy, a]) inFlight.noteResponse(line, 0);
  for (let nth = 0; nth < 55; nth += 1) inFlight.enter(busy, 0);
  expect(linesWith([a, b], inFlight).next(64, NONE).backlogs).toEqual([a]);
});

test('no more unknown backlogs are returned than may start', () => {
  const inFlight = new InFlight(LIMITS);
  const lines = linesOf(1, 4) as [BacklogKey, BacklogKey, BacklogKey, BacklogKey];
  const [busy, ...waiting] = lines;
  for (let nth = 0; nth < 23; nth += 1) inFlight.enter(busy, 0);
  for (const line of waiting) inFlight.enter(line, 0);
  expect(linesWith(waiting, inFlight).next(64, NONE).backlogs).toEqual(waiting.slice(0, 2));
});

test('those that another claim serves are excluded', () => {
  const [a, b] = linesOf(1, 2) as [BacklogKey, BacklogKey];
  expect(linesWith([a, b]).next(3, new Set([a])).backlogs).toEqual([b]);
});

test('a backlog keeps its position when it becomes healthy, or is no longer healthy', () => {
  const [a, b, c] = linesOf(1, 3) as [BacklogKey, BacklogKey, BacklogKey];
  const inFlight = new InFlight(LIMITS, (line) => row.reclassify(line));
  const row = linesWith([a, b, c], inFlight);
  inFlight.noteResponse(b, 0);
  expect(row.next(3, NONE).backlogs).toEqual([a, b, c]);
  inFlight.noteNoResponse(b);
  expect([row.next(3, NONE).backlogs, row.has(b)]).toEqual([[a, b, c], true]);
});

test('a healthy backlog may start at once when the unknown ones have their share; an empty one may not', () => {
  const inFlight = new InFlight(LIMITS, (line) => row.reclassify(line));
  const [a, b, idle] = linesOf(1, 3) as [BacklogKey, BacklogKey, BacklogKey];
  const row = linesWith([a, b], inFlight);
  for (const line of linesOf(1, 40).slice(3)) if (inFlight.capacityOf(line) > 0) inFlight.enter(line, 0);
  expect(row.next(64, NONE).backlogs).toEqual([]);
  for (const line of [b, idle]) inFlight.noteResponse(line, 0);
  expect(row.next(64, NONE).backlogs).toEqual([b]);
});

test('P9: ten thousand backlogs that may not start cost no steps before a healthy one, or another project', () => {
  const inFlight = new CountedInFlight(LIMITS);
  const hanging = linesOf(1, 10_000);
  const answering = backlogKey(1, 'https://answers.example');
  inFlight.noteResponse(answering, 0);
  for (const line of hanging) if (inFlight.capacityOf(line) > 0) inFlight.enter(line, 0);
  const other = backlogKey(2, 'https://new.example');
  const row = linesWith([...hanging, answering, other], inFlight);
  inFlight.asked = 0;
  expect(row.next(64, NONE).backlogs).toEqual([other, answering]);
  expect(inFlight.asked).toBe(2);
});

test('P9: with backlogs that may start, it takes about as many steps as there are attempts in flight', () => {
  const inFlight = new CountedInFlight(LIMITS);
  const lines = linesOf(1, 10_000);
  for (const line of lines.slice(0, 10)) inFlight.enter(line, 0);
  const row = linesWith(lines, inFlight);
  inFlight.asked = 0;
  expect(row.next(16, NONE).backlogs).toEqual(lines.slice(10, 26));
  expect(inFlight.asked).toBe(26);
});

describe('of a project with very many backlogs (P10)', () => {
  /** Reads backlogs of `stored` until no more are requested. */
  function readOn(row: Backlogs, stored: readonly BacklogKey[]): void {
    for (let piece = row.nextRange(); piece; piece = row.nextRange()) {
      const { after, limit } = piece;
      row.noteRead(piece, stored.filter((line) => line > after).slice(0, limit));
    }
  }

  function rowOf(backlogs: readonly BacklogKey[], backlogsMax: number, inFlight = new InFlight(LIMITS)): Backlogs {
    const row = new Backlogs(inFlight, backlogsMax);
    for (const line of backlogs) row.add(line);
    return row;
  }

  test('no more than the maximum are in memory, and the others are read when few of these are left', () => {
    const lines = linesOf(1, 10);
    const row = rowOf(lines, 4);
    expect([row.some(99), row.nextRange()]).toEqual([lines.slice(0, 4), undefined]);
    for (const line of lines.slice(0, 2)) row.delete(line);
    expect(row.nextRange()).toBeUndefined();
    row.delete(lines[2] as BacklogKey);
    expect(row.nextRange()).toEqual({ projectId: 1, after: '1 ', limit: 2 });
    readOn(row, lines.slice(3));
    expect(row.some(99)).toEqual(lines.slice(3, 7));
  });

  test('backlogs with attempts, which may start no more, keep no others out of memory', () => {
    const inFlight = new InFlight(LIMITS);
    const lines = linesOf(1, 5);
    const row = rowOf(lines.slice(0, 2), 2, inFlight);
    row.add(lines[2] as BacklogKey);
    expect(row.nextRange()).toBeUndefined();
    for (const line of lines.slice(0, 2)) inFlight.enter(line, 1);
    readOn(row, lines.slice(2));
    expect(row.some(99)).toEqual(lines.slice(0, 4));
  });

  test('a served backlog with more messages is behind those that are only in the store', () => {
    const [a, b, c] = linesOf(1, 3) as [BacklogKey, BacklogKey, BacklogKey];
    const row = rowOf([a, b, c], 2);
    row.moveToEnd(a);
    row.moveToEnd(b);
    row.delete(a);
    readOn(row, [a, b, c]);
    const named = new Set(row.some(99));
    for (const line of named) row.moveToEnd(line);
    readOn(row, [a, b, c]);
    expect(new Set([...named, ...row.some(99)])).toEqual(new Set([a, b, c]));
  });

  test('one that is excluded while the others are read is read after that', () => {
    const lines = linesOf(1, 6);
    const row = rowOf(lines.slice(1), 2);
    const served: BacklogKey[] = [];
    const waiting = new Set(lines);
    for (let steps = 0; !row.isEmpty && steps < 99; steps += 1) {
      if (steps === 3) row.add(lines[0] as BacklogKey); // before the position where reading continues
      const [line] = row.some(1);
      if (line) {
        served.push(line);
        waiting.delete(line);
        row.delete(line);
      }
      readOn(row, [...waiting].toSorted());
    }
    expect(served.toSorted()).toEqual(lines);
  });

  test('a new message may have others before it, unless its backlog is healthy', () => {
    const inFlight = new InFlight(LIMITS);
    const [a, b, c, d] = linesOf(1, 4) as [BacklogKey, BacklogKey, BacklogKey, BacklogKey];
    inFlight.noteResponse(d, 0);
    const row = rowOf([a, b], 1, inFlight);
    expect([b, c, d].map((line) => row.has(line))).toEqual([true, true, false]);
    expect(row.has(backlogKey(2, 'https://0.example'))).toBe(false);
  });

  test('a healthy backlog is in memory, whenever it responded', () => {
    const inFlight = new InFlight(LIMITS, (line) => row.reclassify(line));
    const [a, b, c] = linesOf(1, 3) as [BacklogKey, BacklogKey, BacklogKey];
    const row = rowOf([a, b], 1, inFlight);
    for (const line of [b, c]) inFlight.noteResponse(line, 0);
    row.add(c);
    expect(row.some(99)).toEqual([b, c, a]);
  });

  test('another project has all of its own in memory', () => {
    const others = linesOf(2, 2);
    const row = rowOf([...linesOf(1, 5), ...others], 2);
    expect(row.some(99)).toEqual([...linesOf(1, 2), ...others]);
  });

  test('no more are in memory when those of the previous project are read', () => {
    const [first, others] = [linesOf(1, 3), linesOf(2, 5)];
    const row = rowOf([...first, ...others], 2);
    for (const line of first.slice(0, 2)) row.delete(line);
    readOn(row, [...first.slice(2), ...others]);
    expect(row.some(99).toSorted()).toEqual([...first.slice(2), ...others.slice(0, 2)]);
  });

  test.each(Array.from({ length: 50 }, (_, seed) => seed))(
    'each line with messages is served in the end (seed %i)',
    (seed) => {
      const random = new SeededRandom(seed);
      const inFlight = new InFlight(LIMITS, (line) => row.reclassify(line));
      const row = new Backlogs(inFlight, random.int(1, 6));
      const lines = [...linesOf(1, 12), ...linesOf(2, 3)].toSorted();
      const messages = new Map<BacklogKey, number>();
      let reading: { piece: BacklogRange; found: BacklogKey[] } | undefined;
      const publish = () => {
        const line = random.choose(lines);
        messages.set(line, (messages.get(line) ?? 0) + 1);
        row.add(line);
      };
      const serve = () => {
        for (const line of row.next(random.int(1, 3), new Set()).backlogs) {
          const left = (messages.get(line) ?? 0) - 1;
          if (left > 0) messages.set(line, left);
          else messages.delete(line);
          if (left > 0) row.moveToEnd(line);
          else row.delete(line);
          if (random.chance(0.2)) inFlight.noteResponse(line, 0);
          if (random.chance(0.2)) inFlight.noteNoResponse(line);
        }
      };
      /** A result is a moment old when it arrives. */
      const read = () => {
        if (reading) row.noteRead(reading.piece, reading.found);
        const piece = row.nextRange();
        const { after = '1 ', limit = 0 } = piece ?? {};
        const stored = [...messages.keys()].toSorted();
        reading = piece && { piece, found: stored.filter((line) => line > after).slice(0, limit) };
      };
      for (let step = 0; step < 300; step += 1) random.choose([publish, publish, serve, read])();
      for (let step = 0; !row.isEmpty && step < 2_000; step += 1) random.choose([serve, read])();
      expect([row.isEmpty, [...messages.keys()]]).toEqual([true, []]);
    },
  );
});
