/** The type of a set of locked projects, and its value for a database with a single writer. */
import type { ProjectId } from '../../../engine/model.ts';

/** The projects whose shared state a transaction may touch. */
export interface LockedProjects {
  has(projectId: ProjectId): boolean;
  /** The number of these projects. */
  readonly size: number;
}

/** All projects: for a database with a single writer. */
export const ALL_PROJECTS: LockedProjects = { has: () => true, size: Infinity };
