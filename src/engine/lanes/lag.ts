/**
 * The order of projects by lag: the time that their oldest waiting message has waited. Equal shares alone would make a project
 * without a backlog wait whenever it needs more than its share, for as long as projects with backlogs use all of theirs.
 */
import type { ClaimedDue } from '../dispatch/claims.ts';
import type { Millis } from '../model.ts';

/** Whether a project has little lag: less than half of the largest one. */
export function isFresh(lagMs: Millis, largestLagMs: Millis): boolean {
  return lagMs < largestLagMs / 2;
}

/** `claimed`, which is sorted by due time, with the messages of projects that lag less first. */
export function leastLagFirst(claimed: readonly ClaimedDue[]): ClaimedDue[] {
  const ofProjects = [...Map.groupBy(claimed, ({ message }) => message.projectId).values()];
  return ofProjects.toSorted((one, other) => earliestDueAtMs(other) - earliestDueAtMs(one)).flat();
}

function earliestDueAtMs([first]: readonly ClaimedDue[]): Millis {
  return first?.dueAtMs ?? 0;
}
