/**
 * How are a text of the store and its values written for PostgreSQL?
 *
 * Parameters are numbered, and lists are arrays. PostgreSQL's text cannot hold the character NUL, which SQLite and
 * JavaScript treat like any other. So NUL is written as two other characters.
 */
import type { SqlParam, SqlValue } from '../../driver.ts';
import { spellLookups } from './lookups.ts';

const DEFINITION = /^\s*(create table|alter table)\b/;

/**
 * A store that has a schema of its own may not have the database for itself. `ofNode`: of the node of Citus that has the
 * store; what one schema takes there only the node could say, table by table.
 */
const SIZE = {
  ofDatabase: '(select pg_database_size(current_database()) as bytes, null::bigint as unused)',
  // PostgreSQL has no index of the tables of a schema, but one of what depends on it.
  ofSchema: `(select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint as bytes, null::bigint as unused
    from pg_depend d lookup pg_class c on (c.oid = d.objid)
    where d.refclassid = 'pg_namespace'::regclass and d.refobjid = current_schema()::regnamespace
      and d.classid = 'pg_class'::regclass and c.relkind = 'r')`,
  ofNode: `(select pg_database_size(current_database()) as bytes, null::bigint as unused
    from migrations where number = 1)`,
};

/** What of the server tells how large the store is. */
export type Sized = keyof typeof SIZE;

/**
 * `?` becomes `$1` and so on; `in (??)` compares with an array, and `list (??)` is one as rows. In definitions, text columns
 * get byte order.
 */
export function toPostgres(text: string, sized: Sized = 'ofDatabase'): string {
  // Names and keys are compared as in SQLite, byte by byte, whatever the database's language.
  if (DEFINITION.test(text)) return text.replaceAll(/\btext\b/g, 'text collate "C"');
  let count = 0;
  const withSize = text.replace('from database_size', `from ${SIZE[sized]}`);
  return spellLookups(withSize).replaceAll(/not in \(\?\?\)|in \(\?\?\)|list \(\?\?\) (\w+)|\?/g, (mark, list) => {
    count += 1;
    if (mark === '?') return `$${count}`;
    if (list !== undefined) return `unnest($${count}::bigint[]) ${list}(value)`;
    return mark === 'in (??)' ? `= any($${count})` : `<> all($${count})`;
  });
}

/** A parameter as the client library sends it. An array becomes a literal, with the type that its place needs. */
export function toParameter(param: SqlParam): string | number | Buffer | null {
  if (Array.isArray(param)) return arrayLiteral(param);
  return toValue(param as SqlValue);
}

function toValue(value: SqlValue): string | number | Buffer | null {
  if (typeof value === 'string') return escapeText(value);
  if (value instanceof Uint8Array) return asBuffer(value);
  return value;
}

function arrayLiteral(values: readonly SqlValue[]): string {
  const elements = values.map((value) => {
    if (typeof value === 'number') return String(value);
    if (typeof value === 'string') return `"${escapeText(value).replaceAll(/["\\]/g, '\\$&')}"`;
    throw new TypeError('a list holds numbers or texts');
  });
  return `{${elements.join(',')}}`;
}

/** The same bytes, not a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

// A private-use character that no one is expected to publish. Where it does occur, a letter after it marks it.
const ESCAPE = '\uF8FE';
const NUL = '\0';

/** Without NUL. Texts without NUL and without the escape character stay as they are; almost all do. */
export function escapeText(text: string): string {
  if (!text.includes(NUL) && !text.includes(ESCAPE)) return text;
  return text.replaceAll(ESCAPE, `${ESCAPE}e`).replaceAll(NUL, `${ESCAPE}0`);
}

/** Undoes `escapeText`. */
export function unescapeText(text: string): string {
  if (!text.includes(ESCAPE)) return text;
  return text.replaceAll(`${ESCAPE}0`, NUL).replaceAll(`${ESCAPE}e`, ESCAPE);
}
