/** If several commands move the same project, one of them does it, and another takes over if that one dies. */

import { afterEach, beforeEach, expect, it } from 'vitest';
import { isStuck, MoveLease } from '../../src/cells/move/move-lease.ts';
import { createStore } from '../../src/store/create.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import type { SqlStore, Store } from '../../src/store/store.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const PROJECT = 1;

let clock: SimulatedClock;
let driver: SqliteDriver;
let store: SqlStore;

beforeEach(async () => {
  clock = new SimulatedClock();
  driver = new SqliteDriver({ path: ':memory:' });
  await migrate(driver);
  store = createStore(driver);
  await store.projects.ensureProject({ name: 'one', signingKeys: { current: 'c', next: 'n' }, nowMs: 0 });
  await store.moves.startMove({ projectId: PROJECT, fromCell: 1, toCell: 2, mover: 'a', startedAtMs: clock.wallMs() });
});
afterEach(() => store.close());

/** Holds the clock until the store has responded. */
const heldKeep: Store['moves']['renewMove'] = (args) => clock.hold(store.moves.renewMove(args));
const take = (mover: string): Promise<MoveLease> =>
  MoveLease.take({ ...store.moves, renewMove: heldKeep }, clock, PROJECT, mover);
const found = () => store.moves.findMove({ projectId: PROJECT });
const write = (held: MoveLease) => clock.hold(held.guard(driver).transaction((tx) => tx.run('delete from tokens')));

it('a second command is rejected while the first one is active', async () => {
  const first = await take('a');
  const second = take('b');
  const refused = expect(second).rejects.toThrow('another command moves the project');
  await clock.advanceBy(20_000);
  await refused;
  await write(first);
  expect(await found()).toMatchObject({ mover: 'a' });
  await first.stopRenewal();
});

it('a second command takes over a move that is stuck because its command has ended', async () => {
  const first = await take('a');
  await first.stopRenewal();
  const second = take('b');
  await clock.advanceBy(5_000);
  expect(isStuck((await found()) ?? { renewedAtMs: 0 }, clock.wallMs())).toBe(false);
  await clock.advanceBy(400);
  const held = await second;
  expect(await found()).toMatchObject({ mover: 'b', renewedAtMs: clock.wallMs() - 200 });
  await held.stopRenewal();
  await clock.advanceBy(60_000);
  expect(isStuck((await found()) ?? { renewedAtMs: Infinity }, clock.wallMs())).toBe(true);
});

it('a command writes nothing after another one has taken over', async () => {
  const first = await take('a');
  await first.stopRenewal();
  await clock.advanceBy(5_001);
  const second = await take('b');
  await expect(write(first)).rejects.toThrow('another command has taken over the move of the project');
  await store.moves.setMovePhase({ projectId: PROJECT, mover: 'b', phase: 'paused' });
  expect(await store.moves.switchMove({ projectId: PROJECT, mover: 'a' })).toBe(false);
  await store.moves.setMovePhase({ projectId: PROJECT, mover: 'a', phase: 'cancelled' });
  await store.moves.endMove({ projectId: PROJECT, mover: 'a' });
  expect(await found()).toMatchObject({ phase: 'paused', mover: 'b' });
  await second.stopRenewal();
});
