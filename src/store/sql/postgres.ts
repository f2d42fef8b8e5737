/**
 * Translates a statement from the store's SQL dialect (docs/sql.md) to PostgreSQL: `?` becomes `$1` and so on, lists become
 * arrays, and look-ups become subqueries that the planner cannot reorder (lookups.ts).
 */
import { translateLookups } from './lookups.ts';

const DDL = /^\s*(create table|alter table)\b/;

/**
 * Queries for the size of a store. A store with a schema of its own may share the database with other schemas. On Citus,
 * only the node knows the size of a schema, table by table, so `ofNode` is the size of the node's whole database.
 */
const SIZE = {
  ofDatabase: '(select pg_database_size(current_database()) as bytes, null::bigint as unused)',
  // PostgreSQL has no index of tables by schema, but has an index of the objects that depend on a schema.
  ofSchema: `(select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint as bytes, null::bigint as unused
    from pg_depend d lookup pg_class c on (c.oid = d.objid)
    where d.refclassid = 'pg_namespace'::regclass and d.refobjid = current_schema()::regnamespace
      and d.classid = 'pg_class'::regclass and c.relkind = 'r')`,
  ofNode: `(select pg_database_size(current_database()) as bytes, null::bigint as unused
    from migrations where number = 1)`,
};

export type SizeSource = keyof typeof SIZE;

/** In table definitions, text columns get byte order. */
export function toPostgres(text: string, size: SizeSource = 'ofDatabase'): string {
  // Names and keys are compared as in SQLite, byte by byte, whatever the database's language.
  if (DDL.test(text)) return text.replaceAll(/\btext\b/g, 'text collate "C"');
  let count = 0;
  const withSize = text.replace('from database_size', `from ${SIZE[size]}`);
  return translateLookups(withSize).replaceAll(/not in \(\?\?\)|in \(\?\?\)|list \(\?\?\) (\w+)|\?/g, (mark, list) => {
    count += 1;
    if (mark === '?') return `$${count}`;
    if (list !== undefined) return `unnest($${count}::bigint[]) ${list}(value)`;
    return mark === 'in (??)' ? `= any($${count})` : `<> all($${count})`;
  });
}
