/** The specification of the store without its threads, so that a change of any source is in what runs here. */
import { openInlineSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import { storeConformance } from './conformance/index.ts';

const onFatal = (error: Error) => {
  throw error;
};

storeConformance('inline SQLite in memory', (limits) =>
  openInlineSqliteStore({ path: ':memory:', onFatal, ...(limits && { limits }) }),
);
