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

/** The wait states of messages that their flow-control key has released, which have a permit of the key; an SQL list. */
export const PAST_LANES = `${WAIT_STATE.origin}, ${WAIT_STATE.project}`;

/** The state of a message with a permit of its queue. A message with a key is in the key's wait list, due or not. */
export function waitStateBehindQueue(flowKey: string | null): number {
  return flowKey === null ? WAIT_STATE.due : WAIT_STATE.flow;
}

/**
 * Excludes messages of ended runs, which are never claimed; some may still await cancellation. The failure callback has
 * no position in the journal and is included, because it is sent.
 */
export const NOT_ENDING = notEnding('messages');

/** `NOT_ENDING` for a statement that calls `messages` by the alias `name`. */
export function notEnding(name: string): string {
  return `(${name}.journal_position is null
    or not exists lookup (select 1 from ending_runs e where e.key = ${name}.run_key))`;
}
