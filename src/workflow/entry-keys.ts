/**
 * Writes and reads the entry keys of a journal (P8). A letter names the kind of the entry. The rest of the key names the
 * step, the call or the content, which has only one entry of this kind. Databases are full of these keys: never change an
 * existing key format, only add new ones.
 */

/** The entry key of the first entry of a run. */
export const INITIAL_ENTRY_KEY = '0';

export function entryKeyOfResult(stepId: number): string {
  return `s${stepId}`;
}

/** The entry key of the plan of a step in a parallel group. */
export function entryKeyOfPlan(stepId: number): string {
  return `p${stepId}`;
}

/** The entry key of the call that a step makes. */
export function entryKeyOfCall(stepId: number): string {
  return `c${stepId}`;
}

/** The entry key of the result of a call. The call may belong to no step, so the key of its entry identifies it. */
export function entryKeyOfCallResult(callKey: number): string {
  return `f${callKey}`;
}

export function entryKeyOfWait(stepId: number): string {
  return `w${stepId}`;
}

export function entryKeyOfInvocation(stepId: number): string {
  return `i${stepId}`;
}

/** The entry key of an entry without a step id: `hash` covers everything that was published (contract W 4.6). */
export function entryKeyOfContent(hash: string): string {
  return `h${hash}`;
}

const STEP_ENTRY_KEY = /^[spcwi](\d+)$/;

/** The step that an entry key names; undefined if it names no step. */
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
