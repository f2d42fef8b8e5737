/**
 * How is a slot of a journal named (P8)? By a letter for what the entry in it is, and by what it is the only one of. Journals
 * in databases are full of these names: never change one, only add.
 */

/** Of what a run begins with. */
export const INITIAL_SLOT = '0';

/** Of the result of a step. */
export function slotOfResult(stepId: number): string {
  return `s${stepId}`;
}

/** Of the plan of a step in a parallel group. */
export function slotOfPlan(stepId: number): string {
  return `p${stepId}`;
}

/** Of the call that a step makes. */
export function slotOfCall(stepId: number): string {
  return `c${stepId}`;
}

/** Of what came of a call, which may be of no step: it is named by the key of its entry. */
export function slotOfCallResult(callKey: number): string {
  return `f${callKey}`;
}

export function slotOfWait(stepId: number): string {
  return `w${stepId}`;
}

export function slotOfInvocation(stepId: number): string {
  return `i${stepId}`;
}

/** Of what names no step, by the hash of all that was published (contract W 4.6). */
export function slotOfContent(hash: string): string {
  return `h${hash}`;
}

const STEP_SLOT = /^[spcwi](\d+)$/;

/** The step that a slot is of; `undefined`: it is named by something else. */
export function stepIdOfSlot(slot: string): number | undefined {
  const stepId = STEP_SLOT.exec(slot)?.[1];
  return stepId === undefined ? undefined : Number(stepId);
}

/** The step whose result has the slot. */
export function stepIdOfResult(slot: string): number | undefined {
  return slot.startsWith('s') ? stepIdOfSlot(slot) : undefined;
}

/** The key of the call whose result has the slot. */
export function keyOfCall(slot: string): number | undefined {
  return slot.startsWith('f') ? Number(slot.slice(1)) : undefined;
}
