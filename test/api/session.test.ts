/** The response that describes the token of a request. The console requests it first. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OTHER_TOKEN, openWorld, PUBLISH_ONLY_TOKEN, READ_ONLY_TOKEN, TOKEN, type World } from './support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

it.each([
  [TOKEN, { project: 'first', scope: 'full' }],
  [READ_ONLY_TOKEN, { project: 'first', scope: 'read-only' }],
  [PUBLISH_ONLY_TOKEN, { project: 'first', scope: 'publish-only', tokenName: 'the shop' }],
  [OTHER_TOKEN, { project: 'second', scope: 'full' }],
])('tells the owner of the token %s its project, its scope, and its name where it has one', async (token, expected) => {
  const headers = { authorization: `Bearer ${token}` };
  const { status, json } = await world.ask({ method: 'GET', url: '/v2/waypost/session', headers });
  expect([status, json]).toEqual([200, expected]);
});
