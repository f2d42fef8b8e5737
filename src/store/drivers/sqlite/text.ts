/**
 * How is a text of the store written for SQLite? Lists become one JSON parameter. Look-ups become plain joins and
 * tests: the planner keeps no statistics that could mislead it. Rows need no locks, because there is one writer. The
 * planner reads a limit that is a bare parameter, and SQLite prepares such a statement anew for each run: hence the `+`.
 */

/** Both are in the header of the file. */
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
