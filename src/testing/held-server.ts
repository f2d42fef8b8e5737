/** Starts the production server on a virtual clock, for the test kit and for `waypost dev --virtual-time`. */

import { type OpenedStore, openStore } from '../admin/open-store.ts';
import type { Config } from '../config/table.ts';
import type { Millis } from '../engine/model.ts';
import { type RunningServer, type ServerOptions, startServer } from '../server/server.ts';
import { endOfTurn, systemClock } from '../system/system.ts';
import { Attempts, type Fault } from './attempts.ts';
import { HeldClock } from './held-clock.ts';
import { Passage } from './passage.ts';

/** Defaults for virtual time: with the usual interval of a minute, retention would be most of the work when a year passes. */
export const HELD_SETTINGS = { WAYPOST_RETENTION_INTERVAL: '1d' };

/** What a server is started with, and keeps across restarts. */
export interface Ground extends Pick<ServerOptions, 'log' | 'credentials' | 'onFatal'> {
  config: Config;
  clock: HeldClock;
  store: OpenedStore;
  /** The faults of future attempts. */
  faults: Fault[];
  /** Whether requests can advance the clock. */
  isPassedByRequests: boolean;
}

/** A running server, and the control of its clock. */
export interface Held {
  server: RunningServer;
  passage: Passage;
}

/** Requires a `config` with an in-memory store. It runs in this thread, so that it is known when its work is finished. */
export async function openGround(
  config: Config,
  {
    startMs,
    isPassedByRequests = false,
    ...options
  }: Pick<Ground, 'log' | 'credentials' | 'onFatal'> & { startMs?: Millis | undefined; isPassedByRequests?: boolean },
): Promise<Ground> {
  const store = await openStore(config, { onFatal: options.onFatal, create: true, isInline: true });
  return { ...options, config, store, clock: new HeldClock(startMs), faults: [], isPassedByRequests };
}

/** Throws `CannotStart`. The store stays open after that, and after the server has stopped. */
export async function startHeld({ config, clock, faults, isPassedByRequests, ...options }: Ground): Promise<Held> {
  let attempts: Attempts | undefined;
  /** Attempts in flight, and commands that are not saved yet. Saving takes only turns of the event loop. */
  const underWay = (): Promise<unknown> | undefined => {
    if (attempts !== undefined && attempts.underWay > 0) return attempts.nextEnd;
    return (options.store.stats?.().waiting ?? 0) > 0 ? endOfTurn() : undefined;
  };
  const passage = new Passage(clock, underWay);
  const server = await startServer(config, {
    ...options,
    clock,
    around: {
      signatureClock: systemClock,
      wrap: (delivery) => {
        attempts = new Attempts(delivery, { clock, timeoutMsMax: config.timeoutMaxMs, faults });
        return attempts;
      },
      ...(isPassedByRequests && { virtualTime: passage }),
    },
  });
  return { server, passage };
}
