/** Which projects has a transaction locked for itself? */
import type { ProjectId } from '../../../engine/model.ts';

/** The projects whose shared state a transaction may touch. */
export interface LockedProjects {
  has(projectId: ProjectId): boolean;
  /** How many they are. */
  readonly size: number;
}

/** For a database with a single writer. */
export const EVERYTHING: LockedProjects = { has: () => true, size: Infinity };
