/**
 * Resumes projects that a move has left paused because the command of the move was killed or its machine was lost. The
 * worker that notices this takes over the move as another command would, and ends the pause. The next command continues
 * the move.
 */

import type { StoredAccounts } from '../../accounts/accounts.ts';
import { messageOf } from '../../admin/open-store.ts';
import type { ProjectMove } from '../../engine/accounts/store.ts';
import type { EngineDeps } from '../../engine/deps.ts';
import type { CellId, Millis, ProjectId } from '../../engine/model.ts';
import type { Clock } from '../../engine/ports.ts';
import type { Driver } from '../../store/driver.ts';
import { MoveRefused } from '../../store/move/progress.ts';
import type { Store } from '../../store/store.ts';
import { LEASE_MS, RELEASED_MS } from '../move/move-lease.ts';
import { endPause } from '../move/move-project.ts';

/** The first cell has the directory. */
type MovesContext = {
  first: Pick<EngineDeps, 'worker' | 'log'> & {
    store: Pick<Store, 'moves'>;
    clock: Pick<Clock, 'wallMs' | 'elapsedMs'>;
  };
  accounts: Pick<StoredAccounts, 'nameOf'>;
};

interface SeenMove extends Pick<ProjectMove, 'mover' | 'renewedAtMs'> {
  /**
   * When this worker first saw this state of the move, as elapsed time of this worker, since the clocks of machines
   * differ.
   */
  sinceMs: Millis;
}

export class PausedMoves {
  readonly #context: MovesContext;
  readonly #openDriver: (cellId: CellId) => Driver;
  #seen = new Map<ProjectId, SeenMove>();
  #checking: Promise<void> | undefined;
  #ended = 0;

  /** `openDriver`: opens a short connection to a cell. */
  constructor(context: MovesContext, openDriver: (cellId: CellId) => Driver) {
    this.#context = context;
    this.#openDriver = openDriver;
  }

  /** Checks all moves. Only one of the workers calls this, every few seconds. */
  check(): Promise<void> {
    this.#checking ??= this.#check()
      .catch((error: unknown) => this.#context.first.log.warn('moves_not_read', { reason: messageOf(error) }))
      .finally(() => {
        this.#checking = undefined;
      });
    return this.#checking;
  }

  async #check(): Promise<void> {
    const { store, clock } = this.#context.first;
    const before = this.#seen;
    this.#seen = new Map();
    for (const move of await store.moves.listMoves()) {
      if (move.renewedAtMs === RELEASED_MS) continue;
      const { projectId, mover, renewedAtMs } = move;
      const earlier = before.get(projectId);
      const isSame = earlier?.mover === mover && earlier.renewedAtMs === renewedAtMs;
      const seen = isSame ? earlier : { mover, renewedAtMs, sinceMs: clock.elapsedMs };
      this.#seen.set(projectId, seen);
      if (clock.elapsedMs - seen.sinceMs > LEASE_MS) await this.#endPauseOf(move);
    }
  }

  /** Ends the pause of a move. After an error, a later check tries again. */
  async #endPauseOf({ projectId, fromCell, toCell, renewedAtMs }: ProjectMove): Promise<void> {
    const { first, accounts } = this.#context;
    const { worker, clock, log } = first;
    const { moves } = first.store;
    const project = accounts.nameOf(projectId);
    this.#ended += 1;
    const mover = `${worker} ${this.#ended}`; // unique, like the mover of each command
    // A command that has renewed its lease since `renewedAtMs` keeps the lease.
    const takeover = { projectId, mover, nowMs: clock.wallMs(), expiredBeforeMs: renewedAtMs + 1 };
    if (!(await moves.renewMove(takeover))) return;
    const [source, target] = [this.#openDriver(fromCell), this.#openDriver(toCell)];
    try {
      await endPause({ projectId, fromCell, toCell, mover, directory: moves, source, target });
      await moves.renewMove({ projectId, mover, nowMs: RELEASED_MS });
      log.warn('move_stopped', { project });
    } catch (error) {
      if (error instanceof MoveRefused) return;
      log.warn('move_not_resumed', { project, reason: messageOf(error) });
    } finally {
      await Promise.all([source.close(), target.close()]);
    }
  }
}
