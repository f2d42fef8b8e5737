/**
 * How is a entry key of a journal named (P8)? By a letter for what the entry in it is, and by what it is the only one of. Journals
 * in databases are full of these names: never change one, only add.
 */

/** Of what a run begins with. */
export const INITIAL_ENTRY_KEY = '0';

/** Of the result of a step. */
export function entryKeyOfResult(stepId: number): string {
  return `s${stepId}`;
}

/** Of the plan of a step in a parallel group. */
export function entryKeyOfPlan(stepId: number): string {
  return `p${stepId}`;
}

/** Of the call that a step makes. */
export function entryKeyOfCall(stepId: number): string {
  return `c${stepId}`;
}

/** Of what came of a call, which may be of no step: it is named by the key of its entry. */
export function entryKeyOfCallResult(callKey: number): string {
  return `f${callKey}`;
}

export function entryKeyOfWait(stepId: number): string {
  return `w${stepId}`;
}

export function entryKeyOfInvocation(stepId: number): string {
  return `i${stepId}`;
}

/** Of what names no step, by the hash of all that was published (contract W 4.6). */
export function entryKeyOfContent(hash: string): string {
  return `h${hash}`;
}

const STEP_ENTRY_KEY = /^[spcwi](\d+)$/;

/** The step that a entry key is of; `undefined`: it is named by something else. */
export function stepIdOfEntryKey(entryKey: string): number | undefined {
  const stepId = STEP_ENTRY_KEY.exec(entryKey)?.[1];
  return stepId === undefined ? undefined : Number(stepId);
}

/** The step whose result has the entry key. */
export function stepIdOfResult(entryKey: string): number | undefined {
  return entryKey.startsWith('s') ? stepIdOfEntryKey(entryKey) : undefined;
}

/** The key of the call whose result has the entry key. */
export function keyOfCall(entryKey: string): number | undefined {
  return entryKey.startsWith('f') ? Number(entryKey.slice(1)) : undefined;
}
