/** Which of the projects that live in a cell by the directory has its store been told of? */
import type { Project } from '../../engine/accounts/store.ts';
import type { ProjectId } from '../../engine/model.ts';
import type { Store } from '../../store/store.ts';

export class Adoptions {
  readonly #known = new Set<ProjectId>();
  readonly #untold = new Map<ProjectId, Project>();
  #telling: Promise<void> | undefined;

  add(projects: readonly Project[]): void {
    for (const project of projects) {
      if (!this.#known.has(project.projectId)) this.#untold.set(project.projectId, project);
    }
  }

  /** Resolves when `store` knows all that were added. Throws `StoreUnavailable`. */
  tell(store: Store): Promise<void> {
    this.#telling ??= this.#tell(store).finally(() => {
      this.#telling = undefined;
    });
    return this.#telling;
  }

  async #tell(store: Store): Promise<void> {
    while (this.#untold.size > 0) {
      const projects = [...this.#untold.values()];
      await store.cells.adoptProjects({ projects });
      for (const { projectId } of projects) {
        this.#known.add(projectId);
        this.#untold.delete(projectId);
      }
    }
  }
}
