/**
 * Six cells on three servers, three workers, and a project in each cell under mixed load, while projects move, moves and workers and
 * servers are killed or hang, and the directory is away. One world goes through all of it, and is judged once: nothing that was answered is
 * lost, runs come to the right end once, limits hold, and nothing is in two cells.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { judge } from './proof/judge.ts';
import { MOVE_TRIALS, SERVER_TRIALS } from './proof/trials.ts';
import { type CellsWorld, openCellsWorld, threeServers } from './proof/world.ts';

// Another number explores other moments; a failure prints the one it had.
const SEED = Number(process.env['CELLS_PROOF_SEED'] ?? 20_261_123);

describe(`six cells on three servers (seed ${SEED})`, () => {
  let world: CellsWorld;

  beforeAll(async () => {
    world = await openCellsWorld(SEED, await threeServers());
    await world.begin();
  });
  afterAll(() => world?.close());
  // The client library tells of each answer that was none.
  beforeEach(() => void vi.spyOn(console, 'error').mockReturnValue());

  it.each(Object.entries(MOVE_TRIALS))('go on while projects %s', async (_, trial) => {
    await trial(world);
  });
  it.each(Object.entries(SERVER_TRIALS))('go on when the server %s', async (_, trial) => {
    await trial(world);
  });

  it('have lost nothing, done nothing twice without a reason, kept every limit and order, and have nothing in two cells', async () => {
    await world.calmDown();
    const { findings, acked, succeeded } = await judge(world);
    expect(findings.join('\n')).toBe('');
    expect(acked).toBeGreaterThan(500);
    expect(succeeded).toBeGreaterThan(20);
  });
});
