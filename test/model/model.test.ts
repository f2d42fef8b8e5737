/** Compares the whole messaging interface with a reference implementation of one page. More commands: model.full.test.ts. */
import { test } from 'vitest';
import { compare } from './compare.ts';

test('queues, keys, groups, DLQ, cancels, logs and restarts are as the reference says, after each command', async () => {
  await compare({ seed: 42, runs: 8 });
});
