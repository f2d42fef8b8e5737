/** What clients do with runs that exist: end them and read their journals. */
import type { EndState, JournalEntry } from '../../workflow/model.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { Clock } from '../ports.ts';
import type { Reports } from '../reports.ts';
import type { ActiveRun, RunCommands as RunCommandsOfEngine } from '../run-commands.ts';
import type { RunStore } from '../run-stores.ts';
import type { ActiveRuns } from './active-runs.ts';
import { type EndingDeps, endingOf, saveEndings } from './endings.ts';
import type { JournalBodies } from './journal-bodies.ts';
import { isOf } from './publish.ts';

export interface RunCommandDeps extends EndingDeps {
  store: { runs: RunStore };
  clock: Clock;
  active: ActiveRuns;
  bodies: JournalBodies;
  reports: Reports;
}

export class RunCommands implements RunCommandsOfEngine {
  readonly #deps: RunCommandDeps;

  constructor(deps: RunCommandDeps) {
    this.#deps = deps;
  }

  async findActiveRun(projectId: ProjectId, runId: string): Promise<ActiveRun | undefined> {
    const { run } = await this.#deps.active.find(projectId, runId);
    return run && { hidesBodies: run.config.redact?.body ?? false };
  }

  async completeRun(projectId: ProjectId, runId: string, response: Uint8Array, createdAtMs?: Millis): Promise<void> {
    await this.#end(projectId, { id: runId, createdAtMs }, 'RUN_SUCCESS', response);
  }

  cancelRun(projectId: ProjectId, runId: string, createdAtMs?: Millis): Promise<boolean> {
    return this.#end(projectId, { id: runId, createdAtMs }, 'RUN_CANCELED');
  }

  async readJournal(projectId: ProjectId, runId: string): Promise<JournalEntry[] | undefined> {
    const { store, active } = this.#deps;
    const run = await active.read(projectId, runId);
    return run && store.runs.readJournal(run.key);
  }

  /** False when no such run is active. */
  async #end(
    projectId: ProjectId,
    wanted: { id: string; createdAtMs: Millis | undefined },
    state: Exclude<EndState, 'RUN_FAILED'>,
    response?: Uint8Array,
  ): Promise<boolean> {
    const { store, clock, active, bodies, reports } = this.#deps;
    while (true) {
      const { run, isFresh } = await active.find(projectId, wanted.id);
      if (!run || !isOf(run, wanted.createdAtMs)) {
        if (isFresh) return false;
        active.forget(projectId, wanted.id);
        continue;
      }
      const atMs = clock.nowMs();
      const end = await endingOf(store, run, { state, atMs, ...(response?.length && { response }) });
      const [saved] = await saveEndings([end], atMs, this.#deps);
      active.forget(projectId, wanted.id);
      if (saved?.kind === 'ended') {
        bodies.forget(run.key);
        reports.runEnded({ id: run.id, url: run.url, state });
        return true;
      }
      // What was read just now ended before we could end it.
      if (saved?.kind === 'over' && isFresh) return false;
    }
  }
}
