import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that share workers, so that vitest and the sources are loaded once and not by each: none leaves anything behind in its process. What
 * some start has processes of its own, which end with them.
 */
const SHARING = [
  ...['api', 'config', 'conformance', 'delivery', 'engine', 'model', 'operator', 'protocol', 'simulation', 'store'],
  ...['cli/verbs', 'guides', 'telemetry', 'testing', 'workflow', 'workflows'],
].map((folder) => `test/${folder}/**/*.test.ts`);

/** As those above. Long proofs of theirs load the machine, and have workers of their own. */
const SHARING_UNLESS_LONG = [
  ...['bench', 'cells', 'cli', 'console', 'crash', 'deploy', 'docs', 'examples', 'house', 'library', 'overload'],
  ...['powercut', 'support', 'threads', 'upgrades'],
].map((folder) => `test/${folder}/**/!(*.full|*.hand).test.ts`);

/**
 * Long proofs. A run of everything leaves them out, so that whoever changes something waits for minutes only; `npm run test:full` is
 * those named `full` alone, and `npm run test:hand` those named `hand`, which are no part of the gate. Whoever names a file or a folder
 * below test gets all that is there.
 */
const FULL = 'test/**/*.{full,hand}.test.ts';
const namesPlaces = process.argv
  .slice(2)
  .some((argument) => /^test$|(^|[\\/])test[\\/]|\.(full|hand)\b/.test(argument));
/** Needs an installation of Citus, which no package has: it is named by `CITUS_FOLDER`, and `npm run test:citus` names the folder. */
const ON_CITUS = 'test/citus/**';
const leftOut = [...(namesPlaces ? [] : [FULL]), ...(namesPlaces && process.env['CITUS_FOLDER'] ? [] : [ON_CITUS])];

/**
 * More than cores: a third of a run is waiting, for processes to start, disks, pages and the clock. The long proofs load the machine
 * themselves.
 */
const WORKERS = Math.ceil(availableParallelism() * (namesPlaces ? 1.5 : 2));

/** Parts of the names of the longest of those that share workers. */
const LONG = [
  'console/console',
  'threads/threads',
  'planted-bugs',
  'postgres-14',
  'simulation',
  '.postgres.full',
  'store/sqlite',
  'store/postgres.',
  'isolation',
  'messaging',
];

/** First files with a worker of their own, then those that share workers, the longest first: none of them is left to run alone. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project, moduleId }: TestSpecification): number => {
      if (project.config.isolate) return 0;
      return LONG.some((name) => moduleId.includes(name)) ? 1 : 2;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

const each = {
  // A test that waits for this long hangs, also on a machine that is busy with other things.
  testTimeout: 240_000,
  hookTimeout: 240_000,
  // The database's threads load sources that vitest does not transform: their types are stripped once, not in each thread.
  env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('./node_modules/.cache/waypost', import.meta.url)) },
  // Node runs the sources as they are, as it does for users: vite's own way takes three times as long.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  // A failure is never run again: what fails once is a finding.
  retry: 0,
  maxWorkers: WORKERS,
};

export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    // Starts nothing by itself: a PostgreSQL for the tests that ask for one (test/support/postgres/shared.ts).
    globalSetup: ['test/support/postgres/global-setup.ts'],
    projects: [
      {
        test: {
          ...each,
          name: 'processes',
          include: ['test/**/*.test.ts'],
          exclude: [...SHARING, ...SHARING_UNLESS_LONG, ...leftOut],
        },
      },
      {
        test: {
          ...each,
          name: 'in process',
          include: [...SHARING, ...SHARING_UNLESS_LONG],
          exclude: leftOut,
          isolate: false,
        },
      },
    ],
  },
});
