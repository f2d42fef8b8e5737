import { expect, it } from 'vitest';
import type { Token } from '../../../src/engine/stores.ts';
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

  it('keeps tokens by their hash; adding one that exists changes nothing', async () => {
    const { projectId } = await world().store.projects.ensureProject({ name: 'p', signingKeys: keys('k'), nowMs: T0 });
    const first: Token = { projectId, tokenHash: 'hash-b', scope: 'full', createdAtMs: T0 };
    const second: Token = { projectId, tokenHash: 'hash-a', scope: 'read-only', name: 'of Anna', createdAtMs: T0 + 1 };
    await world().store.projects.addToken(second);
    await world().store.projects.addToken(first);
    await world().store.projects.addToken({ ...second, projectId: projectId + 1, scope: 'full' });
    expect(await world().store.projects.listTokens()).toEqual([first, second]);
  });

  it('remembers when a token was last used, and forgets tokens that are removed', async () => {
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

  it('replaces signing keys only while they are those expected', async () => {
    const { projectId } = await world().store.projects.ensureProject({
      name: 'p',
      signingKeys: keys('old'),
      nowMs: T0,
    });
    const answers = await Promise.all([
      world().store.projects.replaceSigningKeys({ projectId, expected: keys('old'), next: keys('new') }),
      world().store.projects.replaceSigningKeys({ projectId, expected: keys('old'), next: keys('newer') }),
    ]);
    expect(answers).toEqual([keys('new'), keys('new')]);
    expect(await world().store.projects.signingKeys({ projectId })).toEqual(keys('new'));
  });

  it('reads projects, keys and tokens of one moment, with what tells it from the next', async () => {
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

  it('answers a ping', async () => {
    await expect(world().store.ping()).resolves.toBeUndefined();
  });
}
