/** The projects that a transaction has locked. */
import type { ProjectId } from '../../../engine/model.ts';

/** The projects whose shared state a transaction may touch. */
export interface LockedProjects {
  has(projectId: ProjectId): boolean;
  /** Their number. */
  readonly size: number;
}

/** For a database with a single writer. */
export const EVERYTHING: LockedProjects = { has: () => true, size: Infinity };
