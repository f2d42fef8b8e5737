/** Written numbers of runs: never change one, only add. */
import type { FailureCallbackState } from '../../../engine/model.ts';
import type { RunLogState } from '../../../engine/run-log-store.ts';
import type { EntryKind, RunState } from '../../../workflow/model.ts';

/** Above the codes of message states: events of both are in one table. */
export const RUN_LOG_STATE_CODES: Record<RunLogState, number> = {
  RUN_STARTED: 9,
  RUN_SUCCESS: 10,
  RUN_FAILED: 11,
  RUN_CANCELED: 12,
  WAITER_ADDED: 13,
  INVOKED: 14,
};

export const ENTRY_KIND_CODES: Record<EntryKind, number> = {
  initial: 1,
  step: 2,
  plan: 3,
  toCallback: 4,
  fromCallback: 5,
  stepConfig: 6,
  wait: 7,
  invoke: 8,
};

export const RUN_STATE_CODES: Record<RunState, number> = {
  RUN_STARTED: 1,
  RUN_SUCCESS: 2,
  RUN_FAILED: 3,
  RUN_CANCELED: 4,
};

export const FAILURE_STATE_CODES: Record<FailureCallbackState, number> = {
  inProgress: 1,
  success: 2,
  fail: 3,
  canceled: 4,
  none: 5,
};

const RUN_LOG_STATES = byCode(RUN_LOG_STATE_CODES);
const ENTRY_KINDS = byCode(ENTRY_KIND_CODES);
const RUN_STATES = byCode(RUN_STATE_CODES);
const FAILURE_STATES = byCode(FAILURE_STATE_CODES);

/** `undefined`: it is the state of a message. */
export function runLogStateOf(code: number): RunLogState | undefined {
  return RUN_LOG_STATES.get(code);
}

export function isRunLogState(state: string): state is RunLogState {
  return state in RUN_LOG_STATE_CODES;
}

export function entryKindOf(code: number): EntryKind {
  return known('kind of entry', code, ENTRY_KINDS);
}

export function runStateOf(code: number): RunState {
  return known('state of a run', code, RUN_STATES);
}

export function failureStateOf(code: number): FailureCallbackState {
  return known('state of a failure callback', code, FAILURE_STATES);
}

function byCode<Name extends string>(codes: Record<Name, number>): Map<number, Name> {
  return new Map(Object.entries<number>(codes).map(([name, code]) => [code, name as Name]));
}

function known<Name>(what: string, code: number, names: ReadonlyMap<number, Name>): Name {
  const name = names.get(code);
  if (name === undefined) throw new Error(`unknown ${what} ${code} in the store`);
  return name;
}
