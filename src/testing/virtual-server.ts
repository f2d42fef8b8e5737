/** Starts the production server on a virtual clock, for the test kit and for `waypost dev --virtual-time`. */

import { type OpenedStore, openStore } from '../admin/open-store.ts';
import type { Config } from '../config/table.ts';
import type { Millis } from '../engine/model.ts';
import { type RunningServer, type ServerOptions, startServer } from '../server/server.ts';
import { endOfTurn, systemClock } from '../system/system.ts';
import { type Fault, TestDelivery } from './test-delivery.ts';
import { TimeAdvancer } from './time-advancer.ts';
import { VirtualClock } from './virtual-clock.ts';

/**
 * Default settings for virtual time: with the usual interval of a minute, retention would be most of the work when the
 * clock advances by a year.
 */
export const VIRTUAL_TIME_DEFAULTS = { WAYPOST_RETENTION_INTERVAL: '1d' };

/** The options with which a server is started, and started again after a stop. */
export interface VirtualServerOptions extends Pick<ServerOptions, 'log' | 'credentials' | 'onFatal'> {
  config: Config;
  clock: VirtualClock;
  store: OpenedStore;
  /** The faults of future attempts. */
  faults: Fault[];
  /** Whether requests can advance the clock. */
  isAdvancedByRequests: boolean;
}

/** A running server, and the control of its clock. */
export interface VirtualServer {
  server: RunningServer;
  time: TimeAdvancer;
}

/**
 * Opens the store, which must be in memory. The store runs in this thread, so that the time advancer knows when the store
 * has finished its work.
 */
export async function prepareVirtualServer(
  config: Config,
  {
    startMs,
    isAdvancedByRequests = false,
    ...options
  }: Pick<VirtualServerOptions, 'log' | 'credentials' | 'onFatal'> & {
    startMs?: Millis | undefined;
    isAdvancedByRequests?: boolean;
  },
): Promise<VirtualServerOptions> {
  const store = await openStore(config, { onFatal: options.onFatal, create: true, isInline: true });
  return { ...options, config, store, clock: new VirtualClock(startMs), faults: [], isAdvancedByRequests };
}

/** Throws `CannotStart`. The store stays open after an error, and after the server has stopped. */
export async function startVirtualServer({
  config,
  clock,
  faults,
  isAdvancedByRequests,
  ...options
}: VirtualServerOptions): Promise<VirtualServer> {
  let testDelivery: TestDelivery | undefined;
  /** The work in flight: attempts, and commands that are not saved yet. Saving takes only turns of the event loop. */
  const workInFlight = (): Promise<unknown> | undefined => {
    if (testDelivery !== undefined && testDelivery.inFlight > 0) return testDelivery.nextEnd;
    return (options.store.stats?.().waiting ?? 0) > 0 ? endOfTurn() : undefined;
  };
  const time = new TimeAdvancer(clock, workInFlight);
  const server = await startServer(config, {
    ...options,
    clock,
    testClockOptions: {
      signatureClock: systemClock,
      wrap: (delivery) => {
        testDelivery = new TestDelivery(delivery, { clock, timeoutMsMax: config.timeoutMaxMs, faults });
        return testDelivery;
      },
      ...(isAdvancedByRequests && { virtualTime: time }),
    },
  });
  return { server, time };
}
