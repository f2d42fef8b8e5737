/** The specification of the store, in a schema on a node of Citus, through the coordinator and through the other node. */
import { storeConformance } from '../store/conformance/index.ts';
import { openShared } from '../store/postgres-store.ts';
import { makeStore } from './citus.ts';
import { useCitus } from './shared.ts';

const citus = useCitus();

storeConformance(
  'Citus, through the coordinator',
  openShared(() => makeStore(citus(), 'one')),
);
