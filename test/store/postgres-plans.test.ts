/** On the newest PostgreSQL; the oldest: postgres-14.full.test.ts. */
import { plansOn } from './postgres-plans.ts';

plansOn(18);
