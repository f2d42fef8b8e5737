/** Group commit: which commands are committed together, and the results of late, blocked and failing batches. */
import { beforeEach, describe, expect, it } from 'vitest';
import { HUNG_MS, StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { BatchOutcome, WriteResult } from '../../src/store/batches/batch.ts';
import { type Flush, GroupCommit } from '../../src/store/batches/group-commit.ts';
import { StoreEvents } from '../../src/store/connection.ts';
import type { WriteCommand } from '../../src/store/operations/all.ts';

const SCOUTS_MAX = 3;
const LATE_MS = 100;

interface Flushed {
  commands: readonly WriteCommand[];
  /** The commands of projects 7 and 8, when it started. */
  suspected: boolean[];
  complete: (results: WriteResult[]) => void;
}

/** Flushes that the test completes, and pauses that it ends. */
let flushes: Flushed[];
let pauses: (() => void)[];
let latePauses: (() => void)[];
let commits: GroupCommit;
let order: string[];
let elapsedMs: number;

beforeEach(() => {
  flushes = [];
  pauses = [];
  latePauses = [];
  order = [];
  elapsedMs = 0;
  const flush: Flush = (commands, suspects) =>
    new Promise<BatchOutcome>((resolve) => {
      const none = { dueAtMs: null, othersDueAtMs: null, waitingBacklogs: [], cancelledClaims: [] };
      flushes.push({
        commands,
        suspected: [7, 8].map((id) => suspects.has(id)),
        complete: (results) => resolve({ ...none, results }),
      });
    });
  commits = new GroupCommit(flush, new StoreEvents(), () => {}, {
    late: { ms: LATE_MS, pause: () => new Promise<void>((resolve) => latePauses.push(resolve)) },
    elapsedMs: () => elapsedMs,
    blocked: { pause: () => new Promise<void>((resolve) => pauses.push(resolve)), scoutsMax: SCOUTS_MAX },
  });
});

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const saved: WriteResult = { kind: 'result', result: undefined };
const blocked: WriteResult = { kind: 'blocked', projectId: 7 };

function run(name: string): Promise<void> {
  return commits.run('reserveNumbers', { count: 1 }).then(
    () => void order.push(name),
    (error: unknown) => void order.push(`${name}: ${error instanceof StoreUnavailable ? error.message : 'failed'}`),
  );
}

function runAccept(name: string): Promise<void> {
  return commits.run('addMinutes', { projectId: 7, minutes: [] }).then(() => void order.push(name));
}

/** Completes the next flush, in order. */
async function complete(...results: WriteResult[]): Promise<Flushed> {
  await settled();
  const flush = flushes.shift();
  if (!flush) throw new Error('nothing is being flushed');
  expect(flush.commands).toHaveLength(results.length);
  flush.complete(results);
  await settled();
  return flush;
}

/** A late batch, and a second one that has started. */
async function lateAndBeside(): Promise<Promise<void>[]> {
  const all = [run('late')];
  await settled();
  elapsedMs = LATE_MS + 1;
  all.push(run('beside'));
  await settled();
  return all;
}

/** After it, each running batch is late. */
async function passLatePause(): Promise<void> {
  elapsedMs += LATE_MS + 1;
  for (const resolve of latePauses.splice(0)) resolve();
  await settled();
}

async function passPause(): Promise<void> {
  pauses.shift()?.();
  await settled();
}

it('a close waits for the flush in progress, and for the commands behind it', async () => {
  const first = run('first');
  await settled();
  const second = run('second');
  const closed = commits.close().then(() => order.push('closed'));
  await complete(saved);
  expect(order).toEqual(['first']);
  await complete(saved);
  await Promise.all([first, second, closed]);
  expect(order).toEqual(['first', 'second', 'closed']);
});

describe('commands that arrive during a batch', () => {
  it('form one batch after it', async () => {
    const all = [run('a')];
    await settled();
    elapsedMs = LATE_MS;
    all.push(run('b'), run('c'));
    await settled();
    expect(flushes).toHaveLength(1);
    await complete(saved);
    await complete(saved, saved);
    await Promise.all(all);
  });

  it('form a second batch when it is late, but no third one', async () => {
    const all = await lateAndBeside();
    elapsedMs += LATE_MS + 1;
    all.push(run('last'));
    await settled();
    expect(flushes).toHaveLength(2);
    const late = flushes.shift();
    await complete(saved);
    expect(order).toEqual(['beside']);
    await complete(saved);
    expect(order).toEqual(['beside', 'last']);
    late?.complete([saved]);
    await Promise.all(all);
  });

  it('form a second batch when it turns out to be late, even if no other command arrives', async () => {
    const all = [run('late')];
    await settled();
    all.push(run('a'), run('b'));
    await passLatePause();
    const late = flushes.shift();
    await complete(saved, saved);
    expect(order).toEqual(['a', 'b']);
    late?.complete([saved]);
    await Promise.all(all);
  });

  it('join the next batch of the others when both batches are fast again', async () => {
    const all = await lateAndBeside();
    all.push(run('a'), run('b'));
    await complete(saved);
    expect(order).toEqual(['late']);
    expect(flushes).toHaveLength(1);
    await complete(saved);
    await complete(saved, saved);
    await Promise.all(all);
    expect(order).toEqual(['late', 'beside', 'a', 'b']);
  });

  it('do not wait for a batch that turns out to be late when the one beside it has ended', async () => {
    const all = await lateAndBeside();
    all.push(run('a'));
    await complete(saved);
    expect(order).toEqual(['late']);
    await passLatePause();
    const beside = flushes.shift();
    await complete(saved);
    expect(order).toEqual(['late', 'a']);
    beside?.complete([saved]);
    await Promise.all(all);
  });
});

describe('commands that another worker blocks', () => {
  it('are tried one at a time, even if others arrive after all have succeeded', async () => {
    const all = [run('a')];
    await complete(blocked);
    await passPause();
    await complete(saved);
    expect(pauses).toHaveLength(1);
    all.push(run('b'));
    await complete(blocked);
    expect(pauses).toHaveLength(1);
    await passPause();
    await complete(saved);
    await Promise.all(all);
  });

  it('wait while other commands continue, and follow when their scout is no longer blocked', async () => {
    const all = ['a', 'b', 'c'].map(run);
    await complete(blocked, blocked, saved);
    expect(order).toEqual(['c']);
    expect(flushes).toHaveLength(0);
    await passPause();
    const scouting = await complete(saved);
    expect(scouting.suspected).toEqual([true, false]);
    expect(order).toEqual(['c', 'a']);
    const rest = await complete(saved);
    expect(rest.suspected).toEqual([false, false]);
    await Promise.all(all);
    expect(order).toEqual(['c', 'a', 'b']);
  });

  it('are refused after a limit of attempts', async () => {
    const all = [run('a'), run('b')];
    await complete(blocked, blocked);
    for (let look = 0; look < SCOUTS_MAX; look += 1) {
      await passPause();
      await complete(blocked);
    }
    await passPause();
    await Promise.all(all);
    const reason = 'another worker has the project locked';
    expect(order.toSorted()).toEqual([`a: ${reason}`, `b: ${reason}`]);
    expect(commits.counts.waiting).toBe(0);
  });

  it('move from one project to the next when they need several', async () => {
    const one = run('a');
    await complete(blocked);
    await passPause();
    await complete({ kind: 'blocked', projectId: 8 });
    await passPause();
    await complete(saved);
    await one;
    expect(order).toEqual(['a']);
    await passPause();
    expect(pauses).toHaveLength(0);
  });

  it('continue when the first of them is refused with the commands behind a hung batch', async () => {
    const all = [run('a'), run('b')];
    await complete(blocked, blocked);
    const hung = run('hung');
    await settled();
    await passPause();
    elapsedMs += HUNG_MS + 1;
    await complete({ kind: 'unavailable', reason: 'no response', isCommitUnknown: false });
    await complete(saved);
    await Promise.all([...all, hung]);
    expect(order).toEqual(['hung: no response', 'a: no response', 'b']);
    expect(commits.counts.waiting).toBe(0);
  });

  it('are awaited by a close, and refused when the store fails', async () => {
    const one = run('a');
    await complete(blocked);
    const closed = commits.close().then(() => order.push('closed'));
    await settled();
    expect(order).toEqual([]);
    commits.fail(new Error('broken'));
    await one;
    await passPause();
    await closed;
    expect(order).toEqual(['a: the store has failed', 'closed']);
  });
});

describe('the callers of a large batch', () => {
  it('continue a few at a time, those with new messages before all others', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `${index}`);
    const turns: (() => void)[] = [];
    const flush: Flush = async (commands) => ({
      results: commands.map(() => saved),
      dueAtMs: null,
      othersDueAtMs: null,
      waitingBacklogs: [],
      cancelledClaims: [],
    });
    const endOfTurn = () => new Promise<void>((resolve) => turns.push(resolve));
    commits = new GroupCommit(flush, new StoreEvents(), () => {}, { endOfTurn });
    const all = [...names.map(run), runAccept('new')];
    const closed = commits.close().then(() => order.push('closed'));
    turns.shift()?.();
    await settled();
    expect(order).toEqual(['new']);
    turns.shift()?.();
    await settled();
    expect(order).toEqual(['new', ...names.slice(0, 16)]);
    for (let left = turns.length; left > 0; left = turns.length) {
      for (const resolve of turns.splice(0)) resolve();
      await settled();
    }
    await Promise.all([...all, closed]);
    expect(order).toEqual(['new', ...names, 'closed']);
  });
});
