/** Bugs with which one project takes the capacity of another. Each bug removes a rule that protects promise P9. */

import type { ClaimRequest } from '../../src/engine/dispatch/claims.ts';
import { type BacklogKey, parseBacklogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import type { Store } from '../../src/store/store.ts';
import type { StoreMethods } from '../support/altered-store.ts';
import { ISOLATED } from './isolation.ts';
import { altered } from './planted-bugs.ts';
import type { Sabotage } from './world.ts';

export const ISOLATION_BUGS: Record<string, () => Sabotage & { settings?: Partial<EngineSettings> }> = {
  'silent attempts are limited like slots': () => ({ settings: { silentMax: ISOLATED.inFlightMax / 2 } }),
  'a claim ignores the limits of endpoints of unknown health': () =>
    claimingWith(({ unknown: _, capacityByBacklog: __, ...request }) => request),
  'a claim treats every endpoint as healthy': () =>
    claimingWith((request) => ({
      ...request,
      ...(request.unknown && {
        unknown: { ...request.unknown, slots: 1e9, defaultCapacity: 1e9, capacityByProject: {} },
      }),
    })),
  'the backlogs of all projects but one are treated as empty': () => altered(servingOne),
};

/** Bugs for the simulation of an outage, each of which removes a rule, too. */
export const OUTAGE_BUGS: Record<string, () => Sabotage> = {
  'a project with a new backlog is served in the rotation like the others': () =>
    claimingWith(({ freshBacklogs = 0, backlogsToServe, ...request }) => ({
      ...request,
      backlogsToServe: [...backlogsToServe.slice(freshBacklogs), ...backlogsToServe.slice(0, freshBacklogs)],
    })),
};

function claimingWith(change: (request: ClaimRequest) => ClaimRequest): Sabotage {
  return altered((store) => ({
    claim: ({ request, nowMs }) => store.messages.claim({ request: change(request), nowMs }),
  }));
}

/**
 * Serves only backlogs of the first project and reports the others as empty, as if backlogs were found by origin alone.
 */
function servingOne(store: Store): Partial<StoreMethods> {
  return {
    claim: async ({ request, nowMs }) => {
      const [own, others] = [
        request.backlogsToServe.filter(isOfFirst),
        request.backlogsToServe.filter((line) => !isOfFirst(line)),
      ];
      const answer = await store.messages.claim({ request: { ...request, backlogsToServe: own }, nowMs });
      return { ...answer, emptied: [...answer.emptied, ...others] };
    },
  };
}

function isOfFirst(backlog: BacklogKey): boolean {
  return parseBacklogKey(backlog).projectId === 1;
}
