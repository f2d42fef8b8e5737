/**
 * Has projects served again whose move has stopped in its pause, because its command was killed or its machine is gone: the worker
 * that notices takes the move over as another command would, and ends the pause. The rest waits for the next command.
 */

import { messageOf } from '../../admin/open-store.ts';
import type { ProjectMove } from '../../engine/accounts/store.ts';
import type { CellId, Millis, ProjectId, WorkerId } from '../../engine/model.ts';
import type { Clock, EventLog } from '../../engine/ports.ts';
import type { Driver } from '../../store/driver.ts';
import { MoveRefused } from '../../store/move/progress.ts';
import type { Store } from '../../store/store.ts';
import { GONE_AFTER_MS, LET_GO_MS } from '../move/held-move.ts';
import { endPause } from '../move/move-project.ts';

export interface PausedMovesOptions {
  /** In the directory. */
  moves: Store['moves'];
  worker: WorkerId;
  /** A connection to a cell, for a moment. */
  openDriver: (cellId: CellId) => Driver;
  /** Of a project, for the log. */
  nameOf: (projectId: ProjectId) => string;
  clock: Pick<Clock, 'wallMs' | 'elapsedMs'>;
  log: EventLog;
}

interface Seen extends Pick<ProjectMove, 'mover' | 'seenAtMs'> {
  /** Since when the command has said no more, as `elapsedMs` counts here: clocks of machines differ. */
  sinceMs: Millis;
}

export class PausedMoves {
  readonly #options: PausedMovesOptions;
  #seen = new Map<ProjectId, Seen>();
  #looking: Promise<void> | undefined;
  #ended = 0;

  constructor(options: PausedMovesOptions) {
    this.#options = options;
  }

  /** Looks at all moves. To be called every few seconds, by one of all workers. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((error: unknown) => this.#options.log.warn('moves_not_read', { reason: messageOf(error) }))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { moves, clock } = this.#options;
    const before = this.#seen;
    this.#seen = new Map();
    for (const move of await moves.listMoves()) {
      if (move.seenAtMs === LET_GO_MS) continue;
      const { projectId, mover, seenAtMs } = move;
      const earlier = before.get(projectId);
      const isSame = earlier?.mover === mover && earlier.seenAtMs === seenAtMs;
      const seen = isSame ? earlier : { mover, seenAtMs, sinceMs: clock.elapsedMs };
      this.#seen.set(projectId, seen);
      if (clock.elapsedMs - seen.sinceMs > GONE_AFTER_MS) await this.#end(move);
    }
  }

  /** Once more at a later look if it fails. */
  async #end({ projectId, fromCell, toCell, seenAtMs }: ProjectMove): Promise<void> {
    const { moves, worker, openDriver, nameOf, clock, log } = this.#options;
    this.#ended += 1;
    const mover = `${worker} ${this.#ended}`; // one that is new, as each command has
    // Whoever has said something meanwhile keeps it.
    const taken = { projectId, mover, nowMs: clock.wallMs(), goneBeforeMs: seenAtMs + 1 };
    if (!(await moves.keepMove(taken))) return;
    const [source, target] = [openDriver(fromCell), openDriver(toCell)];
    try {
      await endPause({ projectId, fromCell, toCell, mover, directory: moves, source, target });
      await moves.keepMove({ projectId, mover, nowMs: LET_GO_MS });
      log.warn('move_stopped', { project: nameOf(projectId) });
    } catch (error) {
      if (error instanceof MoveRefused) return;
      log.warn('move_not_resumed', { project: nameOf(projectId), reason: messageOf(error) });
    } finally {
      await Promise.all([source.close(), target.close()]);
    }
  }
}
