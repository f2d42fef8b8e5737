/** The tests that are to notice a change, all in one process: scripts/mutate.ts says which. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: ['test/support/postgres/global-setup.ts'],
    include: (process.env['WAYPOST_MUTATE_TESTS'] ?? '').split(','),
    testTimeout: 90_000,
    isolate: false,
  },
});
