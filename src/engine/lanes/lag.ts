/**
 * The order of projects by lag: the time that their oldest waiting message has waited. Equal shares alone would make a
 * project without a backlog wait whenever it needs more than its share, as long as projects with backlogs use all of
 * their shares.
 */
import type { ClaimedDue } from '../dispatch/claims.ts';
import type { Millis } from '../model.ts';

/** Whether a project has little lag: less than half of the largest lag. */
export function isFresh(lagMs: Millis, largestLagMs: Millis): boolean {
  return lagMs < largestLagMs / 2;
}

/** Sorts `claimed`, which is in order of due time, so that messages of projects with less lag come first. */
export function leastLagFirst(claimed: readonly ClaimedDue[]): ClaimedDue[] {
  const ofProjects = [...Map.groupBy(claimed, ({ message }) => message.projectId).values()];
  return ofProjects.toSorted((one, other) => earliestDueAtMs(other) - earliestDueAtMs(one)).flat();
}

function earliestDueAtMs([first]: readonly ClaimedDue[]): Millis {
  return first?.dueAtMs ?? 0;
}
