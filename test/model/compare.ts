/** Runs random commands on the engine and on a reference of one page, and compares their states after each. */
import { fc } from '../support/fast-check.ts';
import { COMMANDS } from './commands.ts';
import { Reference } from './reference.ts';
import { System } from './system.ts';

export async function compare({ seed, runs }: { seed: number; runs: number }): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.commands(COMMANDS, { maxCommands: 40, size: 'max' }), async (commands) => {
      const system = await System.open();
      try {
        await fc.asyncModelRun(() => ({ model: new Reference(), real: system }), commands);
      } finally {
        await system.close();
      }
    }),
    { seed, numRuns: runs },
  );
}
