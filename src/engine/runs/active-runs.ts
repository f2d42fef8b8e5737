/**
 * A cache of the runs that this worker has used recently. The steps of a run follow each other closely, and the trigger's
 * configuration never changes, so reading a run again is mostly unnecessary. A cached run may be outdated, which is safe:
 * the transaction that relies on the run checks the version and the state of the run.
 */
import type { Store } from '../../store/store.ts';
import type { Run } from '../../workflow/model.ts';
import { LeastRecent } from '../least-recent.ts';
import type { ProjectId } from '../model.ts';

const RUNS_MAX = 2_000;

export class ActiveRuns {
  readonly #store: { runs: Pick<Store['runs'], 'findActiveRun'> };
  readonly #runs = new LeastRecent<Run>(RUNS_MAX);

  constructor(store: { runs: Pick<Store['runs'], 'findActiveRun'> }) {
    this.#store = store;
  }

  /** `isFresh`: whether this call has read the run from the store. */
  async find(projectId: ProjectId, id: string): Promise<{ run: Run | undefined; isFresh: boolean }> {
    const cached = this.#runs.get(cacheKeyOf(projectId, id));
    return cached ? { run: cached, isFresh: false } : { run: await this.read(projectId, id), isFresh: true };
  }

  /** Reads the run from the store, even if the run is cached. */
  async read(projectId: ProjectId, id: string): Promise<Run | undefined> {
    const run = await this.#store.runs.findActiveRun({ projectId, id });
    if (run) this.#runs.set(cacheKeyOf(projectId, id), run);
    else this.forget(projectId, id);
    return run;
  }

  note(run: Run): void {
    this.#runs.set(cacheKeyOf(run.projectId, run.id), run);
  }

  forget(projectId: ProjectId, id: string): void {
    this.#runs.delete(cacheKeyOf(projectId, id));
  }
}

function cacheKeyOf(projectId: ProjectId, id: string): string {
  return `${projectId} ${id}`;
}

/** Whether `run` was created at `createdAtMs`. Senders that do not know the creation time omit it or send 0. */
export function wasCreatedAt(run: Run, createdAtMs: number | undefined): boolean {
  return !createdAtMs || run.createdAtMs === createdAtMs;
}
