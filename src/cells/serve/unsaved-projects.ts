/** Keeps the projects that the directory has assigned to a cell until they are saved in the cell's store. */
import type { Project } from '../../engine/accounts/store.ts';
import type { ProjectId } from '../../engine/model.ts';
import type { Store } from '../../store/store.ts';

export class UnsavedProjects {
  readonly #known = new Set<ProjectId>();
  readonly #unsaved = new Map<ProjectId, Project>();
  #saving: Promise<void> | undefined;

  add(projects: readonly Project[]): void {
    for (const project of projects) {
      if (!this.#known.has(project.projectId)) this.#unsaved.set(project.projectId, project);
    }
  }

  /** Resolves when `store` knows all added projects. Throws `StoreUnavailable`. */
  save(store: Store): Promise<void> {
    this.#saving ??= this.#saveAll(store).finally(() => {
      this.#saving = undefined;
    });
    return this.#saving;
  }

  async #saveAll(store: Store): Promise<void> {
    while (this.#unsaved.size > 0) {
      const projects = [...this.#unsaved.values()];
      await store.cells.adoptProjects({ projects });
      for (const { projectId } of projects) {
        this.#known.add(projectId);
        this.#unsaved.delete(projectId);
      }
    }
  }
}
