/** Random cases that are the same each time; another `WAYPOST_TEST_SEED` gives others, and `WAYPOST_TEST_RUNS` more of them. */
import fc from 'fast-check';

const { WAYPOST_TEST_SEED: seed = '1', WAYPOST_TEST_RUNS: numRuns = '100' } = process.env;
fc.configureGlobal({ seed: Number(seed), numRuns: Number(numRuns) });

export { fc };
