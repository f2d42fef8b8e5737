import type { WaitState } from '../../../engine/wait-state.ts';

/**
 * The wait states as the column `line` has them. Written numbers: never change one, only add. Statements hold them as
 * literals, never as parameters: what the database does not see in the text has no part in a partial index.
 */
export const LINE = { due: 0, origin: 1, flow: 2, queue: 3, project: 4 } as const satisfies Record<WaitState, number>;

/** Where those wait whom their flow-control key let go, and who hold one of its slots, as an SQL list. */
export const PAST_LANES = `${LINE.origin}, ${LINE.project}`;

/** Where a message waits for its time once its queue lets it: a key keeps even those that are not ready yet. */
export function lineBehindQueue(flowKey: string | null): number {
  return flowKey === null ? LINE.due : LINE.flow;
}
