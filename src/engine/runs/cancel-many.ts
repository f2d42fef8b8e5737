/** Cancels many runs, each with what follows for its parents, in pieces that do not stall the store (contract W 17.2). */
import type { Store } from '../../store/store.ts';
import type { Run, RunKey } from '../../workflow/model.ts';
import type { ProjectId } from '../model.ts';
import { STALE, untilCurrent } from '../until-current.ts';
import type { ActiveRunFilter, DeadRunCommands } from './dead-run-store.ts';
import { type EndingDeps, endRuns } from './endings.ts';

/** Runs looked for at a time. */
const LOOKED_FOR = 500;
/** Runs ended in one transaction: about a millisecond of work, for which publishes wait. */
const ENDED_TOGETHER = 20;

export interface CancelDeps extends EndingDeps {
  store: { runs: Store['runs']; deadRuns: Pick<Store['deadRuns'], 'activeRunKeys'> };
}

export class RunCanceller implements Pick<DeadRunCommands, 'cancelRuns' | 'cancelRunsMatching'> {
  readonly #deps: CancelDeps;

  constructor(deps: CancelDeps) {
    this.#deps = deps;
  }

  async cancelRuns(projectId: ProjectId, runIds: string[]): Promise<number> {
    const { store } = this.#deps;
    return this.#cancelAll(runIds, (id) => store.runs.findActiveRun({ projectId, id }));
  }

  async cancelRunsMatching(projectId: ProjectId, filter: ActiveRunFilter, count = Infinity): Promise<number> {
    const { store } = this.#deps;
    let cancelled = 0;
    let afterKey: RunKey | undefined = -1;
    while (afterKey !== undefined && cancelled < count) {
      const page = { afterKey, limit: Math.min(LOOKED_FOR, count - cancelled) };
      const found: Awaited<ReturnType<Store['deadRuns']['activeRunKeys']>> = await store.deadRuns.activeRunKeys({
        projectId,
        filter,
        ...page,
      });
      cancelled += await this.#cancelAll(found.keys, (key) => store.runs.findRun({ projectId, key }));
      afterKey = found.nextAfterKey;
    }
    return cancelled;
  }

  /** Returns how many runs this call has ended. */
  async #cancelAll<Name>(names: readonly Name[], find: (name: Name) => Promise<Run | undefined>): Promise<number> {
    let cancelled = 0;
    for (let at = 0; at < names.length; at += ENDED_TOGETHER) {
      let piece = names.slice(at, at + ENDED_TOGETHER);
      await untilCurrent('a workflow run', async () => {
        const found: { name: Name; run: Run }[] = [];
        for (const name of piece) {
          const run = await find(name);
          if (run?.state === 'RUN_STARTED') found.push({ name, run });
        }
        if (found.length === 0) return;
        const runs = found.map(({ run }) => run);
        const ended = await endRuns(runs, { state: 'RUN_CANCELED' }, this.#deps);
        cancelled += ended.filter((as) => as === 'ended').length;
        piece = found.filter((_, index) => ended[index] === 'changed').map(({ name }) => name);
        return piece.length > 0 ? STALE : undefined;
      });
    }
    return cancelled;
  }
}
