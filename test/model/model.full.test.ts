/** Repeats model.test.ts with more and other commands. */
import { test } from 'vitest';
import { compare } from './compare.ts';

test('all that a client can do comes to what the reference says, after each command', async () => {
  await compare({ seed: 43, runs: 25 });
});
