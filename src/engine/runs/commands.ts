/** What clients do with runs that exist: end them and read their journals. */
import type { EndState, JournalEntry } from '../../workflow/model.ts';
import type { FollowUp, Millis, NewMessage, ProjectId, RunEnding } from '../model.ts';
import { type Places, setGoing } from '../placement.ts';
import type { Clock } from '../ports.ts';
import type { ActiveRun, RunCommands as RunCommandsOfEngine } from '../run-commands.ts';
import type { EndedAs, RunStore } from '../run-stores.ts';
import type { ActiveRuns } from './active-runs.ts';
import { endingOf } from './endings.ts';
import type { JournalBodies } from './journal-bodies.ts';
import { isOf } from './publish.ts';

export interface RunCommandDeps {
  store: RunStore;
  clock: Clock;
  active: ActiveRuns;
  bodies: JournalBodies;
  places: Places;
  /** Gives each a key, an id and a place. */
  placeFollowUps(follows: FollowUp[]): Promise<NewMessage[]>;
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

  journalBytes(projectId: ProjectId, runId: string): Promise<number | undefined> {
    return this.#deps.store.journalBytes(projectId, runId);
  }

  async readJournal(projectId: ProjectId, runId: string): Promise<JournalEntry[] | undefined> {
    const { store, active } = this.#deps;
    const run = await active.read(projectId, runId);
    return run && store.readJournal(run.key);
  }

  /** False when no such run is active. */
  async #end(
    projectId: ProjectId,
    wanted: { id: string; createdAtMs: Millis | undefined },
    state: EndState,
    response?: Uint8Array,
  ): Promise<boolean> {
    const { store, clock, active, bodies, placeFollowUps } = this.#deps;
    while (true) {
      const { run, isFresh } = await active.find(projectId, wanted.id);
      if (!run || !isOf(run, wanted.createdAtMs)) {
        if (isFresh) return false;
        active.forget(projectId, wanted.id);
        continue;
      }
      const atMs = clock.nowMs();
      const { ending, follows } = await endingOf(store, run, { state, atMs, ...(response?.length && { response }) });
      const news = follows.length === 0 ? [] : await placeFollowUps(follows);
      const saved = await this.#save({ ending, follows: news }, atMs);
      active.forget(projectId, wanted.id);
      if (saved?.kind === 'ended') {
        bodies.forget(run.key);
        return true;
      }
      // What was read just now ended before we could end it.
      if (saved?.kind === 'over' && isFresh) return false;
    }
  }

  /** Sets going what follows, or gives its places back. */
  async #save(end: { ending: RunEnding; follows: NewMessage[] }, nowMs: Millis): Promise<EndedAs | undefined> {
    const { store, places } = this.#deps;
    let saved: EndedAs | undefined;
    try {
      [saved] = await store.endRuns([end], nowMs);
      return saved;
    } finally {
      end.follows.forEach((entry, index) => {
        setGoing(entry, saved?.kind === 'ended' ? saved.follows[index] : undefined, places);
      });
    }
  }
}
