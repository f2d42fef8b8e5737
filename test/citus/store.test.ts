/** The specification of the store, in a schema of Citus that lies on a node: asked through the coordinator, and through the other node. */
import { storeConformance } from '../store/conformance/index.ts';
import { openShared } from '../store/postgres-store.ts';
import { makeStore } from './citus.ts';
import { useCitus } from './shared.ts';

const citus = useCitus();

storeConformance(
  'Citus, through the coordinator',
  openShared(() => makeStore(citus(), 'one')),
);
