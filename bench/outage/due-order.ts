/** Checks whether an origin received its messages in the order of their due times. */

interface OriginBacklog {
  origin: number;
  /** The number of origins; message n goes to origin n modulo `origins`. */
  origins: number;
  dueOf: (messageNumber: number) => number;
}

/** The maximum number of messages of the origin that were due before a single message, but arrived after that message. */
export function overtakenMax(arrivalsNs: BigUint64Array, { origin, origins, dueOf }: OriginBacklog): number {
  const arrivals: { atNs: bigint; due: number }[] = [];
  /** By due time: the number of messages that have not arrived. */
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
