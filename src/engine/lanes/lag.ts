/**
 * Which projects go first while others have a backlog? Each is as far behind as the message that waits longest. Equal shares alone would
 * let a project wait that has no backlog, whenever it needs more than its share: as long as those with a backlog need all of theirs.
 */
import type { ClaimedDue } from '../dispatch/claims.ts';
import type { Millis } from '../model.ts';

/** Whether a project that is `lagMs` behind has just begun to wait, compared with the one that is farthest behind. */
export function isFresh(lagMs: Millis, farthestMs: Millis): boolean {
  return lagMs < farthestMs / 2;
}

/** In order of due time, but those of projects that are less far behind come first. `claimed` is in order of due time. */
export function leastBehindFirst(claimed: readonly ClaimedDue[]): ClaimedDue[] {
  const ofProjects = [...Map.groupBy(claimed, ({ message }) => message.projectId).values()];
  return ofProjects.toSorted((one, other) => earliestDueAtMs(other) - earliestDueAtMs(one)).flat();
}

function earliestDueAtMs([first]: readonly ClaimedDue[]): Millis {
  return first?.dueAtMs ?? 0;
}
