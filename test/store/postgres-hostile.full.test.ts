/** The store on a database whose defaults change how values are written and read: the specification holds there as well. */

import { storeConformance } from './conformance/index.ts';
import { hostileDatabase, openShared } from './postgres-store.ts';

storeConformance('PostgreSQL with hostile defaults', openShared(hostileDatabase));
