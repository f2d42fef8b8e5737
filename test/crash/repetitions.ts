/** Finds attempts that arrived more than once, and checks that a crash explains each. */
export interface Repetitions {
  /** The same attempt of the same message arrived twice from one incarnation: no crash explains it. */
  unexplained: string[];
  /** Attempts that arrived again after a crash: allowed. */
  repeatedAfterCrash: number;
}

export function repetitionsOf(
  attempts: Iterable<{ messageId: string; retried: number; incarnation: number }>,
): Repetitions {
  const incarnationsByAttempt = new Map<string, number[]>();
  for (const { messageId, retried, incarnation } of attempts) {
    const attempt = `${messageId} retried ${retried}`;
    const seen = incarnationsByAttempt.get(attempt);
    if (seen === undefined) incarnationsByAttempt.set(attempt, [incarnation]);
    else seen.push(incarnation);
  }
  const unexplained: string[] = [];
  let repeatedAfterCrash = 0;
  for (const [attempt, incarnations] of incarnationsByAttempt) {
    const distinct = new Set(incarnations).size;
    if (distinct < incarnations.length) unexplained.push(`${attempt} in incarnations ${incarnations.join(', ')}`);
    repeatedAfterCrash += distinct - 1;
  }
  return { unexplained, repeatedAfterCrash };
}
