/**
 * Translates a statement from the store's SQL dialect (docs/sql.md) to SQLite. Lists become one JSON parameter. Look-ups
 * become plain joins and subqueries, because SQLite's planner has no statistics here that could mislead it. Row locks are
 * dropped, because there is one writer. The `+` in `limit +?` is needed because SQLite prepares a statement again for each run
 * when its limit is a bare parameter.
 */

/** SQLite reads both figures from the header of the file. */
const DATABASE_SIZE = `(select page_count * page_size as bytes, freelist_count * page_size as unused
  from pragma_page_count(), pragma_page_size(), pragma_freelist_count())`;

export function toSqlite(text: string): string {
  return text
    .replaceAll('list (??)', 'json_each(?)')
    .replaceAll('in (??)', 'in (select value from json_each(?))')
    .replaceAll('in list (', 'in (')
    .replaceAll('exists lookup (', 'exists (')
    .replaceAll(/\blookup\b/g, 'join')
    .replaceAll('limit ?', 'limit +?')
    .replace('from database_size', `from ${DATABASE_SIZE}`)
    .replace(/ for (?:no key update|update|share|key share)(?: of \w+)?(?: skip locked)?$/, '');
}
