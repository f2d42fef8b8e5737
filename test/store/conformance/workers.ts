import { expect, it } from 'vitest';
import { AccountsChanged } from '../../../src/engine/store-errors.ts';
import type { WorkerState } from '../../../src/engine/workers/store.ts';
import { delivered, eachWorld, type OpenStore, PROJECT, T0, type World } from './world.ts';

const HOUR_MS = 3_600_000;

export function workersConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const heartbeat = (worker: string, state: Partial<WorkerState> = {}) =>
    world().store.workers.heartbeat({ worker, timeoutMs: HOUR_MS, isLeaving: false, accountsVersion: 1, ...state });
  /** Expires workers at the time of an unrelated worker's heartbeat. */
  const expireWorkers = async () => world().store.workers.expireWorkers({ nowMs: (await heartbeat('witness')).wallMs });
  const acceptFor = async (at: World, worker: string) => {
    const claimToken = at.number();
    const message = await at.accept({ state: { kind: 'claimed', claimToken, worker } });
    return { key: message.key, projectId: PROJECT, claimToken };
  };

  it('returns whether a worker was known, the time of the database, and the other workers that claim messages', async () => {
    const first = await heartbeat('a');
    expect(first).toMatchObject({ wasKnown: false, hasLate: false, others: [] });
    expect(first.wallMs).toBeGreaterThan(1.7e12);
    expect(Number.isInteger(first.wallMs)).toBe(true);
    expect(await heartbeat('b')).toMatchObject({ wasKnown: false, others: ['a'] });
    const second = await heartbeat('a');
    expect(second).toMatchObject({ wasKnown: true, others: ['b'] });
    expect(second.wallMs).toBeGreaterThanOrEqual(first.wallMs);
  });

  it('continues the shared time of workers when the clock of the database is set back', async () => {
    const { wallMs } = await heartbeat('a');
    const known = { nowMs: wallMs + HOUR_MS, leadMs: 0 };
    const first = await heartbeat('a', { clock: known });
    expect(first.wallMs + first.leadMs).toBe(known.nowMs);
    // A worker that does not know the time gets it from the others.
    const second = await heartbeat('b', { clock: { nowMs: first.wallMs, leadMs: 0 } });
    expect(second.wallMs + second.leadMs).toBe(known.nowMs);
    const lead = { nowMs: known.nowMs, leadMs: HOUR_MS + 1_000 };
    const third = await heartbeat('a', { clock: lead });
    expect(third.leadMs).toBe(lead.leadMs);
    expect(await heartbeat('b', { clock: lead })).toMatchObject({ hasLate: false });
  });

  it('lets no heartbeat of a clock far ahead keep other workers alive', async () => {
    const { wallMs } = await heartbeat('a');
    await heartbeat('a', { clock: { nowMs: wallMs + 23 * HOUR_MS, leadMs: 23 * HOUR_MS } });
    expect(await heartbeat('b', { clock: { nowMs: wallMs + 25 * HOUR_MS, leadMs: 0 } })).toMatchObject({
      leadMs: expect.closeTo(23 * HOUR_MS, -5),
    });
  });

  it('does not take over the time of workers that have left', async () => {
    const { wallMs } = await heartbeat('a');
    await heartbeat('a', { clock: { nowMs: wallMs + HOUR_MS, leadMs: HOUR_MS } });
    await world().store.workers.leave({ worker: 'a' });
    expect(await heartbeat('b')).toMatchObject({ leadMs: 0 });
  });

  it('does not count a leaving worker among those that claim', async () => {
    await heartbeat('a', { isLeaving: true });
    expect(await heartbeat('b')).toMatchObject({ others: [], hasLate: false });
    await heartbeat('a');
    expect(await heartbeat('b')).toMatchObject({ others: ['a'] });
  });

  it('lets a late worker expire once, by the first caller', async () => {
    await heartbeat('late', { timeoutMs: -1 });
    await heartbeat('a');
    expect(await heartbeat('b')).toMatchObject({ hasLate: true, others: ['a'] });
    const { wallMs } = await heartbeat('a');
    const expired = await Promise.all([
      world().store.workers.expireWorkers({ nowMs: wallMs }),
      world().store.workers.expireWorkers({ nowMs: wallMs }),
    ]);
    expect(expired.flat()).toEqual(['late']);
    expect(await heartbeat('b')).toMatchObject({ hasLate: false });
    expect(await heartbeat('late')).toMatchObject({ wasKnown: false });
  });

  it('lets a worker that has left expire without waiting for its timeout', async () => {
    await heartbeat('a');
    await world().store.workers.leave({ worker: 'a' });
    expect(await heartbeat('b')).toMatchObject({ hasLate: true, others: [] });
    expect(await expireWorkers()).toEqual(['a']);
  });

  it('lets a worker that has left expire even if the clock was set back since', async () => {
    const { wallMs, accountsVersion } = await heartbeat('a', { accountsVersion: 0 });
    await heartbeat('a', { accountsVersion: 0, clock: { nowMs: wallMs + HOUR_MS, leadMs: HOUR_MS } });
    await world().store.workers.leave({ worker: 'a' });
    expect(await heartbeat('b', { accountsVersion })).toMatchObject({ hasLate: true, others: [], leadMs: 0 });
    expect(await world().store.workers.workersWithOldAccounts({})).toEqual({ accountsVersion, behind: [] });
    expect(await world().store.workers.expireWorkers({ nowMs: wallMs })).toEqual(['a']);
  });

  it('returns the claims of each worker, however they were made', async () => {
    await heartbeat('a');
    await heartbeat('b');
    const accepted = await acceptFor(world(), 'a');
    const due = await world().accept();
    const { claimed } = await world().claim({ worker: 'b' });
    const claim = { key: due.key, projectId: PROJECT, claimToken: claimed[0]?.claimToken };
    expect(await world().store.workers.claimsOf({ worker: 'a' })).toEqual([accepted]);
    expect(await world().store.workers.claimsOf({ worker: 'b' })).toEqual([claim]);
    expect(await world().store.workers.orphanedClaims({ limit: 10 })).toEqual([]);
  });

  it('saves the worker with a claimed message that follows from a settle, and with the next message of a lane', async () => {
    await heartbeat('b');
    const { message, claimToken } = await world().acceptClaimed();
    const followToken = world().number();
    const follow = world().message({ state: { kind: 'claimed', claimToken: followToken, worker: 'b' } });
    await world().settle(message, claimToken, { ...delivered(), follows: [follow] });
    expect(await world().store.workers.claimsOf({ worker: 'b' })).toMatchObject([
      { key: follow.message.key, claimToken: followToken },
    ]);
    const inQueue = { settings: { queueName: 'q' } };
    const firstToken = world().number();
    const first = await world().accept({
      ...inQueue,
      state: { kind: 'claimed', claimToken: firstToken, worker: 'b' },
    });
    const second = await world().accept(inQueue);
    const handoff = { worker: 'c', claimToken: world().number(), bytesMax: 1_000 };
    await world().settle(first, firstToken, delivered(), T0, handoff);
    expect(await world().store.workers.claimsOf({ worker: 'c' })).toMatchObject([{ key: second.key }]);
  });

  it('has no worker for messages that a lane holds back, released messages, and messages that wait again', async () => {
    const inQueue = { settings: { queueName: 'q' } };
    await world().acceptClaimed(inQueue);
    await world().accept({ ...inQueue, state: { kind: 'claimed', claimToken: world().number(), worker: 'held' } });
    expect(await world().store.workers.claimsOf({ worker: 'held' })).toEqual([]);
    const claim = await acceptFor(world(), 'a');
    await world().store.messages.release({ claims: [claim], nowMs: T0 });
    expect(await world().store.workers.claimsOf({ worker: 'a' })).toEqual([]);
  });

  it('finds the claims of unknown workers, up to a limit', async () => {
    await heartbeat('a');
    await heartbeat('b');
    const orphans = [await acceptFor(world(), 'b'), await acceptFor(world(), 'b'), await acceptFor(world(), 'never')];
    await acceptFor(world(), 'a');
    await heartbeat('b', { timeoutMs: -1 });
    await expireWorkers();
    expect(await world().store.workers.orphanedClaims({ limit: 10 })).toEqual(orphans);
    expect(await world().store.workers.orphanedClaims({ limit: 2 })).toEqual(orphans.slice(0, 2));
    await world().store.messages.release({ claims: orphans, nowMs: T0 });
    expect(await world().store.workers.orphanedClaims({ limit: 10 })).toEqual([]);
  });

  it('refuses the outcome of a worker whose claim was released, and accepts that of the next one (P6)', async () => {
    await heartbeat('b');
    const token = world().number();
    const message = await world().accept({ state: { kind: 'claimed', claimToken: token, worker: 'b' } });
    await heartbeat('b', { timeoutMs: -1 });
    await expireWorkers();
    await world().store.messages.release({
      claims: await world().store.workers.orphanedClaims({ limit: 10 }),
      nowMs: T0,
    });
    const { claimed } = await world().claim({ worker: 'a' });
    expect(await world().settle(message, token, delivered())).toEqual({ kind: 'stale' });
    const next = claimed[0]?.claimToken ?? 0;
    expect(await world().settle(message, next, delivered())).toMatchObject({
      kind: 'saved',
    });
  });

  it('returns when the next work is due', async () => {
    expect(await heartbeat('a')).toMatchObject({
      nextDueAtMs: undefined,
      nextScheduleAtMs: undefined,
      nextWaiterAtMs: undefined,
    });
    await world().accept({ notBeforeMs: T0 + 5_000 });
    await world().accept({ notBeforeMs: T0 + 3_000 });
    expect(await heartbeat('a')).toMatchObject({ nextDueAtMs: T0 + 3_000 });
  });

  it('returns whether any message is claimed, and whether any message is in a backlog', async () => {
    expect(await heartbeat('a')).toMatchObject({ hasClaims: false, hasBacklogs: false });
    await acceptFor(world(), 'a');
    expect(await heartbeat('a')).toMatchObject({ hasClaims: true, hasBacklogs: false });
    await world().accept({ state: { kind: 'origin', dueAtMs: T0 } });
    expect(await heartbeat('a')).toMatchObject({ hasBacklogs: true });
  });

  it('lists live workers that have not reported that they use the newest accounts', async () => {
    const { store } = world();
    const { accountsVersion } = await heartbeat('a', { accountsVersion: 0 });
    await heartbeat('b', { accountsVersion });
    expect(await store.workers.workersWithOldAccounts({})).toEqual({ accountsVersion, behind: ['a'] });
    await heartbeat('a', { accountsVersion });
    expect(await store.workers.workersWithOldAccounts({})).toEqual({ accountsVersion, behind: [] });
    await store.projects.ensureProject({ name: 'new', signingKeys: { current: 'c', next: 'n' }, nowMs: T0 });
    await heartbeat('late', { timeoutMs: -1 });
    const newest = await store.workers.workersWithOldAccounts({});
    expect(newest.behind).toEqual(['a', 'b']);
    expect(newest.accountsVersion).toBeGreaterThan(accountsVersion);
    expect((await store.workers.workersWithOldAccounts({ accountsVersion })).behind).toEqual([]);
  });

  it('saves nothing for a caller that was checked with older accounts, and everything for the others of the batch', async () => {
    const { store } = world();
    const { version: older } = await store.projects.readAccounts();
    await store.projects.ensureProject({ name: 'new', signingKeys: { current: 'c', next: 'n' }, nowMs: T0 });
    const { version } = await store.projects.readAccounts();
    const [refused, saved, unasked] = [world().message(), world().message(), world().message()];
    const results = await Promise.allSettled([
      store.messages.accept({ messages: [refused], nowMs: T0, accountsVersion: older }),
      store.messages.accept({ messages: [saved], nowMs: T0, accountsVersion: version }),
      store.messages.accept({ messages: [unasked], nowMs: T0 }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
    expect(results[0]).toMatchObject({ reason: expect.any(AccountsChanged) });
    expect(await world().find(refused.message)).toBeUndefined();
    expect(await world().find(saved.message)).toBeDefined();
    expect(await world().find(unasked.message)).toBeDefined();
  });

  it('raises the version with each change of projects, tokens and signing keys, and with nothing else', async () => {
    const { store } = world();
    const versions = new Set<number>();
    const changed = async (): Promise<boolean> => {
      const { accountsVersion } = await heartbeat('a');
      const isNew = !versions.has(accountsVersion);
      versions.add(accountsVersion);
      return isNew;
    };
    await changed();
    const keys = { current: 'c', next: 'n' };
    const { projectId } = await store.projects.ensureProject({ name: 'new', signingKeys: keys, nowMs: T0 });
    expect(await changed()).toBe(true);
    await store.projects.ensureProject({ name: 'new', signingKeys: { current: 'other', next: 'other' }, nowMs: T0 });
    const token = { tokenHash: 'hash', projectId, scope: 'full', createdAtMs: T0 } as const;
    expect(await changed()).toBe(false);
    await store.projects.addToken(token);
    expect(await changed()).toBe(true);
    await store.projects.addToken(token);
    await store.projects.noteTokenUse({ tokenHash: 'hash', nowMs: T0 + 1 });
    await store.projects.replaceSigningKeys({ projectId, expected: { current: 'wrong', next: 'wrong' }, next: keys });
    expect(await changed()).toBe(false);
    await store.projects.replaceSigningKeys({ projectId, expected: keys, next: { current: 'n', next: 'm' } });
    expect(await changed()).toBe(true);
    await store.projects.removeToken({ tokenHash: 'hash' });
    expect(await changed()).toBe(true);
    await store.projects.removeToken({ tokenHash: 'hash' });
    expect(await changed()).toBe(false);
  });
}
