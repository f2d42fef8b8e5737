/** Suggests the name that is most similar to a mistyped name. */

/**
 * Returns the candidate that is most similar to `name`, or undefined if no candidate is similar. Accepts one mistyped
 * letter for every three letters of a name, and at least one. Pass names without a common prefix, which would make all
 * names similar.
 */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let distanceMax = Math.max(1, Math.floor(name.length / 3));
  let found: string | undefined;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > distanceMax) continue;
    const distance = distanceBetween(name, candidate);
    if (distance > distanceMax) continue;
    found = candidate;
    distanceMax = distance - 1; // the first of equally similar candidates is kept
  }
  return found;
}

/** Number of letters omitted, added, replaced or swapped with the next letter (optimal string alignment distance). */
function distanceBetween(one: string, other: string): number {
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
