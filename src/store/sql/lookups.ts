/**
 * Translates look-ups of the store's SQL dialect (docs/sql.md) for PostgreSQL, so that the planner cannot reorder them.
 *
 * A statement names the table with few rows first and looks the others up by key. With outdated statistics, the planner
 * reverses that order. After an `analyze` that ran while the first rows were written, the planner takes a table of a
 * million rows for an empty table, starts with this table, and scans the other tables for each row. No setting prevents
 * this. So each look-up is sent in a form that can only run as a look-up:
 *
 * - `lookup contents c on (...)` becomes a lateral subquery with the columns of `c` that the statement uses;
 * - `in list (select ...)` becomes an array that is computed first;
 * - `exists lookup (select ...)` becomes a subquery that runs for each row.
 *
 * `offset 0` keeps the planner from merging the look-ups into the statement.
 */

const LOOKUP = /\b(?:(left )?lookup (\w+) (\w+) on|(exists) lookup|in list) \(/;

/** Requires that an alias names one table in the whole `text`, and that its columns are written `alias.column`. */
export function translateLookups(text: string, fragment: string = text): string {
  const match = LOOKUP.exec(fragment);
  if (!match) return fragment;
  const [keyword, left, table, alias = '', exists] = match;
  const start = match.index + keyword.length;
  const end = closingParenthesis(fragment, start);
  const inner = translateLookups(text, fragment.slice(start, end));
  let translated = `= any(array(${inner}))`;
  if (exists !== undefined) translated = `exists (${inner} offset 0)`;
  if (table !== undefined) {
    const columns = columnsOf(alias, text).join(', ');
    const row = `lateral (select ${columns} from ${table} ${alias} where ${inner} offset 0) ${alias}`;
    translated = left === undefined ? `cross join ${row}` : `left join ${row} on true`;
  }
  return fragment.slice(0, match.index) + translated + translateLookups(text, fragment.slice(end + 1));
}

/** The columns that `text` uses. Others are left out: a statement that locks rows may keep whole rows in memory. */
function columnsOf(alias: string, text: string): string[] {
  const named = text.matchAll(new RegExp(`\\b${alias}\\.(\\w+)`, 'g'));
  return [...new Set(Array.from(named, ([name]) => name))];
}

/** The position of the parenthesis that closes the parenthesis before `start`. */
function closingParenthesis(text: string, start: number): number {
  let depth = 1;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '(') depth += 1;
    if (text[at] === ')') depth -= 1;
    if (depth === 0) return at;
  }
  throw new Error(`a parenthesis is not closed: ${text}`);
}
