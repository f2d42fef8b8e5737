/** When a worker ends the pause of a move. The resulting state of the project: test/store/move/project/killed.full.test.ts. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PausedMoves } from '../../src/cells/serve/paused-moves.ts';
import type { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { SqliteDriver as Sqlite } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { setPlacement } from '../../src/store/operations/locking/placement.ts';
import { type Cells, FIRST, SECOND, twoCells, whereabouts } from '../store/move/project/cells-world.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const PROJECT = 1;

let clock: SimulatedClock;
let drivers: SqliteDriver[];
let cells: Cells;
let logged: string[];
let isReached: boolean;
let moves: PausedMoves;

beforeEach(async () => {
  clock = new SimulatedClock();
  drivers = [new Sqlite({ path: ':memory:' }), new Sqlite({ path: ':memory:' })];
  for (const driver of drivers) await migrate(driver);
  cells = await twoCells([drivers[0] as SqliteDriver, drivers[1] as SqliteDriver]);
  logged = [];
  isReached = true;
  const note = (event: string) => void logged.push(event);
  const log = { debug: note, info: note, warn: note, error: note };
  const first = { store: cells.first.store, worker: 'worker', clock, log };
  moves = new PausedMoves({ first, accounts: { nameOf: String } }, (cellId) => {
    const { driver } = cellId === FIRST ? cells.first : cells.second;
    return {
      dialect: driver.dialect,
      transaction: async (work, options) => {
        if (!isReached) throw new Error('the cell is unreachable');
        return driver.transaction(work, options);
      },
      read: (work) => driver.read(work),
      close: async () => {},
    };
  });
  const move = { projectId: PROJECT, fromCell: FIRST, toCell: SECOND, mover: 'command', startedAtMs: clock.wallMs() };
  await cells.first.store.moves.startMove(move);
  await cells.first.store.moves.setMovePhase({ projectId: PROJECT, mover: 'command', phase: 'paused' });
  await drivers[0]?.transaction((tx) => setPlacement(tx, PROJECT, 'leaving'));
});
afterEach(async () => {
  for (const driver of drivers) await driver.close();
});

const found = () => cells.first.store.moves.findMove({ projectId: PROJECT });
/** Advances the clock in seconds, and checks the moves after each. */
async function seconds(count: number, each = async () => {}): Promise<void> {
  for (let second = 0; second < count; second += 1) {
    await clock.hold(moves.check());
    await clock.advanceBy(1_000);
    await clock.hold(each());
  }
  await clock.hold(moves.check());
}

it('ignores a move whose command is active, even if its clock is wrong', async () => {
  let saidAtMs = 1;
  await seconds(20, async () => {
    saidAtMs += 1_000;
    await cells.first.store.moves.renewMove({ projectId: PROJECT, mover: 'command', nowMs: saidAtMs });
  });
  expect(await whereabouts(cells)).toEqual([FIRST, 'leaving', undefined]);
  expect(await found()).toMatchObject({ mover: 'command', phase: 'paused' });
});

it('resumes the project when its command has been silent for five seconds, and does not delay other projects', async () => {
  await seconds(5);
  expect(await whereabouts(cells)).toEqual([FIRST, 'leaving', undefined]);
  await seconds(1);
  expect(await whereabouts(cells)).toEqual([FIRST, 'here', undefined]);
  expect(await found()).toMatchObject({ phase: 'copying', renewedAtMs: 0 });
  expect(logged).toEqual(['move_stopped']);
  await seconds(20);
  expect(logged).toEqual(['move_stopped']);
  expect(
    await cells.first.store.moves.renewMove({ projectId: PROJECT, mover: 'next', nowMs: 9, expiredBeforeMs: 1 }),
  ).toBe(true);
});

it('tries again later while a cell cannot be reached', async () => {
  isReached = false;
  await seconds(8);
  expect(logged).toEqual(['move_not_resumed']);
  isReached = true;
  await seconds(8);
  expect(logged).toEqual(['move_not_resumed', 'move_stopped']);
  expect(await whereabouts(cells)).toEqual([FIRST, 'here', undefined]);
});
