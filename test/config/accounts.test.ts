import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mintSigningKeys, type Sealer, StoredAccounts, sealKeys } from '../../src/accounts/accounts.ts';
import { DEVELOPMENT_ACCOUNTS, isDevelopmentToken } from '../../src/config/development.ts';
import { SealBroken } from '../../src/config/sealing.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { hashToken, userIdOfToken } from '../../src/protocol/token.ts';
import { openInlineSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import type { Store } from '../../src/store/store.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const clock = new SimulatedClock();
const sealer: Sealer = { encryptionKey: randomBytes(32), randomBytes };

describe('stored accounts', () => {
  let store: Store;

  beforeEach(async () => {
    const onFatal = (error: Error) => {
      throw error;
    };
    store = await openInlineSqliteStore({ path: ':memory:', onFatal });
  });
  afterEach(() => store.close());

  async function createProject(name: string) {
    const keys = mintSigningKeys(randomBytes);
    const { projectId } = await store.projects.ensureProject({ name, signingKeys: sealKeys(keys, sealer), nowMs: 1 });
    return { projectId, keys };
  }

  it('know the tokens and keys that the store keeps', async () => {
    const { projectId, keys } = await createProject('shop');
    await store.projects.addToken({ tokenHash: hashToken('full token'), projectId, scope: 'full', createdAtMs: 1 });
    await store.projects.addToken({
      tokenHash: hashToken('reading token'),
      projectId,
      scope: 'read-only',
      name: 'the dashboard',
      createdAtMs: 1,
    });
    const accounts = await StoredAccounts.open(store, sealer, clock);
    expect(accounts.authenticate(hashToken('full token'))).toEqual({ projectId, scope: 'full' });
    expect(accounts.authenticate(hashToken('reading token'))).toEqual({
      projectId,
      scope: 'read-only',
      tokenName: 'the dashboard',
    });
    expect(accounts.projectName(projectId)).toBe('shop');
    expect(accounts.authenticate(hashToken('another'))).toBeUndefined();
    expect(await accounts.signingKeys(projectId)).toEqual(keys);
  });

  it('let a token in as soon as it is made, and no more once it is revoked', async () => {
    const { projectId } = await createProject('shop');
    const accounts = await StoredAccounts.open(store, sealer, clock);
    accounts.admitStored({ tokenHash: 'hash', projectId, scope: 'publish-only', createdAtMs: 1 });
    expect(accounts.authenticate('hash')).toEqual({ projectId, scope: 'publish-only' });
    accounts.forget('hash');
    expect(accounts.authenticate('hash')).toBeUndefined();
  });

  it('learn what others have added, changed and revoked, and keep what was never saved', async () => {
    const { projectId } = await createProject('shop');
    await store.projects.addToken({ tokenHash: 'revoked', projectId, scope: 'full', createdAtMs: 1 });
    const accounts = await StoredAccounts.open(store, sealer, clock);
    accounts.admit('unsaved', projectId, 'full');
    const { projectId: otherId, keys } = await createProject('other');
    await store.projects.addToken({ tokenHash: 'added', projectId: otherId, scope: 'read-only', createdAtMs: 1 });
    await store.projects.removeToken({ tokenHash: 'revoked' });
    const rotated = await (await StoredAccounts.open(store, sealer, clock)).rotate(projectId);
    await accounts.refresh();
    expect(accounts.authenticate('added')).toEqual({ projectId: otherId, scope: 'read-only' });
    expect(accounts.authenticate('revoked')).toBeUndefined();
    expect(accounts.authenticate('unsaved')).toBeDefined();
    expect(accounts.projectByName('other')).toBe(otherId);
    expect(accounts.signingKeysSync(otherId)).toEqual(keys);
    expect(accounts.signingKeysSync(projectId)).toEqual(rotated);
  });

  it('read everything again when they change while it is being read', async () => {
    const { projectId } = await createProject('shop');
    await store.projects.addToken({ tokenHash: 'hash', projectId, scope: 'full', createdAtMs: 1 });
    const accounts = await StoredAccounts.open(store, sealer, clock);
    const readAccounts = store.projects.readAccounts.bind(store.projects);
    store.projects.readAccounts = async () => {
      const state = await readAccounts();
      if (accounts.authenticate('hash')) {
        await store.projects.removeToken({ tokenHash: 'hash' });
        accounts.forget('hash');
      }
      return state;
    };
    await accounts.refresh();
    expect(accounts.authenticate('hash')).toBeUndefined();
  });

  it('hold, in a store that others share, for as long as a heartbeat says, and only if it names what was read', async () => {
    const seconds = new SimulatedClock();
    expect((await StoredAccounts.open(store, sealer, seconds)).catchUp()).toBeUndefined();
    const accounts = await StoredAccounts.open(store, sealer, seconds, { isShared: true });
    const waiting = accounts.catchUp();
    accounts.noteNewest(accounts.version + 1, seconds.elapsedMs + 12_000);
    expect(accounts.catchUp()).toBe(waiting); // what it has is not the newest
    accounts.noteNewest(accounts.version, seconds.elapsedMs + 12_000);
    await waiting;
    expect(accounts.catchUp()).toBeUndefined();
    await seconds.advanceBy(12_001);
    const again = accounts.catchUp();
    accounts.noteUnknown(new StoreUnavailable('away'));
    await expect(again).rejects.toThrow('away');
  });

  it('look again for a stranger at most once a second, and only in a store that others share', async () => {
    const seconds = new SimulatedClock();
    const alone = await StoredAccounts.open(store, sealer, seconds);
    expect(alone.refreshForUnknownToken()).toBeUndefined();
    const accounts = await StoredAccounts.open(store, sealer, seconds, { isShared: true });
    const { projectId } = await createProject('shop');
    await store.projects.addToken({ tokenHash: 'hash', projectId, scope: 'full', createdAtMs: 1 });
    const look = accounts.refreshForUnknownToken();
    expect(accounts.refreshForUnknownToken()).toBe(look); // two at once wait for the same
    await look;
    expect(accounts.authenticate('hash')).toBeDefined();
    expect(accounts.refreshForUnknownToken()).toBeUndefined();
    await seconds.advanceBy(1_000);
    expect(accounts.refreshForUnknownToken()).toBeDefined();
  });

  it('note the use of a token once an hour', async () => {
    const { projectId } = await createProject('shop');
    await store.projects.addToken({ tokenHash: 'hash', projectId, scope: 'full', createdAtMs: 1 });
    const noted: number[] = [];
    const noteTokenUse = store.projects.noteTokenUse.bind(store.projects);
    store.projects.noteTokenUse = (args) => {
      noted.push(args.nowMs);
      return noteTokenUse(args);
    };
    const hours = new SimulatedClock();
    const startMs = hours.nowMs();
    const accounts = await StoredAccounts.open(store, sealer, hours);
    for (const jumpMs of [0, 1, 3_599_998, 1, 1]) {
      hours.jumpBy(jumpMs);
      accounts.authenticate('hash');
      accounts.authenticate('unknown');
    }
    expect(noted).toEqual([startMs, startMs + 3_600_000]);
    await store.ping();
    expect(await store.projects.listTokens()).toMatchObject([{ lastUsedAtMs: startMs + 3_600_000 }]);
  });

  it('let callers in although the use of their token cannot be noted', async () => {
    const { projectId } = await createProject('shop');
    await store.projects.addToken({ tokenHash: 'hash', projectId, scope: 'full', createdAtMs: 1 });
    store.projects.noteTokenUse = () => Promise.reject(new StoreUnavailable('disk full'));
    const accounts = await StoredAccounts.open(store, sealer, clock);
    expect(accounts.authenticate('hash')).toEqual({ projectId, scope: 'full' });
  });

  it('keep no signing key readable in the store', async () => {
    const { projectId, keys } = await createProject('shop');
    const sealed = await store.projects.signingKeys({ projectId });
    expect(JSON.stringify(sealed)).not.toContain(keys.current);
    expect(JSON.stringify(sealed)).not.toContain(keys.next);
  });

  it('move the keys on at a rotation, at once and for the next start', async () => {
    const { projectId, keys } = await createProject('shop');
    const accounts = await StoredAccounts.open(store, sealer, clock);
    const rotated = await accounts.rotate(projectId);
    expect(rotated.current).toBe(keys.next);
    expect(rotated.next).toMatch(/^sig_\w{28}$/);
    expect(accounts.signingKeysSync(projectId)).toEqual(rotated);
    expect(await (await StoredAccounts.open(store, sealer, clock)).signingKeys(projectId)).toEqual(rotated);
  });

  it('move the keys on twice when two rotate at once', async () => {
    const { projectId, keys } = await createProject('shop');
    const accounts = await StoredAccounts.open(store, sealer, clock);
    const [first, second] = await Promise.all([accounts.rotate(projectId), accounts.rotate(projectId)]);
    expect(first?.current).toBe(keys.next);
    expect(second?.current).toBe(first?.next);
  });

  it('go on from what another process rotated to meanwhile', async () => {
    const { projectId, keys } = await createProject('shop');
    const mine = await StoredAccounts.open(store, sealer, clock);
    const theirs = await StoredAccounts.open(store, sealer, clock);
    const first = await theirs.rotate(projectId);
    const second = await mine.rotate(projectId);
    expect(first.current).toBe(keys.next);
    expect(second.current).toBe(first.next);
  });

  it('refuse another encryption key', async () => {
    await createProject('shop');
    await expect(StoredAccounts.open(store, { ...sealer, encryptionKey: randomBytes(32) }, clock)).rejects.toThrow(
      SealBroken,
    );
  });

  it('go on without a project whose keys another key has sealed, and log it once', async () => {
    await createProject('shop');
    const logged: string[] = [];
    const note = (event: string, fields?: object) => logged.push(`${event} ${JSON.stringify(fields)}`);
    const log = { debug: note, info: note, warn: note, error: note };
    const accounts = await StoredAccounts.open(store, sealer, clock, { isShared: true, log });
    const other = { ...sealer, encryptionKey: randomBytes(32) };
    const sealed = sealKeys(mintSigningKeys(randomBytes), other);
    const { projectId: strange } = await store.projects.ensureProject({
      ...{ name: 'strange', signingKeys: sealed, nowMs: 1 },
    });
    await store.projects.addToken({ tokenHash: 'of it', projectId: strange, scope: 'full', createdAtMs: 1 });
    const { projectId: later, keys } = await createProject('later');
    const before = accounts.version;
    await accounts.refresh();
    await accounts.refresh();
    expect(accounts.signingKeysSync(later)).toEqual(keys);
    expect(accounts.version).toBeGreaterThan(before); // or each heartbeat would read them again
    expect([accounts.projectByName('strange'), accounts.authenticate('of it')]).toEqual([undefined, undefined]);
    expect(logged).toEqual([expect.stringMatching(/^keys_unreadable .*"project":"strange"/)]);
  });
});

describe('the development accounts', () => {
  it('have the published tokens', () => {
    expect(DEVELOPMENT_ACCOUNTS.map(({ token }) => token)).toEqual([
      'eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=',
      'eyJVc2VySUQiOiJ0ZXN0VXNlcjEiLCJQYXNzd29yZCI6InRlc3RQYXNzd29yZCJ9',
      'eyJVc2VySUQiOiJ0ZXN0VXNlcjIiLCJQYXNzd29yZCI6InRlc3RQYXNzd29yZCJ9',
      'eyJVc2VySUQiOiJ0ZXN0VXNlcjMiLCJQYXNzd29yZCI6InRlc3RQYXNzd29yZCJ9',
    ]);
  });

  it('are named like the users in their tokens', () => {
    for (const { name, token } of DEVELOPMENT_ACCOUNTS) expect(userIdOfToken(token)).toBe(name);
  });

  it('are recognised by the hash of their token', () => {
    expect(isDevelopmentToken(hashToken(DEVELOPMENT_ACCOUNTS[0].token))).toBe(true);
    expect(isDevelopmentToken(hashToken('own token'))).toBe(false);
  });
});
