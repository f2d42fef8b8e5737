/** What clients do with active runs: end them and read their journals. */
import type { Store } from '../../store/store.ts';
import type { EndState, JournalEntry, RunKey } from '../../workflow/model.ts';
import type { Millis, ProjectId } from '../model.ts';
import { STALE, untilCurrent } from '../until-current.ts';
import { type EndingDeps, endRuns } from './endings.ts';
import { isOf } from './publish.ts';
import type { ActiveRun, RunCommands, WhichRun } from './run-commands.ts';

export interface RunCommandDeps extends EndingDeps {
  store: { runs: Store['runs'] };
}

export class ActiveRunCommands implements RunCommands {
  readonly #deps: RunCommandDeps;

  constructor(deps: RunCommandDeps) {
    this.#deps = deps;
  }

  async findActiveRun(projectId: ProjectId, runId: string): Promise<ActiveRun | undefined> {
    const { run } = await this.#deps.active.find(projectId, runId);
    return run && { hidesBodies: run.config.redact?.body ?? false };
  }

  async completeRun(projectId: ProjectId, runId: string, response: Uint8Array, createdAtMs?: Millis): Promise<void> {
    await this.#end(projectId, runId, { createdAtMs }, 'RUN_SUCCESS', response);
  }

  cancelRun(projectId: ProjectId, runId: string, which: WhichRun = {}): Promise<boolean> {
    return this.#end(projectId, runId, which, 'RUN_CANCELED');
  }

  async readJournal(projectId: ProjectId, runId: string, runKey?: RunKey): Promise<JournalEntry[] | undefined> {
    const { store, active } = this.#deps;
    const run = await active.read(projectId, runId);
    return run && (runKey ?? run.key) === run.key ? store.runs.readJournal({ projectId, runKey: run.key }) : undefined;
  }

  /** False when no such run is active. */
  async #end(
    projectId: ProjectId,
    runId: string,
    { createdAtMs, runKey }: WhichRun,
    state: Exclude<EndState, 'RUN_FAILED'>,
    response?: Uint8Array,
  ): Promise<boolean> {
    const { active } = this.#deps;
    return untilCurrent('the workflow run', async () => {
      const { run, isFresh } = await active.find(projectId, runId);
      const [as = 'over'] =
        run && isOf(run, createdAtMs) && (runKey ?? run.key) === run.key
          ? await endRuns([run], { state, ...(response?.length && { response }) }, this.#deps)
          : [];
      if (as === 'ended') return true;
      active.forget(projectId, runId);
      return as === 'over' && isFresh ? false : STALE;
    });
  }
}
