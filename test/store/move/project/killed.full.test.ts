/** A move that is killed after any of its transactions leaves the project in exactly one cell, and can continue. */
import { expect, it } from 'vitest';
import { type MoveProjectOptions, moveProject } from '../../../../src/cells/move/move-project.ts';
import { PausedMoves } from '../../../../src/cells/serve/paused-moves.ts';
import type { Driver } from '../../../../src/store/driver.ts';
import { SqliteDriver } from '../../../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../../../src/store/migrations/index.ts';
import type { Store } from '../../../../src/store/store.ts';
import {
  type Cells,
  FIRST,
  findingsIn,
  isNothing,
  open,
  rowsOf,
  SECOND,
  storeOver,
  there,
  twoCells,
  whereabouts,
} from './cells-world.ts';

// Before the first transaction there is nothing to continue, and before another one is after the previous one.
it('a move that is killed after any of its transactions continues when it is called again', async () => {
  const images = await imagesOfTwoCells();
  let last: Crash;
  let at = 0;
  do {
    const cells = await cellsOf(images);
    const wanted = await rowsOf(cells.first, 1);
    const crash = new Crash(at);
    await moveProject(there(cells, crash.around(cells))).catch(() => {});
    const [cell, inFirst, inSecond] = await whereabouts(cells);
    expect(cell === FIRST ? inSecond : inFirst, `killed at ${at}`).not.toBe('here');
    await moveProject(there(cells)).catch((error: Error) => {
      expect(error.message).toBe('the project does not live in that cell'); // it was moved
    });
    expect(await rowsOf(cells.second, 1), `killed at ${at}`).toEqual(wanted);
    expect(isNothing(await rowsOf(cells.first, 1)), `killed at ${at}`).toBe(true);
    expect(await whereabouts(cells)).toEqual([SECOND, 'elsewhere', 'here']);
    expect(await findingsIn(cells.second)).toEqual([]);
    for (const { driver } of [cells.first, cells.second]) await driver.close();
    last = crash;
    at += 1;
  } while (last.hasCome);
  expect(at).toBeGreaterThan(50);
});

it.each([
  ['there', SECOND, 0],
  ['there and back', FIRST, 1],
])(
  'a move that sleeps before every other of its transactions, while other calls move the project %s, does nothing more',
  async (_, home, first) => {
    const images = await imagesOfTwoCells();
    let last: Sleep;
    let at = first;
    do {
      const cells = await cellsOf(images);
      const wanted = await rowsOf(cells.first, 1);
      const sleep = new Sleep(at, async () => {
        const { moves } = cells.first.store;
        await moves.renewMove({ projectId: 1, mover: 'other', nowMs: 0, expiredBeforeMs: Infinity });
        await moveProject(there(cells, { mover: 'other' })).catch((error: Error) => {
          expect(error.message).toBe('the project does not live in that cell'); // it was moved
        });
        if (home === FIRST) await moveProject(back(cells));
      });
      await moveProject(there(cells, sleep.around(cells))).catch((error: Error) => {
        expect(error.message).toMatch(/another command|does not live in that cell|copied wrongly|not paused/);
      });
      // A move that has not started when it sleeps starts afterwards.
      const isThere = home === SECOND || at === 0 || !sleep.hasCome;
      const [cell, elsewhere] = isThere ? [cells.second, cells.first] : [cells.first, cells.second];
      expect(await rowsOf(cell, 1), `slept at ${at}`).toEqual(wanted);
      expect(isNothing(await rowsOf(elsewhere, 1)), `slept at ${at}`).toBe(true);
      expect(await whereabouts(cells), `slept at ${at}`).toEqual(
        isThere ? [SECOND, 'elsewhere', 'here'] : [FIRST, 'here', 'elsewhere'],
      );
      for (const { driver } of [cells.first, cells.second]) await driver.close();
      last = sleep;
      at += 2;
    } while (last.hasCome);
    expect(at).toBeGreaterThan(50);
  },
);

it('a project whose move is killed after any of its transactions is served after the poll of a worker, however it is killed', async () => {
  let refused = 0;
  const images = await imagesOfTwoCells();
  for (let at = 0, isOver = false; !isOver; at += 1) {
    const cells = await cellsOf(images);
    const crash = new Crash(at);
    await moveProject(there(cells, crash.around(cells))).catch(() => {});
    isOver = !crash.hasCome;
    if (!(await isServed(cells))) {
      refused += 1;
      const killed = imagesIn(cells);
      for (let rescueAt = 0, isRescued = false; !isRescued; rescueAt += 1) {
        const again = await cellsOf(killed);
        const rescue = new Crash(rescueAt);
        await look(again, rescue.around(again));
        isRescued = !rescue.hasCome;
        await look(again);
        expect(await isServed(again), `killed at ${at}, then at ${rescueAt}`).toBe(true);
        await close(again);
      }
    }
    await look(cells);
    expect(await isServed(cells), `killed at ${at}`).toBe(true);
    await goOn(cells, `killed at ${at}`);
    await close(cells);
  }
  expect(refused).toBeGreaterThan(3);
});

it.each([
  ['from the directory', FIRST],
  ['to the directory', SECOND],
])(
  'a move %s that sleeps before any of its transactions, while a worker ends its pause, does nothing more',
  async (_, from) => {
    const way = from === FIRST ? there : back;
    const images = await imagesOfTwoCells(from);
    let refusals = 0;
    for (let at = 0, isOver = false; !isOver; at += 1) {
      const cells = await cellsOf(images);
      const { source, target } = way(cells);
      const sleep = new Sleep(at, () => look(cells));
      const slept = { ...sleep.around(cells), source: sleep.of(source), target: sleep.of(target) };
      await moveProject({ ...way(cells), ...slept }).catch((error: Error) => {
        expect(error.message).toMatch(/another command|does not live in that cell|not paused/);
        refusals += 1;
      });
      isOver = !sleep.hasCome;
      expect(await isServed(cells), `slept at ${at}`).toBe(true);
      await goOn(cells, `slept at ${at}`, way);
      await close(cells);
    }
    expect(refusals).toBeGreaterThan(50);
  },
);

/** A worker polls the moves, and again when none has changed for a while. */
async function look(cells: Cells, ends: Partial<MoveProjectOptions> = {}): Promise<void> {
  const { directory, source, target } = there(cells, ends);
  const clock = { elapsedMs: 0, wallMs: () => 1_000 + clock.elapsedMs };
  const ignore = () => {};
  const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
  const openDriver = (cellId: number): Driver => ({
    ...{ dialect: source.dialect, close: async () => {} },
    transaction: (work, options) => (cellId === FIRST ? source : target).transaction(work, options),
    read: (work) => (cellId === FIRST ? source : target).read(work),
  });
  const first = { store: { moves: directory }, worker: 'worker', clock, log };
  const paused = new PausedMoves({ first, accounts: { nameOf: String } }, openDriver);
  await paused.check();
  clock.elapsedMs = 5_001;
  await paused.check();
}

/** Is served by the cell in which it lives, and by no other. */
async function isServed(cells: Cells): Promise<boolean> {
  const [cell, inFirst, inSecond] = await whereabouts(cells);
  const [home, other] = cell === FIRST ? [inFirst, inSecond] : [inSecond, inFirst];
  expect(other).not.toBe('here');
  return home === 'here';
}

/** Continues the move with another command. */
async function goOn(cells: Cells, when: string, way: (cells: Cells) => MoveProjectOptions = there): Promise<void> {
  const mover = 'another';
  const { source, target, toCell } = way(cells);
  await cells.first.store.moves.renewMove({ projectId: 1, mover, nowMs: 0, expiredBeforeMs: Infinity });
  await moveProject({ ...way(cells), mover }).catch((error: Error) => {
    expect(error.message, when).toBe('the project does not live in that cell'); // it was moved
  });
  expect(isNothing(await rowsOf({ driver: source }, 1)), when).toBe(true);
  expect(await whereabouts(cells), when).toEqual(
    toCell === SECOND ? [SECOND, 'elsewhere', 'here'] : [FIRST, 'here', 'elsewhere'],
  );
  expect(await findingsIn({ driver: target }), when).toEqual([]);
}

async function close({ first, second }: Cells): Promise<void> {
  for (const { driver } of [first, second]) await driver.close();
}

type Images = readonly [Uint8Array | undefined, Uint8Array | undefined];

/** `home`: the cell of project 1. */
async function imagesOfTwoCells(home = FIRST): Promise<Images> {
  const drivers = [new SqliteDriver({ path: ':memory:' }), new SqliteDriver({ path: ':memory:' })] as const;
  for (const driver of drivers) await migrate(driver);
  const cells = await twoCells(drivers);
  if (home === SECOND) await moveProject(there(cells));
  const images = [drivers[0].image(), drivers[1].image()] as const;
  for (const driver of drivers) await driver.close();
  return images;
}

function imagesIn({ first, second }: Cells): Images {
  return [(first.driver as SqliteDriver).image(), (second.driver as SqliteDriver).image()];
}

async function cellsOf([first, second]: Images): Promise<Cells> {
  const openImage = (image: Uint8Array | undefined) =>
    open(storeOver(new SqliteDriver({ path: ':memory:', ...(image && { image }) })));
  return { first: await openImage(first), second: await openImage(second) };
}

function back(cells: Cells): MoveProjectOptions {
  const { source, target, ...rest } = there(cells);
  return { ...rest, fromCell: SECOND, toCell: FIRST, mover: 'third', source: target, target: source };
}

/** Runs before each transaction of a move. */
abstract class Between {
  around(cells: Cells): Pick<MoveProjectOptions, 'directory' | 'source' | 'target'> {
    const { directory, source, target } = there(cells);
    return { directory: this.ofMoves(directory), source: this.of(source), target: this.of(target) };
  }

  of(driver: Driver): Driver {
    return {
      dialect: driver.dialect,
      transaction: (work, options) => this.pass(() => driver.transaction(work, options)),
      read: (work) => this.pass(() => driver.read(work)),
      close: () => driver.close(),
    };
  }

  ofMoves(moves: Store['moves']): Store['moves'] {
    return new Proxy(moves, {
      get: (target, name) => {
        const method = target[name as keyof Store['moves']] as (args: unknown) => Promise<unknown>;
        return (args: unknown) => this.pass(() => method(args));
      },
    });
  }

  protected abstract pass<T>(work: () => Promise<T>): Promise<T>;
}

/** Ends a move after the commit of its `at`th transaction. */
class Crash extends Between {
  #left: number;
  hasCome = false;

  constructor(at: number) {
    super();
    this.#left = at;
  }

  /** A killed program does nothing more. */
  protected override async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.hasCome) throw new Error('killed');
    this.hasCome = this.#left === 0;
    this.#left -= 1;
    if (!this.hasCome) return work();
    await work();
    throw new Error('killed');
  }
}

/** Runs other commands before the `at`th transaction of a move. */
class Sleep extends Between {
  #left: number;
  readonly #meanwhile: () => Promise<void>;
  hasCome = false;

  constructor(at: number, meanwhile: () => Promise<void>) {
    super();
    this.#left = at;
    this.#meanwhile = meanwhile;
  }

  protected override async pass<T>(work: () => Promise<T>): Promise<T> {
    this.#left -= 1;
    if (this.#left === -1) {
      this.hasCome = true;
      await this.#meanwhile();
    }
    return work();
  }
}
