/** On the newest PostgreSQL; the oldest: postgres-14.full.test.ts. */
import { partitionsOn } from './postgres-partitions.ts';

partitionsOn(18);
