/** Runs the tests that scripts/mutate.ts selects, all in one process. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: ['test/support/postgres/global-setup.ts'],
    include: (process.env['WAYPOST_MUTATE_TESTS'] ?? '').split(','),
    testTimeout: 90_000,
    isolate: false,
  },
});
