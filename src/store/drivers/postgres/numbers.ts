/** Reserves numbers that neither this server nor one that it has replaced has given before. */

/**
 * Identifies one start of one server: a promoted standby was started at another time. After a failover or a restore,
 * the server gives the same transaction ids again. Without care it would also give the same numbers again. As text: the
 * transaction has set the time zone (session.ts).
 */
const SERVER = 'pg_postmaster_start_time()::text';

/**
 * The fewest numbers that are skipped when another server answers than the last time. A promoted standby may not know the last
 * numbers that were given, but running workers and answers to clients still use them. This is far more than can be
 * given in the meantime, and small enough for thousands of restarts of a cell.
 */
const SKIPPED_MIN = 1_000_000_000;

/**
 * A random number from `SKIPPED_MIN` to twice that. After two failovers in a row the third server may not know of the second one,
 * and must not continue at the same number.
 */
const SKIPPED = `cast(${SKIPPED_MIN} + floor(random() * ${SKIPPED_MIN}) as bigint)`;

/** For `takeNumbers`. */
export const RESERVE = `update numbers set
  server = ${SERVER},
  next = next + cast(? as bigint) + case when coalesce(server, ${SERVER}) = ${SERVER} then 0 else ${SKIPPED} end
  where name = ? returning next, until`;

/** What the next statement is given, since Citus changes a row by no function of chance. */
export const CHOOSE_SKIPPED = `select ${SKIPPED} as skipped`;

/**
 * The same where the rows are on another server than the one that is asked. The first parameters are the start of the
 * server that has them, and how many numbers to skip; the others are as above. The start changes when the rows move to another server, too.
 */
export const RESERVE_AT = `update numbers set server = taken.server,
  next = numbers.next + taken.count + case when coalesce(numbers.server, taken.server) = taken.server then 0 else taken.skipped end
  from (values (cast(? as text), cast(? as bigint), cast(? as bigint), cast(? as text))) taken (server, skipped, count, name)
  where numbers.name = taken.name returning numbers.next, numbers.until`;
