/** What the runs of the benchmarks do, so that every endpoint does the same and every result can be checked. */

/** The program of the comparison: three steps, each needs the one before. */
export const STEP_NAMES = ['one', 'two', 'three'] as const;

/** What a step makes of what came before it: of the payload's number, or of the step before. */
export const STEPS: readonly ((before: number) => number)[] = [
  (number) => number + 1,
  (one) => one * 2,
  (two) => two - 1,
];

export interface Payload {
  /** Tells the runs of a benchmark apart. */
  number: number;
}

export interface Result extends Payload {
  value: number;
}

function expectedResult(number: number): Result {
  return { number, value: STEPS.reduce((value, step) => step(value), number) };
}

/** The run's number is in its id, so that an endpoint that sees only the id can tell. */
export function runIdOf(number: number): string {
  return `wfr_bench-${number}`;
}

/** Throws when `text` is not the JSON of what run `number` is to return. */
export function checkResult(number: number, text: string | undefined): void {
  const expected = JSON.stringify(expectedResult(number));
  if (text !== expected) throw new Error(`run ${number} returned ${text ?? 'nothing'}, not ${expected}`);
}
