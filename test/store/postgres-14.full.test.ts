/** What may differ between versions of PostgreSQL, on the oldest that is promised to work. */
import { partitionsOn } from './postgres-partitions.ts';
import { plansOn } from './postgres-plans.ts';
import { conformanceOn } from './postgres-store.ts';

conformanceOn(14);
plansOn(14);
partitionsOn(14);
