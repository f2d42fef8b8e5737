/** Tokens that change on a shared database while requests are in progress, or before a server has been notified. */
import { beforeEach, expect, test } from 'vitest';
import type { Accounts } from '../../src/api/accounts.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { hashToken } from '../../src/protocol/token.ts';
import { openWorld, type World } from './support/world.ts';

/** Versions before and after that of the accounts in a new store. */
const OLD = 0;
const NEW = 1_000;

let version: number;
let known: Set<string>;
let refreshes: number;
/** What a refresh finds. */
let stored: Set<string>;
let behind: (() => Promise<void>) | undefined;

beforeEach(() => {
  version = OLD;
  refreshes = 0;
  known = new Set([hashToken('kept'), hashToken('revoked')]);
  stored = new Set([hashToken('kept')]);
  behind = undefined;
});

function open(): Promise<World> {
  const accounts: Accounts = {
    get sharedVersion() {
      return version;
    },
    refresh: async () => {
      refreshes += 1;
      known = stored;
      version = NEW;
    },
    catchUp: () => behind?.(),
    authenticate: (tokenHash) => (known.has(tokenHash) ? { projectId: 1, scope: 'full' } : undefined),
    projectByName: () => 1,
    projectName: () => 'first',
    signingKeys: () => Promise.resolve({ current: 'c', next: 'n' }),
    cachedSigningKeys: () => ['c', 'n'],
    rotate: () => Promise.resolve({ current: 'c', next: 'n' }),
  };
  return openWorld({ accounts });
}

const publishWith = (world: World, token: string) =>
  world.ask({ method: 'POST', url: '/v2/publish/https://a.example/', headers: { authorization: `Bearer ${token}` } });

test('what was admitted by older accounts is published if the newest still admit it', async () => {
  const world = await open();
  expect((await publishWith(world, 'kept')).status).toBe(200);
  expect(refreshes).toBe(1);
  expect((await publishWith(world, 'kept')).status).toBe(200);
  expect(refreshes).toBe(1);
  await world.close();
});

test('what was admitted by older accounts is refused if the newest do not admit it', async () => {
  const world = await open();
  expect((await publishWith(world, 'revoked')).status).toBe(401);
  await world.close();
});

test('a worker that may have missed a change responds to nobody before it has checked', async () => {
  const world = await open();
  const asked = Promise.withResolvers<void>();
  const caughtUp = Promise.withResolvers<void>();
  behind = () => {
    asked.resolve();
    return caughtUp.promise;
  };
  const response = publishWith(world, 'revoked');
  await asked.promise;
  known = stored;
  behind = undefined;
  caughtUp.resolve();
  expect((await response).status).toBe(401);
  behind = () => Promise.reject(new StoreUnavailable('away'));
  expect((await publishWith(world, 'kept')).status).toBe(503);
  await world.close();
});
