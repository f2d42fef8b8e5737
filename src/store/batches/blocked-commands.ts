/**
 * Keeps commands that are blocked because a stopped or disconnected worker has locked their project for long.
 *
 * Commands wait here by project, so that batches of other projects continue. At intervals, the first command of each
 * project is added to a batch as a scout. If the scout is not blocked, the other commands of its project follow.
 */
import type { ProjectId } from '../../engine/model.ts';

interface BlockedProject<T> {
  waiting: T[];
  scout: T | undefined;
  /** How many scouts in a row were blocked. */
  scoutsBlocked: number;
}

/** Has no timers: the caller decides when to send scouts. */
export class BlockedCommands<T> {
  readonly #projects = new Map<ProjectId, BlockedProject<T>>();
  readonly #scoutsMax: number;

  /** The commands of a project are refused after `scoutsMax` blocked scouts in a row. */
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

  /** Adds a command that was blocked by `projectId`. A command of several projects may be blocked by each in turn. */
  add(entry: T, projectId: ProjectId): void {
    this.#recordScoutBlocked(entry, projectId);
    const project = this.#projects.get(projectId);
    if (project) project.waiting.push(entry);
    else this.#projects.set(projectId, { waiting: [entry], scout: undefined, scoutsBlocked: 0 });
  }

  /** Reports that `entry` was not blocked. For a scout, removes its project and returns the commands that waited. */
  recordUnblocked(entry: T): T[] {
    const [projectId, project] = this.#projectOfScout(entry) ?? [];
    if (projectId === undefined || project === undefined) return [];
    this.#projects.delete(projectId);
    return project.waiting;
  }

  /** Returns the scouts to send now, and the commands that have waited too long. */
  takeScouts(): { scouts: T[]; expired: T[] } {
    const scouts: T[] = [];
    const expired: T[] = [];
    for (const [projectId, project] of this.#projects) {
      if (project.scout !== undefined) continue; // its scout is in a batch
      if (project.scoutsBlocked >= this.#scoutsMax) {
        this.#projects.delete(projectId);
        expired.push(...project.waiting);
      } else {
        project.scout = project.waiting.shift();
        if (project.scout === undefined) this.#projects.delete(projectId);
        else scouts.push(project.scout);
      }
    }
    return { scouts, expired };
  }

  /** Removes and returns all waiting commands. Scouts are in a batch, and get their results there. */
  takeAll(): T[] {
    const all = [...this.#projects.values()].flatMap(({ waiting }) => waiting);
    this.#projects.clear();
    return all;
  }

  /** If `entry` was a scout, counts the blocked scout. Resets the count if the blocking project is another one. */
  #recordScoutBlocked(entry: T, projectId: ProjectId): void {
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
