/** Cancels many runs, each with what follows for its parents, in pieces that do not stall the store (contract W 17.2). */
import type { Run, RunKey } from '../../workflow/model.ts';
import type { ActiveRunFilter, DeadRunCommands, DeadRunStore } from '../dead-runs.ts';
import type { ProjectId } from '../model.ts';
import type { RunStore } from '../run-stores.ts';
import type { RunCommandDeps } from './commands.ts';
import { type Ending, endingOf, saveEndings } from './endings.ts';

/** Runs looked for at a time. */
const LOOKED_FOR = 500;
/** Runs ended in one transaction: about a millisecond of work, publishes wait for no more. */
const ENDED_TOGETHER = 20;

export interface CancelDeps extends RunCommandDeps {
  store: { runs: RunStore; deadRuns: Pick<DeadRunStore, 'activeRunKeys'> };
}

export class RunCanceller implements Pick<DeadRunCommands, 'cancelRuns' | 'cancelRunsMatching'> {
  readonly #deps: CancelDeps;

  constructor(deps: CancelDeps) {
    this.#deps = deps;
  }

  async cancelRuns(projectId: ProjectId, runIds: string[]): Promise<number> {
    const { store } = this.#deps;
    return this.#cancelAll(runIds, (id) => store.runs.findActiveRun(projectId, id));
  }

  async cancelRunsMatching(projectId: ProjectId, filter: ActiveRunFilter, count = Infinity): Promise<number> {
    const { store } = this.#deps;
    let cancelled = 0;
    let afterKey: RunKey | undefined = -1;
    while (afterKey !== undefined && cancelled < count) {
      const page = { afterKey, limit: Math.min(LOOKED_FOR, count - cancelled) };
      const found: Awaited<ReturnType<DeadRunStore['activeRunKeys']>> = await store.deadRuns.activeRunKeys(
        projectId,
        filter,
        page,
      );
      cancelled += await this.#cancelAll(found.keys, (key) => store.runs.findRun(projectId, key));
      afterKey = found.nextAfterKey;
    }
    return cancelled;
  }

  /** How many of them this call has ended. */
  async #cancelAll<Name>(names: readonly Name[], find: (name: Name) => Promise<Run | undefined>): Promise<number> {
    let cancelled = 0;
    for (let at = 0; at < names.length; at += ENDED_TOGETHER) {
      let piece = names.slice(at, at + ENDED_TOGETHER);
      while (piece.length > 0) {
        const { ended, changed } = await this.#cancelPiece(piece, find);
        cancelled += ended;
        piece = changed;
      }
    }
    return cancelled;
  }

  /** `changed`: those that are to be read again. */
  async #cancelPiece<Name>(
    names: readonly Name[],
    find: (name: Name) => Promise<Run | undefined>,
  ): Promise<{ ended: number; changed: Name[] }> {
    const { store, clock, active, bodies, reports } = this.#deps;
    const atMs = clock.nowMs();
    const found: (Ending & { name: Name; run: Run })[] = [];
    for (const name of names) {
      const run = await find(name);
      if (run?.state !== 'RUN_STARTED') continue;
      found.push({ name, run, ...(await endingOf(store, run, { state: 'RUN_CANCELED', atMs })) });
    }
    if (found.length === 0) return { ended: 0, changed: [] };
    const saved = await saveEndings(found, atMs, this.#deps);
    let ended = 0;
    const changed: Name[] = [];
    for (const [index, { name, run }] of found.entries()) {
      active.forget(run.projectId, run.id);
      const kind = saved[index]?.kind;
      if (kind === 'ended') {
        bodies.forget(run.key);
        reports.runEnded({ id: run.id, url: run.url, state: 'RUN_CANCELED' });
        ended += 1;
      } else if (kind === 'changed') {
        changed.push(name);
      }
    }
    return { ended, changed };
  }
}
