/**
 * Has projects served again whose move has stopped in its pause, because its command was killed or its machine is gone: the worker
 * that notices takes the move over as another command would, and ends the pause. The rest waits for the next command.
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
import { GONE_AFTER_MS, RELEASED_MS } from '../move/move-lease.ts';
import { endPause } from '../move/move-project.ts';

/** The first cell has the directory. */
type MovesContext = {
  first: Pick<EngineDeps, 'worker' | 'log'> & {
    store: Pick<Store, 'moves'>;
    clock: Pick<Clock, 'wallMs' | 'elapsedMs'>;
  };
  accounts: Pick<StoredAccounts, 'nameOf'>;
};

interface SeenMove extends Pick<ProjectMove, 'mover' | 'seenAtMs'> {
  /** Since when the command has said no more, as `elapsedMs` counts here: clocks of machines differ. */
  sinceMs: Millis;
}

export class PausedMoves {
  readonly #context: MovesContext;
  readonly #openDriver: (cellId: CellId) => Driver;
  #seen = new Map<ProjectId, SeenMove>();
  #checking: Promise<void> | undefined;
  #ended = 0;

  /** `openDriver`: a short connection to a cell. */
  constructor(context: MovesContext, openDriver: (cellId: CellId) => Driver) {
    this.#context = context;
    this.#openDriver = openDriver;
  }

  /** Checks all moves. To be called every few seconds, by one worker of all. */
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
      if (move.seenAtMs === RELEASED_MS) continue;
      const { projectId, mover, seenAtMs } = move;
      const earlier = before.get(projectId);
      const isSame = earlier?.mover === mover && earlier.seenAtMs === seenAtMs;
      const seen = isSame ? earlier : { mover, seenAtMs, sinceMs: clock.elapsedMs };
      this.#seen.set(projectId, seen);
      if (clock.elapsedMs - seen.sinceMs > GONE_AFTER_MS) await this.#end(move);
    }
  }

  /** A later check tries again if it fails. */
  async #end({ projectId, fromCell, toCell, seenAtMs }: ProjectMove): Promise<void> {
    const { first, accounts } = this.#context;
    const { worker, clock, log } = first;
    const { moves } = first.store;
    const project = accounts.nameOf(projectId);
    this.#ended += 1;
    const mover = `${worker} ${this.#ended}`; // one that is new, as each command has
    // A command that has renewed its lease since then keeps it.
    const taken = { projectId, mover, nowMs: clock.wallMs(), goneBeforeMs: seenAtMs + 1 };
    if (!(await moves.keepMove(taken))) return;
    const [source, target] = [this.#openDriver(fromCell), this.#openDriver(toCell)];
    try {
      await endPause({ projectId, fromCell, toCell, mover, directory: moves, source, target });
      await moves.keepMove({ projectId, mover, nowMs: RELEASED_MS });
      log.warn('move_stopped', { project });
    } catch (error) {
      if (error instanceof MoveRefused) return;
      log.warn('move_not_resumed', { project, reason: messageOf(error) });
    } finally {
      await Promise.all([source.close(), target.close()]);
    }
  }
}
