/** Compares the steps of the workflow with the steps in the journal of its run (contract K 7). */
import { CodeChangedError } from './errors.ts';
import type { Journal } from './journal.ts';
import type { LazyStep } from './steps.ts';
import type { Step } from './types.ts';

/** Returns an error if the parallel `steps` differ from the steps of the journal, starting at `firstId`. */
export function findChange({ results, plans }: Journal, steps: readonly LazyStep[], firstId: number) {
  for (const [index, { name, type }] of steps.entries()) {
    const id = firstId + index;
    const recorded = results.get(id) ?? plans.get(id);
    if (!recorded) continue;
    const journalText = `This run has ${describeStep(recorded, id)}`;
    if (name !== recorded.stepName || type !== recorded.stepType)
      return new CodeChangedError(`${journalText}, and the code has '${name}' (${type}) there now.`);
    if (steps.length !== recorded.concurrent)
      return new CodeChangedError(
        `${journalText} ${describeGroup(recorded.concurrent)}, and the code has it ${describeGroup(steps.length)} now.`,
      );
  }
  return undefined;
}

/** Returns an error if the workflow returned after `count` steps although the journal has more steps. */
export function findChangeAtReturn({ results, plans }: Journal, count: number): CodeChangedError | undefined {
  const [id] = [...results.keys(), ...plans.keys()].filter((id) => id > count).sort((a, b) => a - b);
  const removed = id === undefined ? undefined : (results.get(id) ?? plans.get(id));
  if (id === undefined || !removed) return undefined;
  const returned = count === 0 ? 'before its first step' : `after step ${count}`;
  return new CodeChangedError(`This run has ${describeStep(removed, id)}, and the code returns ${returned} now.`);
}

function describeStep({ stepName, stepType }: Step, id: number): string {
  return `step ${id} '${stepName}' (${stepType})`;
}

function describeGroup(size: number): string {
  return size === 1 ? 'alone' : `as one of ${size} at once`;
}
