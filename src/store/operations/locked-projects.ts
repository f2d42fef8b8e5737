/** Which projects does a transaction have for itself? */
import type { ProjectId } from '../../engine/model.ts';

/** Whose shared state a transaction may touch. */
export interface LockedProjects {
  has(projectId: ProjectId): boolean;
}

/** With a single writer. */
export const EVERYTHING: LockedProjects = { has: () => true };
