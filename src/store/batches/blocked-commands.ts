/**
 * Keeps the commands whose project another worker has locked for long, because that worker was stopped or cut off.
 *
 * Commands wait here by project, so that batches with other projects continue. From time to time the first command of each
 * project is put into a batch as a scout. When the scout is no longer blocked, the other commands of its project follow.
 */
import type { ProjectId } from '../../engine/model.ts';

interface BlockedProject<T> {
  waiting: T[];
  scout: T | undefined;
  /** How many scouts in a row came back blocked. */
  scoutsBlocked: number;
}

/** Pure: the caller says when a pause is over. */
export class BlockedCommands<T> {
  readonly #projects = new Map<ProjectId, BlockedProject<T>>();
  readonly #scoutsMax: number;

  /** The commands of a project are refused after `scoutsMax` of its scouts came back blocked. */
  constructor(scoutsMax: number) {
    this.#scoutsMax = scoutsMax;
  }

  /** Number of projects with blocked commands. */
  get length(): number {
    return this.#projects.size;
  }

  /** Number of waiting commands, without the scouts. */
  get waiting(): number {
    return [...this.#projects.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** Whether this project is suspected to be locked for long. */
  has(projectId: ProjectId): boolean {
    return this.#projects.has(projectId);
  }

  /** `entry` was blocked by `projectId`. A command of several projects may be blocked by one after another. */
  add(entry: T, projectId: ProjectId): void {
    this.#noteScoutBlocked(entry, projectId);
    const project = this.#projects.get(projectId);
    if (project) project.waiting.push(entry);
    else this.#projects.set(projectId, { waiting: [entry], scout: undefined, scoutsBlocked: 0 });
  }

  /** `entry` has a result. If it was a scout, this removes its project and returns the commands that waited behind it. */
  noteUnblocked(entry: T): T[] {
    const [projectId, project] = this.#projectOfScout(entry) ?? [];
    if (projectId === undefined || project === undefined) return [];
    this.#projects.delete(projectId);
    return project.waiting;
  }

  /** Returns the scouts to send after a pause, and the commands that have waited too long. */
  takeScouts(): { scouts: T[]; givenUp: T[] } {
    const scouts: T[] = [];
    const givenUp: T[] = [];
    for (const [projectId, project] of this.#projects) {
      if (project.scout !== undefined) continue; // it is under way
      if (project.scoutsBlocked >= this.#scoutsMax) {
        this.#projects.delete(projectId);
        givenUp.push(...project.waiting);
      } else {
        project.scout = project.waiting.shift();
        if (project.scout === undefined) this.#projects.delete(projectId);
        else scouts.push(project.scout);
      }
    }
    return { scouts, givenUp };
  }

  /** Removes and returns all waiting commands. Scouts are under way and get their own results. */
  takeAll(): T[] {
    const all = [...this.#projects.values()].flatMap(({ waiting }) => waiting);
    this.#projects.clear();
    return all;
  }

  /** If `entry` was a scout: counts it when its own project still blocks it, and starts again when only another one does. */
  #noteScoutBlocked(entry: T, projectId: ProjectId): void {
    const [scoutedId, project] = this.#projectOfScout(entry) ?? [];
    if (!project) return;
    project.scout = undefined;
    if (scoutedId === projectId) project.scoutsBlocked += 1;
    else project.scoutsBlocked = 0;
  }

  #projectOfScout(entry: T): [ProjectId, BlockedProject<T>] | undefined {
    for (const each of this.#projects) if (each[1].scout === entry) return each;
    return undefined;
  }
}
