/**
 * A project moves to another cell while both are in use, and is in exactly one of them, even if the move is
 * interrupted.
 */

import { afterEach, describe, expect, it } from 'vitest';
import {
  cancelProjectMove,
  endPause,
  type MoveProjectOptions,
  moveProject,
} from '../../../../src/cells/move/move-project.ts';
import type { RunRetry } from '../../../../src/engine/runs/dead/dead-run-store.ts';
import type { Driver } from '../../../../src/store/driver.ts';
import { PostgresDriver } from '../../../../src/store/drivers/postgres/driver.ts';
import { SqliteDriver } from '../../../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../../../src/store/migrations/index.ts';
import type { Store } from '../../../../src/store/store.ts';
import { systemClock } from '../../../../src/system/system.ts';
import { makeHostile } from '../../../support/postgres/hostile.ts';
import { migratedDatabase } from '../../../support/postgres/shared.ts';
import { SeededRandom } from '../../../support/seeded-random.ts';
import { newRunMessage, startRun } from '../../conformance/run-world.ts';
import { delivered, lastFailure, retrying, settlement, T0, type World } from '../../conformance/world.ts';
import {
  type CellHere,
  type Cells,
  countAll,
  FIRST,
  findingsIn,
  isNothing,
  rowsOf,
  SECOND,
  there,
  twoCells,
  whereabouts,
} from './cells-world.ts';

const PROJECT = 1;
/** So small that most tables need several. */
const SMALL = { rowsMax: 20, bytesMax: 30_000 };

const opened: Driver[] = [];
afterEach(async () => {
  for (const driver of opened.splice(0)) await driver.close();
});

function keep<D extends Driver>(driver: D): D {
  opened.push(driver);
  return driver;
}

const KINDS: Record<string, () => Promise<Driver>> = {
  SQLite: async () => {
    const driver = keep(new SqliteDriver({ path: ':memory:' }));
    await migrate(driver);
    return driver;
  },
  'PostgreSQL with hostile defaults': async () => postgresAt(await makeHostile(await migratedDatabase())),
};

function postgresAt(url: string): PostgresDriver {
  const options = { connectionsMax: 4, timeoutMs: 10_000, prepares: true, clock: systemClock };
  return keep(new PostgresDriver({ url, ...options }));
}

async function cellsOn(kind: string): Promise<Cells> {
  const openDriver = KINDS[kind] as () => Promise<Driver>;
  return twoCells([await openDriver(), await openDriver()]);
}

function back(cells: Cells, options: Partial<MoveProjectOptions> = {}): MoveProjectOptions {
  const { source, target, ...rest } = there(cells);
  return { ...rest, fromCell: SECOND, toCell: FIRST, source: target, target: source as Driver, ...options };
}

describe.each(Object.keys(KINDS))('a project of %s that is moved', (kind) => {
  it('takes every row of every table with it, leaves those of others, and can move back', async () => {
    const cells = await cellsOn(kind);
    const { first, second } = cells;
    const wanted = await rowsOf(first, PROJECT);
    expect(Object.entries(wanted).filter(([, rows]) => rows.length === 0)).toEqual([]);
    const others = [await rowsOf(first, 2), await rowsOf(second, 3)];
    const { tables, pausedMs } = await moveProject(there(cells, { limits: SMALL }));
    expect(pausedMs).toBeGreaterThanOrEqual(0);
    expect(tables.reduce((sum, { rows }) => sum + rows, 0)).toBeGreaterThan(50);
    expect(await rowsOf(second, PROJECT)).toEqual(wanted);
    expect(isNothing(await rowsOf(first, PROJECT))).toBe(true);
    expect(await whereabouts(cells)).toEqual([SECOND, 'elsewhere', 'here']);
    const sizeThere = await countAll(second);
    await moveProject(back(cells));
    expect(await rowsOf(first, PROJECT)).toEqual(wanted);
    expect(isNothing(await rowsOf(second, PROJECT))).toBe(true);
    expect(await countAll(second)).toBeLessThan(sizeThere);
    expect([await rowsOf(first, 2), await rowsOf(second, 3)]).toEqual(others);
    expect(await whereabouts(cells)).toEqual([FIRST, 'here', 'elsewhere']);
    expect(await first.store.moves.listMoves()).toEqual([]);
    expect([...(await findingsIn(first)), ...(await findingsIn(second))]).toEqual([]);
  });

  it('lets the workers of its attempts count as alive in its new cell, but no lost worker', async () => {
    const cells = await cellsOn(kind);
    const beat = { timeoutMs: 15_000, isLeaving: false, accountsVersion: 1 };
    for (const worker of ['here alone', 'gone from there', 'lost']) {
      const claimToken = cells.first.world.number();
      await cells.first.world.accept({ state: { kind: 'claimed', claimToken, worker } });
      const timeoutMs = worker === 'lost' ? -1 : beat.timeoutMs;
      await cells.first.store.workers.heartbeat({ worker, ...beat, timeoutMs });
    }
    await cells.second.store.workers.heartbeat({ worker: 'gone from there', ...beat });
    await cells.second.store.workers.leave({ worker: 'gone from there' });
    await moveProject(there(cells));
    const { others } = await cells.second.store.workers.heartbeat({ worker: 'witness', ...beat });
    expect(others).toEqual(['gone from there', 'here alone']);
  });

  it('gives the workers of its attempts a whole timeout, although they were silent there for most of it', async () => {
    const cells = await cellsOn(kind);
    const { first, second } = cells;
    const beat = { worker: 'silent', timeoutMs: 15_000, isLeaving: false, accountsVersion: 1 };
    await first.world.accept({ state: { kind: 'claimed', claimToken: first.world.number(), worker: 'silent' } });
    await first.store.workers.heartbeat(beat);
    const { wallMs } = await second.store.workers.heartbeat(beat);
    await second.driver.transaction((tx) => tx.send('update workers set beat_at_ms = beat_at_ms - 14000'));
    await moveProject(there(cells));
    expect(await second.store.workers.expireWorkers({ nowMs: wallMs + 14_000 })).toEqual([]);
  });

  it('loses nothing that is published, claimed and settled during the move', async () => {
    const cells = await cellsOn(kind);
    const use = new Use(cells.first.world);
    await moveProject(there(cells, { limits: SMALL, source: use.between(cells.first.driver) }));
    expect(use.accepted.size).toBeGreaterThan(10);
    expect(use.refused).toBeGreaterThan(0);
    expect(await use.missingIn(cells.second)).toEqual([]);
    expect(isNothing(await rowsOf(cells.first, PROJECT))).toBe(true);
    expect([...(await findingsIn(cells.first)), ...(await findingsIn(cells.second))]).toEqual([]);
  });
});

describe('a moved project', () => {
  it('has the outcome of an attempt in flight settled once, in its new cell', async () => {
    const cells = await cellsOn('SQLite');
    const { message, claimToken } = await cells.first.world.acceptClaimed();
    await moveProject(there(cells));
    const settle = ({ store }: CellHere) =>
      store.messages.settle({ settlement: settlement(message, claimToken, delivered(T0 + 5)), nowMs: T0 + 5 });
    await expect(settle(cells.first)).rejects.toMatchObject({ name: 'ProjectAway', isGone: true });
    expect(await settle(cells.second)).toMatchObject({ kind: 'saved' });
    expect(await settle(cells.second)).toEqual({ kind: 'stale' });
  });

  it('stays in its cell when the move is cancelled, and can be moved again', async () => {
    const cells = await cellsOn('SQLite');
    const wanted = await rowsOf(cells.first, PROJECT);
    const size = await countAll(cells.second);
    await expect(moveProject(there(cells, { pauseMaxMs: -1 }))).rejects.toThrow('too much has changed');
    expect(await whereabouts(cells)).toEqual([FIRST, 'here', 'arriving']);
    await cancelProjectMove(there(cells));
    expect(await whereabouts(cells)).toEqual([FIRST, 'here', 'elsewhere']);
    expect(await countAll(cells.second)).toBe(size);
    await moveProject(there(cells));
    expect(await rowsOf(cells.second, PROJECT)).toEqual(wanted);
    await expect(cancelProjectMove(there(cells))).rejects.toThrow('not being moved');
  });
});

describe('a move', () => {
  it.each([
    ['to another cell than the one under way', { toCell: 3 }, 'on its way from cell 1 to cell 2'],
    ['from a cell where the project does not live', { projectId: 3 }, 'does not live in that cell'],
  ])('%s is refused', async (_, options, message) => {
    const cells = await cellsOn('SQLite');
    await cells.first.store.moves.startMove({
      projectId: PROJECT,
      fromCell: FIRST,
      toCell: SECOND,
      mover: 'm',
      startedAtMs: T0,
    });
    await expect(moveProject(there(cells, options))).rejects.toThrow(message);
  });

  it.each([
    ['cancelled', cancelProjectMove],
    ['served again', endPause],
  ])('is not %s by a caller who has read an earlier move, in the other direction', async (_, end) => {
    const cells = await cellsOn('SQLite');
    const wanted = await rowsOf(cells.first, PROJECT);
    await cells.first.store.moves.startMove({ ...there(cells), startedAtMs: T0 });
    await expect(end(back(cells))).rejects.toThrow('on its way from cell 1 to cell 2');
    expect(await rowsOf(cells.first, PROJECT)).toEqual(wanted);
    expect(await whereabouts(cells)).toEqual([FIRST, 'here', undefined]);
  });

  it('copies differing rows again, and removes rows that should not be there', async () => {
    const cells = await cellsOn('SQLite');
    const wanted = await rowsOf(cells.first, PROJECT);
    await expect(moveProject(there(cells, { pauseMaxMs: -1 }))).rejects.toThrow('too much has changed');
    await cells.second.driver.transaction(async (tx) => {
      await tx.run("update runs set url = 'other', version = version + 1 where project_id = ?", [PROJECT]);
      await tx.run('delete from logs where project_id = ? and at_ms > ?', [PROJECT, T0]);
      await tx.insertMany('message_counts', ['project_id', 'day', 'messages'], [[PROJECT, 1, 1]]);
      await tx.insertMany(
        'deduplications',
        ['project_id', 'hash', 'message_id', 'expires_at_ms'],
        [[PROJECT, 'zz', 'm', 1]],
      );
    });
    await moveProject(there(cells));
    expect(await rowsOf(cells.second, PROJECT)).toEqual(wanted);
    expect(await findingsIn(cells.second)).toEqual([]);
  });

  it('knows which run replaced a failed one, although both existed before', async () => {
    const cells = await cellsOn('SQLite');
    const { driver, store, world } = cells.first;
    // So many that row ranges with the same digest are not read.
    const same = { project_id: PROJECT, url: 'u', state: 3, version: 1, config: '{}', entries: 0, journal_bytes: 0 };
    const over = Array.from({ length: 2_100 }, (_, n) => [100_000 + n, `${n}`, T0 + n, ...Object.values(same)]);
    const columns = ['key', 'id', 'created_at_ms', ...Object.keys(same)];
    await driver.transaction((tx) => tx.insertMany('runs', columns, over));
    const claimToken = world.number();
    const failed = await startRun(world, {
      createdAtMs: T0 + 500,
      state: { kind: 'claimed', claimToken, worker: 'w' },
    });
    const ending = { projectId: PROJECT, runKey: failed.key, runVersion: 1, state: 'RUN_FAILED', atMs: T0 } as const;
    await store.messages.settle({
      settlement: settlement(failed, claimToken, { ...lastFailure(T0), ending }),
      nowMs: T0,
    });
    await expect(moveProject(there(cells, { pauseMaxMs: -1 }))).rejects.toThrow('too much has changed');
    const { run, entry, message } = newRunMessage(world, { id: 'next', createdAtMs: T0 + 3_000 });
    if (!run || !entry) throw new Error('a first message begins a run');
    const retry: RunRetry = {
      ...{ projectId: PROJECT, dlqId: `${T0}-${failed.key}`, run, runKey: message.key },
      ...{ journal: [{ kind: 'record', record: { message, entry } }], waiters: [], invocations: [], children: [] },
      ...{ isFirst: true, isLast: true },
    };
    expect(await store.deadRuns.retryRun({ ...retry, nowMs: T0 })).toMatchObject({ kind: 'retried' });
    await moveProject(there(cells));
    expect(await cells.second.store.runs.findRun({ projectId: PROJECT, key: failed.key })).toMatchObject({
      config: { successor: { id: 'next', createdAtMs: T0 + 3_000 } },
    });
  });

  it('finds log entries that were added late, with a time long before', async () => {
    const cells = await cellsOn('SQLite');
    const use = new Use(cells.first.world);
    const late = async () => {
      await use.publish(T0 - 3_600_000);
    };
    const { directory } = there(cells);
    const setMovePhase: Store['moves']['setMovePhase'] = async (args) => {
      if (args.phase === 'paused') await late();
      await directory.setMovePhase(args);
    };
    const clock = { wallMs: () => T0 + 200_000, elapsedMs: 0 };
    await moveProject(there(cells, { clock, directory: { ...directory, setMovePhase } }));
    expect(use.accepted.size).toBe(1);
    expect(await use.missingIn(cells.second)).toEqual([]);
  });
});

/** Publishes, claims and settles between the steps of a move, and knows the acknowledged messages. */
class Use {
  readonly accepted = new Set<number>();
  readonly finished = new Set<number>();
  refused = 0;
  readonly #world: World;
  readonly #random = new SeededRandom(7);
  #nowMs = T0 + 100_000;
  #isBusy = false;
  #reads = 0;

  constructor(world: World) {
    this.#world = world;
  }

  between(driver: Driver): Driver {
    return {
      dialect: driver.dialect,
      transaction: driver.transaction.bind(driver),
      read: async (work) => {
        await this.#step();
        return driver.read(work);
      },
      close: () => driver.close(),
    };
  }

  async publish(createdAtMs: number): Promise<void> {
    const lane = { settings: { flowControl: { key: 'used', parallelism: 2, periodS: 1 } } };
    const { key } = await this.#world.accept({ createdAtMs, ...(this.#random.chance(0.3) ? lane : {}) });
    this.accepted.add(key);
  }

  async #step(): Promise<void> {
    this.#reads += 1;
    if (this.#isBusy || this.#reads % 2 > 0) return;
    this.#isBusy = true;
    this.#nowMs += 10;
    try {
      await this.publish(this.#nowMs);
      const { claimed } = await this.#world.claim({ limit: 2 }, this.#nowMs);
      for (const { message, claimToken } of claimed) {
        const isDone = this.#random.chance(0.7);
        const change = isDone ? delivered(this.#nowMs) : retrying(this.#nowMs, this.#nowMs + 5, 1);
        await this.#world.settle(message, claimToken, change, this.#nowMs);
        if (isDone) this.finished.add(message.key);
      }
    } catch (error) {
      if ((error as Error).name !== 'ProjectAway') throw error;
      this.refused += 1;
    } finally {
      this.#isBusy = false;
    }
  }

  /** The acknowledged messages that are missing in the cell, as unfinished or with their outcomes. */
  async missingIn({ driver }: CellHere): Promise<number[]> {
    const keysIn = async (text: string): Promise<Set<number>> => {
      const rows = await driver.read((queries) => queries.query<{ key: number }>(text));
      return new Set(rows.map(({ key }) => key));
    };
    const unfinished = await keysIn('select key from messages');
    const contents = await keysIn('select key from contents');
    const logged = await keysIn('select message_key as key from logs');
    return [...this.accepted].filter((key) => {
      const isThere = contents.has(key) && logged.has(key);
      return !isThere || unfinished.has(key) === this.finished.has(key);
    });
  }
}
