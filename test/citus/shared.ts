/** One Citus for the cases of a file. */
import { afterAll, beforeAll } from 'vitest';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { systemClock } from '../../src/system/system.ts';
import { Citus, type CitusOptions } from './citus.ts';

export function useCitus(options?: CitusOptions): () => Citus {
  let citus: Citus | undefined;
  beforeAll(async () => {
    citus = await Citus.start(options);
  });
  afterAll(() => citus?.dispose());
  return () => {
    if (!citus) throw new Error('Citus has not started');
    return citus;
  };
}

/** A schema with the tables of a store, and nothing in them. */
export async function makeStore(citus: Citus, schema: string): Promise<string> {
  await citus.makeSchema(schema);
  const url = citus.url(schema);
  const store = await openPostgresStore({ url, listenUrl: '', clock: systemClock, sender: schema, onFatal: () => {} });
  await store.close();
  return url;
}
