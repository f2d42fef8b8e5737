/** The program of the benchmark runs, which is the same at every endpoint and has results that can be checked. */

/** Three steps, each of which needs the result of the previous one. */
export const STEP_NAMES = ['one', 'two', 'three'] as const;

/** The function of each step: its input is the payload's number, or the result of the previous step. */
export const STEPS: readonly ((before: number) => number)[] = [
  (number) => number + 1,
  (one) => one * 2,
  (two) => two - 1,
];

export interface Payload {
  /** Identifies the run. */
  number: number;
}

export interface Result extends Payload {
  value: number;
}

function expectedResult(number: number): Result {
  return { number, value: STEPS.reduce((value, step) => step(value), number) };
}

/** The id contains the number of the run, for endpoints that see only the id. */
export function runIdOf(number: number): string {
  return `wfr_bench-${number}`;
}

/** Throws unless `text` is the JSON of the expected result of run `number`. */
export function checkResult(number: number, text: string | undefined): void {
  const expected = JSON.stringify(expectedResult(number));
  if (text !== expected) throw new Error(`run ${number} returned ${text ?? 'nothing'}, not ${expected}`);
}
