/** Did an origin get its messages in the order of their due times? */

interface Backlog {
  origin: number;
  /** How many origins there are; message n is for origin n modulo that. */
  origins: number;
  dueOf: (messageNumber: number) => number;
}

/** The most messages of the origin that one of it overtook: due earlier than it, arrived later. */
export function overtakenMax(arrivalsNs: BigUint64Array, { origin, origins, dueOf }: Backlog): number {
  const arrivals: { atNs: bigint; due: number }[] = [];
  /** By due time: how many have not arrived. */
  const waiting: number[] = [];
  for (let nth = origin; nth < arrivalsNs.length; nth += origins) {
    const due = dueOf(nth);
    arrivals.push({ atNs: arrivalsNs[nth] ?? 0n, due });
    waiting[due] = (waiting[due] ?? 0) + 1;
  }
  let most = 0;
  for (const { due } of arrivals.toSorted((a, b) => (a.atNs < b.atNs ? -1 : 1))) {
    waiting[due] = (waiting[due] ?? 0) - 1;
    let earlier = 0;
    for (let each = 0; each < due; each += 1) earlier += waiting[each] ?? 0;
    most = Math.max(most, earlier);
  }
  return most;
}
