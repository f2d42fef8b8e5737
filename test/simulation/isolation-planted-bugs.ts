/** Bugs by which one project takes what is another's: what becomes of promise P9 without each rule that protects it. */

import type { ClaimRequest } from '../../src/engine/dispatch/claims.ts';
import { type OriginLine, readLine } from '../../src/engine/lanes/origin-line.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import type { Store } from '../../src/store/store.ts';
import type { StoreMethods } from '../support/altered-store.ts';
import { ISOLATED } from './isolation.ts';
import { altered } from './planted-bugs.ts';
import type { Sabotage } from './world.ts';

export const ISOLATION_BUGS: Record<string, () => Sabotage & { settings?: Partial<EngineSettings> }> = {
  'attempts that hang have no more places than slots': () => ({ settings: { silentMax: ISOLATED.inFlightMax / 2 } }),
  'a claim ignores how many attempts may hang': () =>
    claimingWith(({ unproven: _, roomByLine: __, ...request }) => request),
  'a claim takes every endpoint for one that answers': () =>
    claimingWith((request) => ({
      ...request,
      ...(request.unproven && { unproven: { ...request.unproven, slots: 1e9, defaultRoom: 1e9, roomByProject: {} } }),
    })),
  'the lines of all projects but one are taken for empty': () => altered(servingOne),
};

/** The same after an outage. */
export const OUTAGE_BUGS: Record<string, () => Sabotage> = {
  'a project that has just begun to wait has its turn like the others': () =>
    claimingWith(({ freshLines = 0, linesToServe, ...request }) => ({
      ...request,
      linesToServe: [...linesToServe.slice(freshLines), ...linesToServe.slice(0, freshLines)],
    })),
};

function claimingWith(change: (request: ClaimRequest) => ClaimRequest): Sabotage {
  return altered((store) => ({
    claim: ({ request, nowMs }) => store.messages.claim({ request: change(request), nowMs }),
  }));
}

/** As if they were looked for by their origin alone, and found in the project that had them first. */
function servingOne(store: Store): Partial<StoreMethods> {
  return {
    claim: async ({ request, nowMs }) => {
      const [own, others] = [
        request.linesToServe.filter(isOfFirst),
        request.linesToServe.filter((line) => !isOfFirst(line)),
      ];
      const answer = await store.messages.claim({ request: { ...request, linesToServe: own }, nowMs });
      return { ...answer, emptied: [...answer.emptied, ...others] };
    },
  };
}

function isOfFirst(line: OriginLine): boolean {
  return readLine(line).projectId === 1;
}
