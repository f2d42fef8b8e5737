/** Which numbers were never used before, by this server or by one that it has replaced? */

/**
 * Identifies one start of one server: a promoted standby was started at another time. After a failover or a restore,
 * the server gives the same transaction ids again. Without care it would also give the same numbers again.
 */
export const SERVER = 'pg_postmaster_start_time()::text';

/**
 * How many numbers are skipped when another server answers than the last time. A promoted standby may not know the last
 * numbers that were given, but running workers and answers to clients still use them. This is far more than can be
 * given in the meantime, and small enough for millions of restarts.
 */
const PASSED_OVER = 1_000_000_000;

/** For `takeNumbers`. */
export const RESERVE = `update numbers set server = ${SERVER},
  next = next + cast(? as bigint) + case when coalesce(server, ${SERVER}) = ${SERVER} then 0 else ${PASSED_OVER} end
  where name = ? returning next, until`;

/**
 * The same where the rows are on another server than the one that is asked. The first parameter is the start of the
 * server that has them; the others are as above. It changes when the rows move to another server, too.
 */
export const RESERVE_AT = `update numbers set server = taken.server,
  next = numbers.next + taken.count + case when coalesce(numbers.server, taken.server) = taken.server then 0 else ${PASSED_OVER} end
  from (values (cast(? as text), cast(? as bigint), cast(? as text))) taken (server, count, name)
  where numbers.name = taken.name returning numbers.next, numbers.until`;
