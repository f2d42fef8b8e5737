/** The common specification on the embedded store without its threads, so that a mutated source is what runs here. */
import { createStore } from '../../src/store/create.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { openInlineSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { storeConformance } from './conformance/index.ts';

const onFatal = (error: Error) => {
  throw error;
};

/** Whether a store that checks placements can show these cases. */
const isOfAllProjects = (noun: string) => noun === 'projects' || noun === 'cells';

storeConformance(
  'inline SQLite in memory',
  (limits) => openInlineSqliteStore({ path: ':memory:', onFatal, ...(limits && { limits }) }),
  isOfAllProjects,
);

/** The projects of all cases. */
const PROJECTS = Array.from({ length: 12 }, (_, id) => [id, `project ${id}`, '', '', 0]);

// One of several cells behaves the same for its projects.
storeConformance(
  'guarded inline SQLite',
  async (limits) => {
    const driver = new SqliteDriver({ path: ':memory:' });
    await migrate(driver);
    await driver.transaction((tx) =>
      tx.insertMany('projects', ['id', 'name', 'signing_current', 'signing_next', 'created_at_ms'], PROJECTS),
    );
    const store = createStore(driver, { ...(limits && { limits }) });
    store.guardProjects();
    return store;
  },
  (noun) => !isOfAllProjects(noun),
);
