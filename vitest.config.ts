import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Starts nothing by itself: a PostgreSQL for the tests that ask for one (test/support/postgres/shared.ts).
    globalSetup: ['test/support/postgres/global-setup.ts'],
    // A test that waits for this long hangs: the slowest kind here spawns real processes.
    testTimeout: 90_000,
    hookTimeout: 60_000,
    // More than there are cores: a good part of the tests waits for processes, sockets and time-outs.
    maxWorkers: '175%',
    // The database's threads load sources that vitest does not transform: their types are stripped once, not in each thread.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('./node_modules/.cache/waypost', import.meta.url)) },
    // A failure is never run again: what fails once is a finding.
    retry: 0,
  },
});
