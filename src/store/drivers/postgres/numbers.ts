/** Which numbers has nobody had before? */
import type { NumberSequence } from '../../driver.ts';

/**
 * Which start of which server: a standby that is promoted was started at another time. After a failover, or a restore, the
 * same transaction ids, and without care the same numbers, are given to others.
 */
export const SERVER = 'pg_postmaster_start_time()::text';

/**
 * Passed over when another server answers than the last time. A standby that was promoted may not have heard of the last
 * numbers that were given; they are in use all the same, by workers that go on, and in answers to clients. Far more than
 * can be given out in the meantime, and little enough for millions of restarts.
 */
const PASSED_OVER = 1_000_000_000;

const TEXT = `update numbers set server = ${SERVER},
  next = next + $1::int8 + case when coalesce(server, ${SERVER}) = ${SERVER} then 0 else ${PASSED_OVER} end
  where name = $2 returning next`;

export interface Reservation {
  text: string;
  values: [number, string];
  /** The first number, of the row that came back. */
  firstOf(rows: readonly { next: number }[]): number;
}

/** One statement, whose row is locked until its transaction ends. */
export function reservation(sequence: NumberSequence, count: number): Reservation {
  const firstOf = ([row]: readonly { next: number }[]): number => {
    if (!row) throw new Error(`the number sequence "${sequence}" is missing`);
    return row.next - count;
  };
  return { text: TEXT, values: [count, sequence], firstOf };
}
