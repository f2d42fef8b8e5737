/** How is expired data removed, by rows and by whole tables? */
import type { RetentionStore } from '../../engine/stores.ts';
import type { Connection } from '../connection.ts';

export function retentionOver(connection: Connection): RetentionStore {
  return {
    async dropExpired(bounds) {
      const mayLeaveRows = await connection.write('dropExpired', bounds);
      const mayLeaveTables = (await connection.dropTables?.(bounds)) ?? false;
      return mayLeaveRows || mayLeaveTables;
    },
  };
}
