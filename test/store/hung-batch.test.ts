/** Commands wait only once for a database that hangs. */
import { expect, it } from 'vitest';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { BatchOutcome, WriteResult } from '../../src/store/batches/batch.ts';
import { GroupCommit } from '../../src/store/batches/group-commit.ts';
import { StoreEvents } from '../../src/store/connection.ts';

const NOTHING = { dueAtMs: null, othersDueAtMs: null, waitingBacklogs: [], cancelledClaims: [] };
const UNAVAILABLE: WriteResult = { kind: 'unavailable', reason: 'no response', isCommitUnknown: false };
const SAVED: WriteResult = { kind: 'result', result: undefined };

/** Two commands in a batch, and a third that arrives during it: the outcome of the third. */
async function behind(results: WriteResult[], tookMs: number): Promise<string> {
  let elapsedMs = 0;
  const batches: ((outcome: BatchOutcome) => void)[] = [];
  const flush = () => new Promise<BatchOutcome>((resolve) => batches.push(resolve));
  const commits = new GroupCommit(flush, new StoreEvents(), () => {}, { elapsedMs: () => elapsedMs });
  const run = () => commits.run('reserveNumbers', { count: 1 });
  const first = [run(), run()].map((command) => command.catch(() => {}));
  await Promise.resolve();
  const third = run().then(
    () => 'saved',
    (error: unknown) => (error instanceof StoreUnavailable ? error.message : 'another error'),
  );
  elapsedMs += tookMs;
  batches.shift()?.({ results, ...NOTHING });
  await Promise.all(first);
  await Promise.resolve();
  batches.shift()?.({ results: [SAVED], ...NOTHING });
  return third;
}

it.each([
  ['is refused with it when the database let that hang', [UNAVAILABLE, UNAVAILABLE], 1_001, 'no response'],
  ['goes on when that was refused at once', [UNAVAILABLE, UNAVAILABLE], 1_000, 'saved'],
  ['goes on when that took long and came through', [SAVED, SAVED], 60_000, 'saved'],
  ['goes on when a part of that came through', [UNAVAILABLE, SAVED], 60_000, 'saved'],
] as const)('commands behind a batch %s', async (_, results, tookMs, fate) => {
  expect(await behind([...results], tookMs)).toBe(fate);
});
