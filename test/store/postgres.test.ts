/** On the newest PostgreSQL; the oldest: postgres-14.full.test.ts. */
import { conformanceOn } from './postgres-store.ts';

conformanceOn(18);
