/** Draws random changes of URL groups, and computes the endpoints that a group may have had at a time. */
import type { Engine } from '../../src/engine/commands.ts';
import type { Endpoint } from '../../src/engine/messages/url-groups.ts';
import type { Millis } from '../../src/engine/model.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { HEALTHY_ORIGIN, MOODY_ORIGINS } from './endpoints.ts';
import type { Call, GroupAction } from './ledger.ts';
import { PROJECT, type World } from './world.ts';

export const GROUPS = ['all', 'some'];

/** All endpoints that a group can have; half of them have a name. */
const ENDPOINTS: readonly Endpoint[] = [HEALTHY_ORIGIN, ...MOODY_ORIGINS].map((origin, index) => {
  const url = `${origin}/group`;
  return index % 2 === 0 ? { url } : { url, name: `endpoint-${index}` };
});

const NO_LIMITS = { groupsMax: 0, endpointsMax: 0 };

const STEP_WEIGHTS = { add: 6, remove: 3, delete: 1 };

export class GroupWorkload {
  readonly #world: World;
  readonly #random: SeededRandom;

  constructor(world: World, random: SeededRandom) {
    this.#world = world;
    this.#random = random.fork();
  }

  step(): void {
    const groupName = this.#random.choose(GROUPS);
    // The order of two concurrent changes would be unknown.
    const { groupCalls } = this.#world.ledger;
    if (groupCalls.some((call) => call.groupName === groupName && call.result === 'pending')) return;
    const action = this.#random.weighted(STEP_WEIGHTS);
    const chosen = Array.from({ length: this.#random.int(1, 3) }, () => this.#random.choose(ENDPOINTS));
    void this.#call({ action, groupName, urls: chosen.map(({ url }) => url) }, (engine) => {
      if (action === 'add')
        return engine
          .storeOf(PROJECT)
          .urlGroups.addEndpoints({ name: groupName, endpoints: chosen, limits: NO_LIMITS });
      if (action === 'remove') {
        const selectors = chosen.map(({ url, name }) => (name === undefined ? { url } : { name }));
        return engine.storeOf(PROJECT).urlGroups.removeEndpoints({ name: groupName, selectors });
      }
      return engine.storeOf(PROJECT).urlGroups.deleteUrlGroup({ name: groupName });
    });
  }

  async #call(change: GroupAction, action: (engine: Engine) => Promise<unknown>): Promise<void> {
    const { engine, ledger } = this.#world;
    if (!engine) return;
    const call = ledger.start(ledger.groupCalls, change);
    await this.#world.call(
      call,
      `${change.action} ${change.urls.join(' ')} of group ${change.groupName}`,
      () => action(engine),
      () => {},
    );
  }
}

/**
 * The sets of URLs, each as a sorted text, that the group may have had at some moment from `fromMs` to `toMs`. A change with an
 * unknown outcome adds both the old and the new set.
 */
export function possibleGroups(
  calls: readonly (GroupAction & Call)[],
  groupName: string,
  [fromMs, toMs]: readonly [Millis, Millis],
): Set<string> {
  let states = new Set(['']);
  const possible = new Set(states);
  for (const call of calls) {
    if (call.groupName !== groupName || call.result === 'rejected') continue;
    if (call.startAtMs > toMs) break;
    const after = new Set([...states].map((state) => changed(state, call)));
    states = call.result === 'acked' ? after : new Set([...states, ...after]);
    if (call.endedAtMs < fromMs) possible.clear();
    for (const state of states) possible.add(state);
  }
  return possible;
}

function changed(state: string, { action, urls }: GroupAction): string {
  const before = state === '' ? [] : state.split(' ');
  if (action === 'delete') return '';
  if (action === 'add') return textOfUrls([...before, ...urls]);
  return textOfUrls(before.filter((url) => !urls.includes(url)));
}

/** Formats a set of URLs as one text, as `possibleGroups` does. */
export function textOfUrls(urls: readonly string[]): string {
  return [...new Set(urls)].sort().join(' ');
}
