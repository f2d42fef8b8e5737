/** Polls a cell that is not open on this worker, over the connections that the open stores share. */

import type { Totals } from '../../../engine/lists/unfinished.ts';
import type { CellPoll } from '../../../engine/stores.ts';
import { decodeTotals, readTotals } from '../../operations/reports/totals.ts';
import { pollCell } from '../../operations/workers/poll.ts';
import { listenTargetOf, type Servers } from './connections/servers.ts';
import { locationOf } from './connections/url.ts';
import type { PostgresContext } from './context.ts';
import { PostgresDriver } from './driver.ts';
import { channelOf } from './notifications.ts';

export interface CellWatch {
  /** Throws `StoreUnavailable`, or the error of the database if it contains no store. */
  poll(): Promise<CellPoll>;
  /** Throws like `poll`. */
  readTotals(): Promise<Totals>;
  /**
   * From now on, calls `listener` when a worker notifies that a message is due in the cell, or when a notification may be
   * lost. Not for a store that is open on this worker: an open store listens itself.
   */
  listen(listener: () => void): void;
  close(): Promise<void>;
}

/** An empty `listenUrl` disables notifications. */
export function watchPostgresStore(context: PostgresContext, servers: Servers, listenUrl: string): CellWatch {
  const { pool, listenConnection, polling } = servers.at(context.url, listenTargetOf(listenUrl));
  const driver = new PostgresDriver(context, pool);
  const channel = channelOf(locationOf(context.url).schema);
  let isListening = false;
  return {
    poll: () => polling.run(() => driver.readNow(pollCell)),
    readTotals: () =>
      polling.run(() =>
        driver.readNow(async (queries, nowMs) => decodeTotals(await readTotals(queries, { nowMs }), { nowMs })),
      ),
    listen(listener) {
      isListening = true;
      listenConnection?.add(channel, { onNotification: listener, onGap: listener });
    },
    async close() {
      if (isListening) await listenConnection?.remove(channel);
      await driver.close();
    },
  };
}
