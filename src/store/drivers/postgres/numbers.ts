/** Which numbers has nobody had before, of this server or of one that it has taken over from? */

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

/** For `takeNumbers`. */
export const RESERVE = `update numbers set server = ${SERVER},
  next = next + cast(? as bigint) + case when coalesce(server, ${SERVER}) = ${SERVER} then 0 else ${PASSED_OVER} end
  where name = ? returning next`;
