/**
 * The common specification on the newest PostgreSQL, with defaults that change how values are written and read. With
 * normal defaults, on the oldest: postgres-14.full.test.ts.
 */
import { storeConformance } from './conformance/index.ts';
import { hostileDatabase, openShared } from './postgres-store.ts';

storeConformance('PostgreSQL 18 with hostile defaults', openShared(hostileDatabase));
