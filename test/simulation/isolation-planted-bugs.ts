/** Bugs by which one project takes what is another's: what becomes of promise P9 without each rule that protects it. */
import { lineOf, readLine } from '../../src/engine/origin-line.ts';
import type { ClaimRequest, Store } from '../../src/engine/stores.ts';
import { altered } from './planted-bugs.ts';
import type { Sabotage } from './world.ts';

export const ISOLATION_BUGS: Record<string, () => Sabotage> = {
  'a claim ignores how many attempts may hang': () => claimingWith(({ unproven: _, roomByLine: __, ...request }) => request),
  'a claim takes every endpoint for one that answers': () =>
    claimingWith((request) => ({ ...request, ...(request.unproven && { unproven: { ...request.unproven, places: 1e9, defaultRoom: 1e9, roomByProject: {} } }) })),
  'an origin has one line for all projects': () =>
    claimingWith((request) => ({ ...request, unpark: request.unpark.map((line) => lineOf(1, readLine(line).origin)) })),
  'what finds no room stays where it stands before others': () => altered(keepingInTheWay),
};

function claimingWith(change: (request: ClaimRequest) => ClaimRequest): Sabotage {
  return altered((store) => ({ claim: (request, nowMs) => store.claim(change(request), nowMs) }));
}

/** The worker never hears that lines have messages, and looks only at what is due. */
function keepingInTheWay(store: Store): Partial<Store> {
  return {
    claim: async (request, nowMs) => {
      const answer = await store.claim({ ...request, unpark: request.unpark.slice(0, 1) }, nowMs);
      return { ...answer, emptied: [], parked: answer.parked.slice(0, 1) };
    },
  };
}
