/**
 * Writes and reads the entry keys of a journal (P8). A letter names the kind of the entry. The rest of the key names the
 * step, the call or the content, each of which has only one entry of this kind. Existing databases contain these keys, so
 * never change the format of a key; only add new formats.
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

/** The entry key of the result of a call. The call may belong to no step, so the message key of the call is used. */
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

/** The step that an entry key names. Returns undefined if the key names no step. */
export function stepIdOfEntryKey(entryKey: string): number | undefined {
  const stepId = STEP_ENTRY_KEY.exec(entryKey)?.[1];
  return stepId === undefined ? undefined : Number(stepId);
}

/** The step whose result has this entry key. */
export function stepIdOfResult(entryKey: string): number | undefined {
  return entryKey.startsWith('s') ? stepIdOfEntryKey(entryKey) : undefined;
}

/** The message key of the call whose result has this entry key. */
export function keyOfCall(entryKey: string): number | undefined {
  return entryKey.startsWith('f') ? Number(entryKey.slice(1)) : undefined;
}
