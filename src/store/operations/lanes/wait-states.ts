import type { WaitState } from '../../../engine/wait-state.ts';

/**
 * The wait states as numbers of the column `wait_state`. The numbers are stored: never change one, only add. Statements
 * contain them as literals, never as parameters: the planner uses a partial index only for a value that it sees in the
 * text.
 */
export const WAIT_STATE = { due: 0, origin: 1, flow: 2, queue: 3, project: 4 } as const satisfies Record<
  WaitState,
  number
>;

/** The lines of messages that their flow-control key has released and that hold one of its slots, as an SQL list. */
export const PAST_LANES = `${WAIT_STATE.origin}, ${WAIT_STATE.project}`;

/** Where a message waits for its time once its queue lets it. With a key it waits in the key's list, ready or not. */
export function waitStateBehindQueue(flowKey: string | null): number {
  return flowKey === null ? WAIT_STATE.due : WAIT_STATE.flow;
}

/**
 * Of a run that is over no message is claimed, though more of it may be left than was cancelled with its end. What tells of
 * its failure has no position in its journal, and goes out.
 */
export const NOT_ENDING = notEnding('messages');

/** The same of messages that a statement calls otherwise. */
export function notEnding(name: string): string {
  return `(${name}.journal_position is null
    or not exists lookup (select 1 from ending_runs e where e.key = ${name}.run_key))`;
}
