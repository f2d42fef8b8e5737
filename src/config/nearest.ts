/** Guesses which name was meant by one that does not exist. */

/**
 * The candidate that `name` was most likely meant to be. One mistyped letter in three is accepted, and always at least
 * one. Undefined when no candidate is near. Leave out a prefix that all names share, since it would make them all look
 * alike.
 */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let slipsMax = Math.max(1, Math.floor(name.length / 3));
  let found: string | undefined;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > slipsMax) continue;
    const slips = slipsBetween(name, candidate);
    if (slips > slipsMax) continue;
    found = candidate;
    slipsMax = slips - 1; // of equally near ones, the first stays
  }
  return found;
}

/** Letters left out, added, replaced or swapped with the next one (the optimal string alignment distance). */
function slipsBetween(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row[j] = Math.min(
        at(last, j) + 1,
        at(row, j - 1) + 1,
        at(last, j - 1) + (isSame ? 0 : 1),
        isSwapped ? at(beforeLast, j - 2) + 1 : Infinity,
      );
    }
    beforeLast = last;
    last = row;
  }
  return at(last, other.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity;
}
