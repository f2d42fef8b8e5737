/** Statements that reserve numbers which no server of this database has ever returned, even after a failover. */

/**
 * Identifies one start of one server: a promoted standby was started at another time. After a failover or a restore, the
 * database may have lost its last reservations, and would return the same numbers again. The time is a text; two texts
 * are comparable because each transaction sets the time zone (session.ts).
 */
const SERVER = 'pg_postmaster_start_time()::text';

/**
 * The minimum of numbers that are skipped when the server has changed since the last reservation. A promoted standby may not
 * know the last numbers that were returned, but running workers and responses to clients still use them. This is far more
 * than can be reserved in the meantime, and small enough for thousands of restarts of a cell.
 */
const SKIPPED_MIN = 1_000_000_000;

/**
 * A random number from `SKIPPED_MIN` to twice `SKIPPED_MIN`. After two failovers in a row, the third server may not know
 * which numbers the second server gave out, and must not continue at the same number.
 */
const SKIPPED = `cast(${SKIPPED_MIN} + floor(random() * ${SKIPPED_MIN}) as bigint)`;

/** The `update` of `reserveNumbers`. */
export const RESERVE = `update numbers set
  server = ${SERVER},
  next = next + cast(? as bigint) + case when coalesce(server, ${SERVER}) = ${SERVER} then 0 else ${SKIPPED} end
  where name = ? returning next, until`;

/** Chooses the number to skip for the next statement, since Citus allows no volatile function in an update. */
export const CHOOSE_SKIPPED = `select ${SKIPPED} as skipped`;

/**
 * `RESERVE` for Citus, where the rows are on another server than the connected one. The first two parameters are the
 * start of the server that has the rows, and the count of numbers to skip; the others are those of `RESERVE`. The start
 * also changes when the rows move to another server.
 */
export const RESERVE_AT = `update numbers set server = taken.server,
  next = numbers.next + taken.count + case when coalesce(numbers.server, taken.server) = taken.server then 0 else taken.skipped end
  from (values (cast(? as text), cast(? as bigint), cast(? as bigint), cast(? as text))) taken (server, skipped, count, name)
  where numbers.name = taken.name returning numbers.next, numbers.until`;
