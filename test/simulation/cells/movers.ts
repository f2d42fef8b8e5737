/**
 * Moves projects between cells. Each command is a process that may be killed or stopped at any moment. Several commands may
 * run at once, also for one project.
 */

import { MoveLease } from '../../../src/cells/move/move-lease.ts';
import { cancelProjectMove, type MoveProjectOptions, moveProject } from '../../../src/cells/move/move-project.ts';
import type { CellId, Millis, ProjectId } from '../../../src/engine/model.ts';
import { StoreUnavailable } from '../../../src/engine/store-errors.ts';
import { SteadyClock } from '../../../src/engine/workers/steady-clock.ts';
import type { Driver } from '../../../src/store/driver.ts';
import { MoveRefused } from '../../../src/store/move/progress.ts';
import type { SeededRandom } from '../../support/seeded-random.ts';
import { storeOver } from '../database.ts';
import { FaultyDriver } from '../faulty-driver.ts';
import { ProcessClock, ProcessDied } from '../process-clock.ts';
import type { Database, Sabotage, World } from '../world.ts';
import { cellsOf } from './open.ts';

const HEALED = { crash: 0, lostAnswer: 0, commitMsMax: 1 };
const READ_MS_MAX = 3;

export class Movers {
  /** The elapsed times between which a command moved a project. */
  readonly moves: { projectId: ProjectId; fromMs: Millis; toMs: Millis }[] = [];
  readonly #world: World;
  readonly #random: SeededRandom;
  /** Probabilities per transaction, of which a move makes many. */
  readonly #faults: { crash: number; lostAnswer: number; commitMsMax: Millis };
  readonly #sabotaged: (options: MoveProjectOptions) => MoveProjectOptions;
  #isHealed = false;
  #number = 0;

  constructor(world: World, random: SeededRandom, { moves: sabotaged = (same) => same }: Sabotage) {
    this.#world = world;
    this.#random = random.fork();
    this.#faults = {
      crash: this.#random.choose([0, 0.003, 0.02]),
      lostAnswer: this.#random.choose([0, 0.002, 0.01]),
      commitMsMax: this.#random.choose([0, 5, 50]),
    };
    this.#sabotaged = sabotaged;
    Object.assign(world.counts, { moved: 0, movesKilled: 0, movesRefused: 0, movesCancelled: 0, movesFailed: 0 });
  }

  /** Starts one random action: usually moves a project or continues an interrupted move; sometimes cancels one. */
  async step(): Promise<void> {
    const random = this.#random;
    const projectId = random.chance(0.7) ? 1 : random.int(1, this.#world.databases.length);
    const under = await this.#activeMoves();
    const move = under.find((each) => each.projectId === projectId);
    if (move && random.chance(0.2)) return this.#cancel(projectId, move);
    const cells = await cellsOf(this.#directory.driver);
    const fromCell = cells.get(projectId) ?? 0;
    const others = this.#world.databases.map((_, index) => index + 1).filter((cell) => cell !== fromCell);
    const going = move ?? { fromCell, toCell: random.choose(others) };
    const commands = [this.#move(projectId, going)];
    if (random.chance(0.2)) commands.push(this.#move(projectId, going)); // a second process runs the same command
    await Promise.all(commands);
  }

  /** Ends all faults, then finishes or cancels all interrupted moves. */
  async finish(): Promise<void> {
    this.#isHealed = true;
    for (const move of await this.#activeMoves()) {
      if (move.phase === 'cancelled' || (move.phase !== 'switched' && this.#random.chance(0.3)))
        await this.#cancel(move.projectId, move);
      else await this.#move(move.projectId, move);
    }
  }

  async areDone(): Promise<boolean> {
    return (await this.#activeMoves()).length === 0;
  }

  get #directory(): Database {
    return this.#world.databases[0] as Database;
  }

  /** The moves in the directory. */
  #activeMoves(): ReturnType<ReturnType<typeof storeOver>['moves']['listMoves']> {
    return storeOver(this.#directory.driver).moves.listMoves();
  }

  #move(projectId: ProjectId, way: MoveRoute): Promise<void> {
    return this.#run('move', projectId, way, async (options, take) => {
      const { directory, mover, clock } = options;
      if (!(await directory.startMove({ projectId, ...way, mover, startedAtMs: clock.wallMs() }))) return;
      await moveProject(this.#sabotaged(await take()));
      this.#world.countOne('moved');
    });
  }

  #cancel(projectId: ProjectId, way: MoveRoute): Promise<void> {
    return this.#run('cancel', projectId, way, async (_, take) => {
      await cancelProjectMove(await take());
      this.#world.countOne('movesCancelled');
    });
  }

  /** Runs a command in a process that may die. */
  async #run(
    name: string,
    projectId: ProjectId,
    { fromCell, toCell }: MoveRoute,
    work: (options: MoveProjectOptions, take: () => Promise<MoveProjectOptions>) => Promise<void>,
  ): Promise<void> {
    const world = this.#world;
    this.#number += 1;
    const about = `${name} ${this.#number} of project ${projectId} from cell ${fromCell} to cell ${toCell}`;
    const move = { projectId, fromMs: world.clock.elapsedMs, toMs: Infinity };
    this.moves.push(move);
    world.note(`${about} begins`);
    const { clock, driverOf } = this.#newProcess();
    if (!this.#isHealed && this.#random.chance(0.2)) this.#freezeForAWhile(clock, about);
    const options: MoveProjectOptions = {
      ...{ projectId, fromCell, toCell, mover: `mover ${this.#number}`, clock },
      limits: { rowsMax: this.#random.choose([5, 50, 500]), bytesMax: 50_000 },
      directory: storeOver(driverOf(1)).moves,
      source: driverOf(fromCell),
      target: driverOf(toCell),
      pauseMaxMs: this.#isHealed || this.#random.chance(0.7) ? 30_000 : this.#random.int(0, 500),
      onProgress: (progress) => {
        if ('step' in progress) world.note(`${about}: ${progress.step}`);
      },
    };
    let lease: MoveLease | undefined;
    /** Takes the lease of the move. */
    const take = async (): Promise<MoveProjectOptions> => {
      const { directory: moves, mover, source, target } = options;
      lease = await MoveLease.take(moves, new SteadyClock(clock), projectId, mover);
      return { ...options, source: lease.guard(source), target: lease.guard(target) };
    };
    try {
      await Promise.race([work(options, take), clock.death]);
      world.note(`${about} is done`);
    } catch (error) {
      world.note(`${about} ended: ${String(error)}`);
      if (error instanceof ProcessDied) world.countOne('movesKilled');
      else if (error instanceof MoveRefused) world.countOne('movesRefused');
      else if (error instanceof StoreUnavailable) world.countOne('movesFailed');
      else world.violate('P11', `${about} failed: ${String(error)}`);
    } finally {
      move.toMs = world.clock.elapsedMs;
      await Promise.race([lease?.stopRenewal(), clock.death]).catch(() => {});
    }
  }

  #freezeForAWhile(clock: ProcessClock, about: string): void {
    const world = this.#world;
    world.clock.startTimer(this.#random.int(0, 3_000), () => {
      world.note(`${about} is stopped`);
      clock.freeze();
      world.clock.startTimer(this.#random.int(1_000, 20_000), () => {
        world.note(`${about} goes on`);
        clock.thaw();
      });
    });
  }

  #newProcess(): { clock: ProcessClock; driverOf: (cellId: CellId) => Driver } {
    const world = this.#world;
    const clock = new ProcessClock(world.clock);
    const drivers: FaultyDriver[] = world.databases.map(
      (database) =>
        new FaultyDriver({
          inner: database.driver,
          clock: world.clock,
          awake: () => clock.awake(),
          nextFaults: () => {
            const random = this.#random;
            const { crash, lostAnswer, commitMsMax } = this.#isHealed ? HEALED : this.#faults;
            return {
              commitMs: random.int(0, commitMsMax),
              responseMs: 0,
              unavailable: world.isReadOnly(database),
              losesResponse: random.chance(lostAnswer),
              crash: random.chance(crash) ? random.choose(['before', 'inside', 'after commit'] as const) : 'none',
              crashAtStatement: random.int(1, 8),
            };
          },
          isUnreachable: () => world.isAway(database),
          readMs: () => this.#random.int(0, READ_MS_MAX),
          crash: () => {
            for (const driver of drivers) driver.die();
            clock.die();
          },
        }),
    );
    return { clock, driverOf: (cellId) => drivers[cellId - 1] as Driver };
  }
}

interface MoveRoute {
  fromCell: CellId;
  toCell: CellId;
}
