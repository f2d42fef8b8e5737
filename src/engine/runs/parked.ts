/** Has parked runs attempted at once: code that fits their journals may have been deployed (contract K 7.5). */
import type { Store } from '../../store/store.ts';
import type { RunKey } from '../../workflow/model.ts';
import type { ProjectId } from '../model.ts';
import type { Clock } from '../ports.ts';

/** Messages made due at a time, each in a small transaction. */
const TOGETHER = 100;

interface ParkedDeps {
  store: { runs: Pick<Store['runs'], 'findActiveRun' | 'findParked'>; messages: Pick<Store['messages'], 'makeDue'> };
  clock: Clock;
}

export interface ParkedRunCommands {
  /** Whether the run was parked; `undefined`: no such run is active. */
  resumeParkedRun(projectId: ProjectId, runId: string): Promise<boolean | undefined>;
  /** Returns how many runs were parked. */
  resumeParkedRuns(projectId: ProjectId): Promise<number>;
}

export class ParkedRuns implements ParkedRunCommands {
  readonly #deps: ParkedDeps;

  constructor(deps: ParkedDeps) {
    this.#deps = deps;
  }

  async resumeParkedRun(projectId: ProjectId, runId: string): Promise<boolean | undefined> {
    const run = await this.#deps.store.runs.findActiveRun({ projectId, id: runId });
    return run && (await this.#resume(projectId, run.key)) > 0;
  }

  resumeParkedRuns(projectId: ProjectId): Promise<number> {
    return this.#resume(projectId);
  }

  async #resume(projectId: ProjectId, runKey?: RunKey): Promise<number> {
    const { store, clock } = this.#deps;
    let resumed = 0;
    let latest = -1;
    for (let after = { runKey: -1, key: -1 }; ; ) {
      const found = await store.runs.findParked({ projectId, runKey, after, limit: TOGETHER });
      const made = await Promise.all(
        found.map(({ id }) => store.messages.makeDue({ projectId, id, nowMs: clock.nowMs() })),
      );
      for (const [index, message] of found.entries()) {
        if (made[index] === 'due' && message.runKey !== latest) {
          latest = message.runKey;
          resumed += 1;
        }
        after = message;
      }
      if (found.length < TOGETHER) return resumed;
    }
  }
}
