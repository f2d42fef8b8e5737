/** What ends attempts before their endpoints answer: the time limit of the shutdown, and that others may own their messages. */
import type { ProjectId } from '../model.ts';

/** Attempts of one project that are ended together. */
export interface AttemptsTogether {
  readonly projectId: ProjectId;
  readonly abort: AbortController;
  count: number;
}

export class AttemptEnds {
  readonly #limit = new AbortController();
  /** Those that the next attempt of a project joins. It goes with its last attempt, or when it is ended. */
  readonly #byProject = new Map<ProjectId, AttemptsTogether>();

  /** Aborts when the time limit of the shutdown has passed. */
  get limit(): AbortSignal {
    return this.#limit.signal;
  }

  /** An attempt begins, until `leave` is called with the answer. */
  enter(projectId: ProjectId): AttemptsTogether {
    let together = this.#byProject.get(projectId);
    if (together === undefined) {
      together = { projectId, abort: this.#limit.signal.aborted ? this.#limit : new AbortController(), count: 0 };
      this.#byProject.set(projectId, together);
    }
    together.count += 1;
    return together;
  }

  leave(together: AttemptsTogether): void {
    together.count -= 1;
    if (together.count === 0 && this.#byProject.get(together.projectId) === together)
      this.#byProject.delete(together.projectId);
  }

  /** Ends the attempts in flight, of all projects or of one. Those that begin later are not ended with them. */
  interrupt(projectId?: ProjectId): void {
    for (const each of projectId === undefined ? [...this.#byProject.keys()] : [projectId]) {
      const together = this.#byProject.get(each);
      this.#byProject.delete(each);
      together?.abort.abort();
    }
  }

  /** The time limit of the shutdown has passed: ends the attempts in flight, and those that begin later. */
  passLimit(): void {
    this.#limit.abort();
    this.interrupt();
  }
}
