/**
 * An empty filter never selects everything: sends each bulk action of the route table every parameter that it takes, empty,
 * blank and repeated, in the query and in the body (contract M 21, W 17.2).
 */
import type { InjectOptions } from 'light-my-request';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Route } from '../../src/api/route.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { furnish, type Ids } from './support/belongings.ts';
import { openWorld, type Reply, type World } from './support/world.ts';

const bulk = await (async () => {
  const probe = await openWorld();
  await probe.close();
  return probe.routes.filter(isBulk).map((route) => ({ route, action: `${route.method} ${route.path}` }));
})();

/** What changes things, names none of them in its path, and can be narrowed. */
function isBulk({ method, path, takes }: Route): boolean {
  return method !== 'GET' && !/[:*]/.test(path) && Boolean(takes?.filters ?? takes?.query);
}

function parametersOf({ takes }: Route): string[] {
  const { filters, query = [] } = takes ?? {};
  return [...(filters?.rows ?? []), ...query].map(({ name }) => name);
}

interface Ground {
  world: World;
  ids: Ids;
}

/** One of everything; time stands still, so that nothing changes by itself. */
async function openGround(): Promise<Ground> {
  const world = await openWorld({}, { clock: new SimulatedClock() });
  return { world, ids: await furnish(world) };
}

/** For all that is to leave it as it is. */
let ground: Ground;
let before: string[];
beforeAll(async () => {
  ground = await openGround();
  before = await everything(ground);
});
afterAll(() => ground.world.close());

it('these are the bulk actions', () => {
  expect(bulk.map(({ action }) => action).toSorted()).toEqual([
    'DELETE /v2/dlq',
    'DELETE /v2/messages',
    'DELETE /v2/workflows/dlq',
    'DELETE /v2/workflows/runs',
    'POST /v2/dlq/retry',
    'POST /v2/workflows/dlq/restart',
    'POST /v2/workflows/dlq/resume',
  ]);
});

describe.each(bulk)('$action', ({ action, route }) => {
  it('acts on something without a filter, so that the others could be seen to act', async () => {
    const own = await openGround();
    onTestFinished(() => own.world.close());
    const untouched = await everything(own);
    expect((await ask(route, '', undefined, own)).status).toBeLessThan(300);
    expect(await everything(own)).not.toEqual(untouched);
  });

  it.each(parametersOf(route))('leaves all as it is when nothing is said of %s', async (name) => {
    for (const query of [`${name}=`, name, `${name}=&${name}=`, `${name}=,`, `${name}=,&${name}=`]) {
      // An id list that is empty acts on nothing, where it is not refused (contract M 21.5).
      expectNothing(await ask(route, `?${query}`), query);
    }
    for (const blank of [`${name}=%20`, `${name}=%09`, `${name}=+`, `${name}=%20&${name}=%20`]) {
      expectNothing(await ask(route, `?${blank}`), blank);
    }
    for (const value of ['', [''], ['', ''], ' ', [' ', ' '], [[]], {}, true]) {
      expectNothing(await ask(route, '', { [name]: value }), JSON.stringify(value));
    }
    for (const value of meansEverything(action, name) ? [] : [[], null]) {
      expectNothing(await ask(route, '', { [name]: value }), `${value}`);
    }
    expect(await everything(ground)).toEqual(before);
  });

  it('leaves all as it is when one of several filters says nothing, or is not known', async () => {
    const [first = ''] = parametersOf(route);
    for (const query of [
      `label=&${first}=`,
      'label=nobodys&url=',
      'lable=',
      'lable=a',
      'label=&lable=a',
      'label%00=a',
    ]) {
      expectNothing(await ask(route, `?${query}`), query);
    }
    expectNothing(await ask(route, '?label=', { label: 'nobodys' }), 'the query wins');
    expect(await everything(ground)).toEqual(before);
  });
});

/** Clients for Python and Go cancel all messages with an empty array of ids (contract M 21.5). */
function meansEverything(action: string, name: string): boolean {
  return action === 'DELETE /v2/messages' && name === 'messageIds';
}

function ask({ method, path }: Route, query: string, body?: unknown, { world } = ground): Promise<Reply> {
  const payload = body === undefined ? {} : { payload: JSON.stringify(body) };
  return world.ask({ method: method as NonNullable<InjectOptions['method']>, url: `${path}${query}`, ...payload });
}

/** Refused, or done to nothing: ids that nobody has are 404 where a retry names them. */
function expectNothing({ status, text, json }: Reply, what: string): void {
  if (status !== 400 && status !== 404) {
    const counts = [json.cancelled, json.deleted, json.responses?.length, json.workflowRuns?.length];
    expect(
      counts.filter((count) => count !== undefined),
      `${what}: ${status} ${text}`,
    ).toEqual([0]);
  }
}

/** All that a bulk action could act on, as its owner sees it. */
async function everything({ world, ids }: Ground): Promise<string[]> {
  const urls = [`/v2/messages/${ids['messages']}`, '/v2/dlq', '/v2/workflows/dlq', '/v2/workflows/logs'];
  const replies = await Promise.all(urls.map((url) => world.ask({ method: 'GET', url })));
  return replies.map(({ status, text }) => `${status} ${text}`);
}
