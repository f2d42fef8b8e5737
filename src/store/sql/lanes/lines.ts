/**
 * In which line does a message wait that nobody has claimed? Written numbers: never change one, only add. Statements hold
 * them as literals, never as parameters: what the database does not see in the text has no part in a partial index.
 */
export const LINE = {
  /** None: in the due index, until its time comes. */
  due: 0,
  /** Its origin has its share of attempts. */
  origin: 1,
  /** Its flow-control key, whether it is ready or becomes so later. */
  flow: 2,
  /** Its queue: without a slot until its turn comes, or with one while the queue is paused. */
  queue: 3,
  /** Its project has as many attempts in flight as it may. */
  project: 4,
} as const;

/** Where those wait whom their flow-control key let go, and who hold one of its slots, as an SQL list. */
export const PAST_LANES = `${LINE.origin}, ${LINE.project}`;

/** Where a message waits for its time once its queue lets it: a key keeps even those that are not ready yet. */
export function lineBehindQueue(flowKey: string | null): number {
  return flowKey === null ? LINE.due : LINE.flow;
}
