import { expect, it } from 'vitest';
import { eachWorld, type OpenStore, T0 } from './world.ts';

export function projectsConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const keys = (name: string) => ({ current: `${name} current`, next: `${name} next` });

  it('creates a project once and keeps its first signing keys', async () => {
    const [first, again] = await Promise.all([
      world().store.ensureProject('p', keys('first'), T0),
      world().store.ensureProject('p', keys('second'), T0),
    ]);
    const other = await world().store.ensureProject('q', keys('other'), T0);
    expect(again).toEqual(first);
    expect(other.projectId).not.toBe(first.projectId);
    expect(await world().store.signingKeys(first.projectId)).toEqual(keys('first'));
    expect(await world().store.listProjects()).toEqual([first, other]);
  });

  it('keeps tokens by their hash; adding one that exists changes nothing', async () => {
    const { projectId } = await world().store.ensureProject('p', keys('k'), T0);
    await world().store.addToken(projectId, 'hash-a', 'full', T0);
    await world().store.addToken(projectId, 'hash-b', 'read-only', T0);
    await world().store.addToken(projectId + 1, 'hash-a', 'read-only', T0);
    expect(await world().store.listTokens()).toEqual([
      { projectId, tokenHash: 'hash-a', scope: 'full' },
      { projectId, tokenHash: 'hash-b', scope: 'read-only' },
    ]);
  });

  it('replaces signing keys only while they are those expected', async () => {
    const { projectId } = await world().store.ensureProject('p', keys('old'), T0);
    const answers = await Promise.all([
      world().store.replaceSigningKeys(projectId, keys('old'), keys('new')),
      world().store.replaceSigningKeys(projectId, keys('old'), keys('newer')),
    ]);
    expect(answers).toEqual([keys('new'), keys('new')]);
    expect(await world().store.signingKeys(projectId)).toEqual(keys('new'));
  });

  it('answers a ping', async () => {
    await expect(world().store.ping()).resolves.toBeUndefined();
  });
}
