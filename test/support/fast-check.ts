/** Configures fast-check with a fixed seed. `WAYPOST_TEST_SEED` sets another, `WAYPOST_TEST_RUNS` the number of cases. */
import fc from 'fast-check';

const { WAYPOST_TEST_SEED: seed = '1', WAYPOST_TEST_RUNS: numRuns = '100' } = process.env;
fc.configureGlobal({ seed: Number(seed), numRuns: Number(numRuns) });

export { fc };
