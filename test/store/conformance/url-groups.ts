import { expect, it } from 'vitest';
import type { Endpoint, UrlGroupLimits } from '../../../src/engine/messages/url-groups.ts';
import { eachWorld, type OpenStore, OTHER_PROJECT, PROJECT, T0 } from './world.ts';

const UNLIMITED: UrlGroupLimits = { groupsMax: 0, endpointsMax: 0 };
const A: Endpoint = { url: 'https://a.example/x', name: 'a b' };
const B: Endpoint = { url: 'https://b.example/y' };
const C: Endpoint = { url: 'https://c.example/z', name: 'c' };

export function urlGroupsConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const add = (name: string, endpoints: Endpoint[], nowMs = T0, limits = UNLIMITED) =>
    world().store.urlGroups.addEndpoints({ projectId: PROJECT, name, endpoints, limits, nowMs });
  const endpointsOf = async (name: string) =>
    (await world().store.urlGroups.findUrlGroup({ projectId: PROJECT, name }))?.endpoints;

  it('creates a group with its first endpoints and keeps their order', async () => {
    expect(await add('g', [B, A])).toBe('saved');
    expect(await add('g', [C], T0 + 5)).toBe('saved');
    expect(await world().store.urlGroups.findUrlGroup({ projectId: PROJECT, name: 'g' })).toEqual({
      name: 'g',
      createdAtMs: T0,
      updatedAtMs: T0 + 5,
      endpoints: [B, A, C],
    });
    expect(await world().store.urlGroups.findUrlGroup({ projectId: PROJECT, name: 'G' })).toBeUndefined();
  });

  it('gives a known name the new URL, and a known URL the new name', async () => {
    await add('g', [A, B]);
    await add('g', [
      { url: 'https://new.example/', name: 'a b' },
      { ...B, name: 'b' },
    ]);
    expect(await endpointsOf('g')).toEqual([
      { url: 'https://new.example/', name: 'a b' },
      { ...B, name: 'b' },
    ]);
    await add('g', [B]);
    expect(await endpointsOf('g')).toHaveLength(2);
    expect((await endpointsOf('g'))?.[1]).toEqual({ ...B, name: 'b' });
  });

  it('removes by name, by URL or by both, and the group with its last endpoint', async () => {
    const remove = (selectors: Partial<Endpoint>[]) =>
      world().store.urlGroups.removeEndpoints({ projectId: PROJECT, name: 'g', selectors, nowMs: T0 + 9 });
    await add('g', [A, B, C]);
    await world().store.urlGroups.setGroupHeaders({
      projectId: PROJECT,
      name: 'g',
      headers: { 'Upstash-Retries': ['1'] },
      nowMs: T0,
    });
    expect(await remove([{ name: 'nobody' }, { url: A.url, name: 'c' }])).toBe('saved');
    expect(await world().store.urlGroups.findUrlGroup({ projectId: PROJECT, name: 'g' })).toMatchObject({
      updatedAtMs: T0,
      endpoints: [A, B, C],
    });
    expect(await remove([{ name: 'a b' }])).toBe('saved');
    expect(await world().store.urlGroups.findUrlGroup({ projectId: PROJECT, name: 'g' })).toMatchObject({
      updatedAtMs: T0 + 9,
      endpoints: [B, C],
    });
    expect(await remove([{ url: B.url }, C])).toBe('saved');
    expect(await endpointsOf('g')).toBeUndefined();
    expect(await remove([C])).toBe('missing');
    await add('g', [A]);
    expect(await world().store.urlGroups.findUrlGroup({ projectId: PROJECT, name: 'g' })).not.toHaveProperty('headers');
  });

  it('refuses growth over its limits, changing nothing, and nothing else', async () => {
    const limits = { groupsMax: 1, endpointsMax: 2 };
    expect(await add('g', [A, B, C], T0, limits)).toBe('tooManyEndpoints');
    expect(await endpointsOf('g')).toBeUndefined();
    expect(await add('g', [A, B], T0, limits)).toBe('saved');
    expect(await add('h', [A], T0, limits)).toBe('tooManyGroups');
    expect(await add('g', [C], T0, limits)).toBe('tooManyEndpoints');
    expect(await add('g', [{ ...B, name: 'b' }], T0, limits)).toBe('saved');
    expect(await add('g', [A], T0, { groupsMax: 1, endpointsMax: 1 })).toBe('saved');
    expect(await endpointsOf('g')).toEqual([A, { ...B, name: 'b' }]);
  });

  it('keeps default headers until they are replaced or cleared', async () => {
    const set = (headers: Record<string, string[]>) =>
      world().store.urlGroups.setGroupHeaders({ projectId: PROJECT, name: 'g', headers, nowMs: T0 + 3 });
    expect(await set({ 'Upstash-Retries': ['1'] })).toBe('missing');
    await add('g', [A]);
    expect(await set({ 'Upstash-Retries': ['1'], 'Upstash-Forward-X': ['1', '2'] })).toBe('saved');
    expect(await world().store.urlGroups.findUrlGroup({ projectId: PROJECT, name: 'g' })).toMatchObject({
      updatedAtMs: T0 + 3,
      headers: { 'Upstash-Retries': ['1'], 'Upstash-Forward-X': ['1', '2'] },
    });
    expect(await set({})).toBe('saved');
    expect(await world().store.urlGroups.findUrlGroup({ projectId: PROJECT, name: 'g' })).not.toHaveProperty('headers');
  });

  it('lists the groups of one project by name, and deletes one without affecting others', async () => {
    await add('b', [B]);
    await add('a', [C, A]);
    await add('Z', [C]);
    await world().store.urlGroups.addEndpoints({
      projectId: OTHER_PROJECT,
      name: 'a',
      endpoints: [B],
      limits: UNLIMITED,
      nowMs: T0,
    });
    const listed = await world().store.urlGroups.listUrlGroups({ projectId: PROJECT });
    expect(listed.map(({ name, endpoints }) => [name, endpoints])).toEqual([
      ['Z', [C]],
      ['a', [C, A]],
      ['b', [B]],
    ]);
    await world().store.urlGroups.deleteUrlGroup({ projectId: PROJECT, name: 'a' });
    await world().store.urlGroups.deleteUrlGroup({ projectId: PROJECT, name: 'never' });
    expect((await world().store.urlGroups.listUrlGroups({ projectId: PROJECT })).map(({ name }) => name)).toEqual([
      'Z',
      'b',
    ]);
    expect(
      (await world().store.urlGroups.listUrlGroups({ projectId: OTHER_PROJECT })).map(({ endpoints }) => endpoints),
    ).toEqual([[B]]);
  });
}
