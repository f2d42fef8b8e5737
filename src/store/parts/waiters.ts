/** How are waits registered and ended, and how are notifications stored for later waits? */
import type { WaiterStore } from '../../engine/runs/stores.ts';
import type { Connection } from '../connection.ts';
import { encodeBytes } from '../operations/messages/content-rows.ts';
import { encodeNewMessage } from '../operations/messages/rows.ts';
import { decodeWaiter, dueWaiters } from '../operations/waiters/waiters.ts';
import { derive } from './derive.ts';
import { encodeWait } from './waiter-codec.ts';

export function waitersOver(connection: Connection): WaiterStore {
  return {
    ...derive(connection, { dueWaiters }),

    async nextPendingEvent(runKey, eventId) {
      const row = await connection.read('nextPendingEvent', { runKey, eventId });
      return row === null ? undefined : { key: row.key, body: row.body ?? new Uint8Array(0) };
    },

    addWaiter(waiter, taken, nowMs) {
      return connection.write('addWaiter', {
        wait: encodeWait(waiter),
        taken: taken ? { pendingEventKey: taken.pendingEventKey, result: encodeNewMessage(taken.result) } : null,
        nowMs,
      });
    },

    async listWaiters(projectId, eventId, { runKey = null, afterKey = -1, count }) {
      const rows = await connection.read('listWaiters', { projectId, eventId, runKey, afterKey, count });
      return rows.map(decodeWaiter);
    },

    resolveWaiters(resolutions, nowMs) {
      return connection.write('resolveWaiters', {
        resolutions: resolutions.map(({ waiterKey, result }) => ({ waiterKey, result: encodeNewMessage(result) })),
        nowMs,
      });
    },

    savePendingEvent(projectId, runKey, eventId, { key, body }, limits) {
      const pendingEvent = { projectId, runKey, eventId, key, body: encodeBytes(body), limits };
      return connection.write('savePendingEvent', pendingEvent);
    },
  };
}
