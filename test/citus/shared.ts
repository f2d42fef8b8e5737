/** One Citus for all cases of a file. */
import { afterAll, beforeAll } from 'vitest';
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
