/**
 * How is a text of the store written for SQLite? Lists become one JSON parameter. Look-ups become plain joins and
 * tests: the planner keeps no statistics that could mislead it. Rows need no locks, because there is one writer.
 */
export function toSqlite(text: string): string {
  return text
    .replaceAll('in (??)', 'in (select value from json_each(?))')
    .replaceAll('in list (', 'in (')
    .replaceAll('exists lookup (', 'exists (')
    .replaceAll(/\blookup\b/g, 'join')
    .replace(/ for update(?: of \w+)?(?: skip locked)?$/, '');
}
