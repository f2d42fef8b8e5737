/** Cases that may differ between versions of PostgreSQL, on the oldest supported one. */

import { migratedDatabase } from '../support/postgres/shared.ts';
import { storeConformance } from './conformance/index.ts';
import { partitionsOn } from './postgres-partitions.ts';
import { plansOn } from './postgres-plans.ts';
import { openShared } from './postgres-store.ts';

storeConformance(
  'PostgreSQL 14',
  openShared(() => migratedDatabase(14)),
);
plansOn(14);
partitionsOn(14);
