/** An attempt that is in flight while its project moves: what it can still read, and where its outcome is saved. */

import { afterEach, beforeEach, expect, it } from 'vitest';
import { moveProject } from '../../src/cells/move/move-project.ts';
import { followMoves } from '../../src/cells/serve/follow-moves.ts';
import { emptyMinute } from '../../src/engine/minutes/counts.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import type { Store } from '../../src/store/store.ts';
import { startRun } from '../store/conformance/run-world.ts';
import { delivered, settlement, T0, type World } from '../store/conformance/world.ts';
import { type Cells, FIRST, SECOND, there, twoCells } from '../store/move/project/cells-world.ts';
import { alteredStore } from '../support/altered-store.ts';

const PROJECT = 1;
const drivers: SqliteDriver[] = [];
let cells: Cells;
/** The store of the first cell. */
let own: Store;

beforeEach(async () => {
  const open = async () => {
    const driver = new SqliteDriver({ path: ':memory:' });
    drivers.push(driver);
    await migrate(driver);
    return driver;
  };
  cells = await twoCells([await open(), await open()]);
  own = followMoves(cells.first.store, (_, work) => work(cells.second.store));
});
afterEach(async () => {
  for (const driver of drivers.splice(0)) await driver.close();
});

it('reads the run and its journal in the new cell of the project', async () => {
  const run = await cells.first.store.runs.findActiveRun({ projectId: PROJECT, id: 'kept' });
  const key = run?.key ?? 0;
  const before = await own.runs.readJournal({ projectId: PROJECT, runKey: key });
  await moveProject(there(cells));
  expect(await own.runs.readJournal({ projectId: PROJECT, runKey: key })).toEqual(before);
  expect(before).not.toEqual([]);
  expect(await own.runs.findRun({ projectId: PROJECT, key })).toMatchObject({ id: 'kept' });
  expect(await own.runs.findRecords({ projectId: PROJECT, keys: [key] })).toHaveLength(1);
});

it('is settled in the new cell of the project, and counted there', async () => {
  const { message, claimToken } = await cells.first.world.acceptClaimed();
  await moveProject(there(cells));
  const settled = await own.messages.settle({
    settlement: settlement(message, claimToken, delivered(T0 + 5)),
    nowMs: T0 + 5,
  });
  expect(settled).toMatchObject({ kind: 'saved' });
  const minute = { ...emptyMinute(60_000 * 1_000), delivered: 3 };
  await own.minutes.addMinutes({ projectId: PROJECT, minutes: [minute] });
  const range = { projectId: PROJECT, fromMs: minute.atMs, toMs: minute.atMs, count: 1 };
  expect(await cells.second.store.minutes.listMinutes(range)).toMatchObject([{ delivered: 3 }]);
});

it('leaves the messages that follow to the slots of the new cell', async () => {
  const { message, claimToken } = await cells.first.world.acceptClaimed();
  await moveProject(there(cells));
  const state = { kind: 'claimed' as const, claimToken: cells.first.world.number(), worker: 'worker' };
  const follow = cells.first.world.message({ state });
  const change = { ...delivered(T0 + 5), follows: [follow] };
  const settled = await own.messages.settle({ settlement: settlement(message, claimToken, change), nowMs: T0 + 5 });
  expect(settled).toMatchObject({ kind: 'saved', follows: [{ state: 'due' }] });
  const { claimed } = await cells.second.world.claim();
  expect(claimed.map((each) => each.message.key)).toContain(follow.message.key);
});

it('is released in the new cell of the project', async () => {
  const { message, claimToken } = await cells.first.world.acceptClaimed();
  await moveProject(there(cells));
  await own.messages.release({ claims: [{ key: message.key, projectId: PROJECT, claimToken }], nowMs: T0 });
  const { claimed } = await cells.second.world.claim();
  expect(claimed.map((each) => each.message.key)).toContain(message.key);
});

it('keeps the order of the pending events of a run when the new cell assigns smaller numbers', async () => {
  const { first, second } = cells;
  const projectId = 3;
  const run = await startRun(second.world, { id: 'r', projectId });
  const save = (world: World, text: string) => {
    const event = { key: world.number(), body: Buffer.from(text) };
    return world.store.waiters.savePendingEvent({
      projectId,
      runKey: run.key,
      eventId: 'e',
      ...event,
      limits: { events: 9, bytes: 999 },
    });
  };
  await save(second.world, 'before the move');
  const [source, target] = [second.driver, first.driver];
  await moveProject(there(cells, { projectId, fromCell: SECOND, toCell: FIRST, source, target }));
  await save(first.world, 'after the move');
  const next = await first.store.waiters.nextPendingEvent({ runKey: run.key, eventId: 'e' });
  expect(Buffer.from(next?.body ?? []).toString()).toBe('before the move');
});

it('passes the lane permit on while the project is still in this cell', async () => {
  const handedOn: unknown[] = [];
  const store = alteredStore(cells.first.store, {
    settle: (args) => {
      handedOn.push(args.handoff);
      return cells.first.store.messages.settle(args);
    },
  });
  const handoff = { worker: 'worker', claimToken: 9_000, bytesMax: 100 };
  const { message, claimToken } = await cells.first.world.acceptClaimed();
  const engineStore = followMoves(store, (_, work) => work(cells.second.store));
  await engineStore.messages.settle({
    settlement: settlement(message, claimToken, delivered(T0 + 5)),
    nowMs: T0 + 5,
    handoff,
  });
  expect(handedOn).toEqual([handoff]);
});
