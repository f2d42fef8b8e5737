/** The whole messaging interface against a reference of a page: after every command both show the same. */
import fc from 'fast-check';
import { test } from 'vitest';
import { COMMANDS } from './commands.ts';
import { Reference } from './reference.ts';
import { System } from './system.ts';

test('queues, keys, groups, DLQ, cancels, logs and restarts are as the reference says, after each command', async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(COMMANDS, { maxCommands: 40, size: 'max' }), async (commands) => {
      const system = await System.open();
      try {
        await fc.asyncModelRun(() => ({ model: new Reference(), real: system }), commands);
      } finally {
        await system.close();
      }
    }),
    { seed: 42, numRuns: 40 },
  );
});
