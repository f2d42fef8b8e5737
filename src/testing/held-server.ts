/** The production server on a clock that is held: for the test kit, and for `waypost dev --virtual-time`. */

import { type OpenedStore, openStore } from '../admin/open-store.ts';
import type { Config } from '../config/table.ts';
import type { Millis } from '../engine/model.ts';
import { type RunningServer, type ServerOptions, startServer } from '../server/server.ts';
import { endOfTurn, systemClock } from '../system/system.ts';
import { Attempts, type Fault } from './attempts.ts';
import { HeldClock } from './held-clock.ts';
import { Passage } from './passage.ts';

/** Where a setting is not given: a round of dropping each minute would be most of what happens in a year. */
export const HELD_SETTINGS = { WAYPOST_RETENTION_INTERVAL: '1d' };

/** What a server needs, and keeps when it is started again. */
export interface Ground extends Pick<ServerOptions, 'log' | 'credentials' | 'onFatal'> {
  config: Config;
  clock: HeldClock;
  store: OpenedStore;
  /** What goes wrong with attempts to come. */
  faults: Fault[];
  /** Whether requests can pass time. */
  isPassedByRequests: boolean;
}

/** A server that runs, and the passing of its time. */
export interface Held {
  server: RunningServer;
  passage: Passage;
}

/** `config` says that the store is in memory. It is in this thread, so that it is known when nothing is left to do. */
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

/** Throws `CannotStart`; the store is still open then, and after the server has stopped. */
export async function startHeld({ config, clock, faults, isPassedByRequests, ...options }: Ground): Promise<Held> {
  let attempts: Attempts | undefined;
  /** An attempt, or what waits to be saved: that takes turns of the event loop only. */
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
