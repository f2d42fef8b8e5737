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

/** The wait states, as an SQL list, of messages with a permit of their flow-control key: the key has released them. */
export const PAST_LANES = `${WAIT_STATE.origin}, ${WAIT_STATE.project}`;

/** The wait state of a message with a queue permit. A message with a key is in the wait list of the key, due or not. */
export function waitStateBehindQueue(flowKey: string | null): number {
  return flowKey === null ? WAIT_STATE.due : WAIT_STATE.flow;
}

/**
 * Excludes messages of ended runs, which are never claimed, although some are not cancelled yet. Failure callbacks have
 * no position in the journal and are not excluded, because they are still sent.
 */
export const NOT_ENDING = notEnding('messages');

/** `NOT_ENDING` for a statement that calls `messages` by the alias `name`. */
export function notEnding(name: string): string {
  return `(${name}.journal_position is null
    or not exists lookup (select 1 from ending_runs e where e.key = ${name}.run_key))`;
}
