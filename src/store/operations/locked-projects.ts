/** Which projects does a transaction have for itself? */
import type { ProjectId } from '../../engine/model.ts';

/** Whose shared state a transaction may touch. */
export interface Held {
  has(projectId: ProjectId): boolean;
}

/** With a single writer. */
export const EVERYTHING: Held = { has: () => true };
