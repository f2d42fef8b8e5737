/** Accepts a token that another server on a shared database has just created. */
import { expect, test } from 'vitest';
import type { Accounts } from '../../src/api/accounts.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { hashToken } from '../../src/protocol/token.ts';
import { openWorld, type World } from './support/world.ts';

/** Accounts that know of nobody until they have looked again. */
async function world(look: () => Promise<void> | undefined): Promise<{ world: World; looks: () => number }> {
  const known = new Set<string>();
  let looks = 0;
  const accounts: Accounts = {
    authenticate: (tokenHash) => (known.has(tokenHash) ? { projectId: 1, scope: 'full' } : undefined),
    refreshForUnknownToken: () => {
      looks += 1;
      return look()?.then(() => void known.add(hashToken('new')));
    },
    projectByName: () => 1,
    projectName: () => 'first',
    signingKeys: () => Promise.resolve({ current: 'c', next: 'n' }),
    cachedSigningKeys: () => ['c', 'n'],
    rotate: () => Promise.resolve({ current: 'c', next: 'n' }),
  };
  return { world: await openWorld({ accounts }), looks: () => looks };
}

const ask = (at: World, token: string) =>
  at.ask({ method: 'GET', url: '/v2/queues', headers: { authorization: `Bearer ${token}` } });

test('a token that was made elsewhere is let in by the request that brings it', async () => {
  const { world: it, looks } = await world(() => Promise.resolve());
  expect((await ask(it, 'new')).status).toBe(200);
  expect((await ask(it, 'new')).status).toBe(200);
  expect(looks()).toBe(1);
  await it.close();
});

test('a token that nobody has made is refused after one look', async () => {
  const { world: it, looks } = await world(() => Promise.resolve());
  expect((await ask(it, 'guessed')).status).toBe(401);
  expect(looks()).toBe(1);
  await it.close();
});

test('a token is refused at once where there is nothing to be read, and a request without one sets off no look', async () => {
  const { world: it, looks } = await world(() => undefined);
  expect((await ask(it, 'guessed')).status).toBe(401);
  expect(looks()).toBe(1);
  expect((await it.ask({ method: 'GET', url: '/v2/queues', headers: { authorization: '' } })).status).toBe(401);
  expect(looks()).toBe(1);
  await it.close();
});

test('whoever cannot be looked up because the database is away is told to come back', async () => {
  const { world: it } = await world(() => Promise.reject(new StoreUnavailable('away')));
  expect((await ask(it, 'new')).status).toBe(503);
  await it.close();
});
