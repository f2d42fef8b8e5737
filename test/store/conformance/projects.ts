import { beforeEach, describe, expect, it } from 'vitest';
import type { Token, TokenScope } from '../../../src/engine/accounts/store.ts';
import type { ProjectId } from '../../../src/engine/model.ts';
import type { Storage } from '../../../src/engine/stores.ts';
import { hashToken, tokenIdOf } from '../../../src/protocol/token.ts';
import { eachWorld, type OpenStore, T0 } from './world.ts';

export function projectsConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const keys = (name: string) => ({ current: `${name} current`, next: `${name} next` });

  it('creates a project once and keeps its first signing keys', async () => {
    const [first, again] = await Promise.all([
      world().store.projects.ensureProject({ name: 'p', signingKeys: keys('first'), nowMs: T0 }),
      world().store.projects.ensureProject({ name: 'p', signingKeys: keys('second'), nowMs: T0 }),
    ]);
    const other = await world().store.projects.ensureProject({ name: 'q', signingKeys: keys('other'), nowMs: T0 });
    expect(again).toEqual(first);
    expect(other.projectId).not.toBe(first.projectId);
    expect(await world().store.projects.signingKeys({ projectId: first.projectId })).toEqual(keys('first'));
    expect(await world().store.projects.listProjects()).toEqual([first, other]);
  });

  it('returns the size of the database, and whether several projects share it', async () => {
    const { projects, backlog, messages } = world().store;
    const { projectId } = await projects.ensureProject({ name: 'p', signingKeys: keys('p'), nowMs: T0 });
    const before = await backlog.readStorage({ projectId });
    expect(before.isShared).toBe(false);
    const body = new Uint8Array(1024 * 1024).map((_, index) => (index * 7919) % 251);
    await projects.ensureProject({ name: 'q', signingKeys: keys('q'), nowMs: T0 });
    expect((await backlog.readStorage({ projectId })).isShared).toBe(true);
    const usedOf = ({ bytes, unusedBytes = 0 }: Storage): number => bytes - unusedBytes;
    let used = usedOf(before);
    // Space that earlier tests have left is used first, and PostgreSQL does not say how much that is.
    for (let megabytes = 0; megabytes < 64 && used <= usedOf(before); megabytes += 1) {
      await messages.accept({ messages: [world().message({ body })], nowMs: T0 });
      used = usedOf(await backlog.readStorage({ projectId }));
    }
    expect(used).toBeGreaterThan(usedOf(before));
  });

  it('keeps tokens by their hash; adding an existing one changes nothing', async () => {
    const { projectId } = await world().store.projects.ensureProject({ name: 'p', signingKeys: keys('k'), nowMs: T0 });
    const first: Token = { projectId, tokenHash: 'hash-b', scope: 'full', createdAtMs: T0 };
    const second: Token = { projectId, tokenHash: 'hash-a', scope: 'read-only', name: 'of Anna', createdAtMs: T0 + 1 };
    await world().store.projects.addToken(second);
    await world().store.projects.addToken(first);
    await world().store.projects.addToken({ ...second, projectId: projectId + 1, scope: 'full' });
    expect(await world().store.projects.listTokens()).toEqual([first, second]);
  });

  it('saves when a token was last used, and removes tokens', async () => {
    const { projectId } = await world().store.projects.ensureProject({ name: 'p', signingKeys: keys('k'), nowMs: T0 });
    const token: Token = { projectId, tokenHash: 'hash', scope: 'publish-only', createdAtMs: T0 };
    await world().store.projects.addToken(token);
    await world().store.projects.noteTokenUse({ tokenHash: 'hash', nowMs: T0 + 5 });
    await world().store.projects.noteTokenUse({ tokenHash: 'unknown', nowMs: T0 + 6 });
    expect(await world().store.projects.listTokens()).toEqual([{ ...token, lastUsedAtMs: T0 + 5 }]);
    expect(await world().store.projects.removeToken({ tokenHash: 'hash' })).toBe(true);
    expect(await world().store.projects.removeToken({ tokenHash: 'hash' })).toBe(false);
    expect(await world().store.projects.listTokens()).toEqual([]);
  });

  describe('with a full token of the project', () => {
    let projectId: ProjectId;
    let otherId: ProjectId;
    const token = (name: string, scope: TokenScope = 'full'): Omit<Token, 'projectId'> => ({
      tokenHash: hashToken(name),
      scope,
      createdAtMs: T0,
    });
    const idOf = (name: string): string => tokenIdOf(hashToken(name));
    const make = (name: string, by: string, tokensMax = 10) =>
      world().store.projects.makeToken({ projectId, by: hashToken(by), token: token(name), tokensMax });
    const revoke = (name: string, by: string) =>
      world().store.projects.revokeToken({ projectId, by: hashToken(by), tokenId: idOf(name) });
    const hashes = async () => (await world().store.projects.listTokensOf({ projectId })).map((each) => each.tokenHash);

    beforeEach(async () => {
      const { projects } = world().store;
      ({ projectId } = await projects.ensureProject({ name: 'p', signingKeys: keys('k'), nowMs: T0 }));
      ({ projectId: otherId } = await projects.ensureProject({ name: 'q', signingKeys: keys('k'), nowMs: T0 }));
      await projects.addToken({ ...token('own'), projectId });
      await projects.addToken({ ...token('reader', 'read-only'), projectId, createdAtMs: T0 + 1 });
      await projects.addToken({ ...token('other'), projectId: otherId });
    });

    it('adds tokens up to a limit, and lists those of the project', async () => {
      expect(await Promise.all([make('second', 'own', 3), make('third', 'own', 3)])).toEqual(['made', 'tooMany']);
      expect(new Set(await hashes())).toEqual(new Set(['own', 'reader', 'second'].map(hashToken)));
      const before = (await world().store.projects.readAccounts()).version;
      expect(await make('fourth', 'own')).toBe('made');
      expect((await world().store.projects.readAccounts()).version).toBeGreaterThan(before);
    });

    it('revokes tokens of that project only', async () => {
      expect(await revoke('other', 'own')).toBe('missing');
      expect(await revoke('nobody', 'own')).toBe('missing');
      expect(await revoke('reader', 'own')).toEqual({ tokenHash: hashToken('reader') });
      expect(await revoke('reader', 'own')).toBe('missing');
      expect(await hashes()).toEqual([hashToken('own')]);
      expect(await world().store.projects.listTokensOf({ projectId: otherId })).toHaveLength(1);
    });

    it('changes nothing with a token that is gone, that is not full, or that is of another project', async () => {
      for (const by of ['gone', 'reader', 'other']) {
        expect([await make('second', by), await revoke('own', by)], by).toEqual(['revoked', 'revoked']);
      }
      expect(await hashes()).toEqual(['own', 'reader'].map(hashToken));
    });

    it('keeps one full token, whatever revocations run at the same time', async () => {
      await make('second', 'own');
      const own = await Promise.all([revoke('own', 'own'), revoke('second', 'second')]);
      expect(own).toEqual([{ tokenHash: hashToken('own') }, 'lastFull']);
      await make('third', 'second');
      const each = await Promise.all([revoke('third', 'second'), revoke('second', 'third')]);
      expect(each).toEqual([{ tokenHash: hashToken('third') }, 'revoked']);
    });
  });

  it('replaces signing keys only if they are the expected ones', async () => {
    const { projectId } = await world().store.projects.ensureProject({
      name: 'p',
      signingKeys: keys('old'),
      nowMs: T0,
    });
    const results = await Promise.all([
      world().store.projects.replaceSigningKeys({ projectId, expected: keys('old'), next: keys('new') }),
      world().store.projects.replaceSigningKeys({ projectId, expected: keys('old'), next: keys('newer') }),
    ]);
    expect(results).toEqual([keys('new'), keys('new')]);
    expect(await world().store.projects.signingKeys({ projectId })).toEqual(keys('new'));
  });

  it('reads projects, keys and tokens of one moment, with their version', async () => {
    const { store } = world();
    const project = await store.projects.ensureProject({ name: 'p', signingKeys: keys('k'), nowMs: T0 });
    const token: Token = { projectId: project.projectId, tokenHash: 'hash', scope: 'full', createdAtMs: T0 };
    await store.projects.addToken(token);
    const state = await store.projects.readAccounts();
    expect(state).toMatchObject({ projects: [{ ...project, signingKeys: keys('k') }], tokens: [token] });
    await store.projects.removeToken({ tokenHash: 'hash' });
    const next = await store.projects.readAccounts();
    expect(next.tokens).toEqual([]);
    expect(next.version).toBeGreaterThan(state.version);
  });

  it('responds to a ping', async () => {
    await expect(world().store.ping()).resolves.toBeUndefined();
  });
}
