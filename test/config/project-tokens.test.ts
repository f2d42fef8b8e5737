/** A change over HTTP applies to all workers, or the response says that it may not yet. */

import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { mintSigningKeys, StoredAccounts, sealKeys } from '../../src/accounts/accounts.ts';
import { StoredTokens } from '../../src/accounts/project-tokens.ts';
import type { ProjectId } from '../../src/engine/model.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { hashToken, tokenIdOf } from '../../src/protocol/token.ts';
import { openInlineSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import type { Store } from '../../src/store/store.ts';
import { SILENT } from '../support/silent-log.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const clock = new SimulatedClock();
const sealer = { encryptionKey: randomBytes(32), randomBytes };

let store: Store;
let projectId: ProjectId;
beforeEach(async () => {
  store = await openInlineSqliteStore({
    path: ':memory:',
    onFatal: (error) => {
      throw error;
    },
  });
  const signingKeys = sealKeys(mintSigningKeys(randomBytes), sealer);
  ({ projectId } = await store.projects.ensureProject({ name: 'shop', signingKeys, nowMs: 1 }));
  for (const tokenHash of ['own', 'second']) {
    await store.projects.addToken({ tokenHash, projectId, scope: 'full', createdAtMs: 1 });
  }
});
afterEach(() => store.close());

/** `tell`: what informs the other workers. */
async function open({ isShared, tell }: { isShared: boolean; tell: (accounts: StoredAccounts) => Promise<void> }) {
  const accounts = await StoredAccounts.open(store, sealer, clock, { isShared });
  accounts.onChange(() => tell(accounts));
  const tokens = new StoredTokens(store, accounts, clock, SILENT, randomBytes);
  const revokeSecond = () => tokens.revoke({ projectId, by: 'own', tokenId: tokenIdOf('second') });
  return { accounts, tokens, revokeSecond };
}

const unreachable = () => Promise.reject(new StoreUnavailable('a worker does not say'));

it('a change is told to the others when it is saved and holds here, and answered after that', async () => {
  const told: unknown[] = [];
  const { tokens, revokeSecond } = await open({
    isShared: false,
    tell: async (accounts) => {
      const hashes = (await store.projects.listTokens()).map(({ tokenHash }) => tokenHash);
      told.push(
        hashes.map((hash) => accounts.authenticate(hash)?.scope),
        accounts.authenticate('second'),
      );
    },
  });
  await revokeSecond();
  await tokens.create({ projectId, by: 'own', scope: 'read-only' });
  expect(told).toEqual([['full'], undefined, ['full', 'read-only'], undefined]);
});

it('a revocation of which a worker does not know yet is answered 503 and says that it is made', async () => {
  const { accounts, revokeSecond } = await open({ isShared: true, tell: unreachable });
  await expect(revokeSecond()).rejects.toMatchObject({
    status: 503,
    message: expect.stringMatching(/^token tok_\w+ is revoked, but not all workers/),
  });
  expect(accounts.authenticate('second')).toBeUndefined();
  expect(await store.projects.listTokensOf({ projectId })).toHaveLength(1);
});

it('a new token is answered all the same where each worker looks for a token that it does not know', async () => {
  const { accounts, tokens } = await open({ isShared: true, tell: unreachable });
  const { secret } = await tokens.create({ projectId, by: 'own', scope: 'full' });
  expect(accounts.authenticate(hashToken(secret))).toEqual({ projectId, scope: 'full' });
});

it('a new token is not answered where another thread would refuse it', async () => {
  const { tokens } = await open({ isShared: false, tell: unreachable });
  await expect(tokens.create({ projectId, by: 'own', scope: 'full' })).rejects.toThrow(StoreUnavailable);
});

it('a request on its way changes nothing once the token that it came with is revoked', async () => {
  const { tokens, revokeSecond } = await open({ isShared: false, tell: async () => {} });
  await revokeSecond();
  const late = { projectId, by: 'second' };
  await expect(tokens.create({ ...late, scope: 'full' })).rejects.toMatchObject({ status: 401 });
  await expect(tokens.revoke({ ...late, tokenId: tokenIdOf('own') })).rejects.toMatchObject({ status: 401 });
  expect(await store.projects.listTokensOf({ projectId })).toHaveLength(1);
});
