/**
 * Translates look-ups of the store's SQL dialect (docs/sql.md) for PostgreSQL, so that the planner cannot reorder them.
 *
 * A statement names the table with few rows first and looks the others up by key. With outdated statistics, the planner
 * reverses that order: after an `analyze` that ran while the first rows were written, it takes a table of a million rows for
 * an empty one, starts with it, and scans the other tables for each of its rows. No setting prevents that. So each look-up is
 * sent in a form that can only run as a look-up:
 *
 * - `lookup contents c on (...)` becomes a lateral subquery with the columns of `c` that the statement uses;
 * - `in list (select ...)` becomes an array that is computed first;
 * - `exists lookup (select ...)` becomes a subquery that runs for each row.
 *
 * `offset 0` keeps the planner from merging them into the statement.
 */

const LOOKUP = /\b(?:(left )?lookup (\w+) (\w+) on|(exists) lookup|in list) \(/;

/** Requires that an alias names one table in the whole `text`, and that its columns are written `alias.column`. */
export function spellLookups(text: string, part: string = text): string {
  const found = LOOKUP.exec(part);
  if (!found) return part;
  const [mark, left, table, alias = '', exists] = found;
  const start = found.index + mark.length;
  const end = closingOf(part, start);
  const inner = spellLookups(text, part.slice(start, end));
  let spelled = `= any(array(${inner}))`;
  if (exists !== undefined) spelled = `exists (${inner} offset 0)`;
  if (table !== undefined) {
    const columns = columnsOf(alias, text).join(', ');
    const row = `lateral (select ${columns} from ${table} ${alias} where ${inner} offset 0) ${alias}`;
    spelled = left === undefined ? `cross join ${row}` : `left join ${row} on true`;
  }
  return part.slice(0, found.index) + spelled + spellLookups(text, part.slice(end + 1));
}

/** The columns that `text` uses. Others are left out, because a statement that locks rows may keep whole rows in memory. */
function columnsOf(alias: string, text: string): string[] {
  const named = text.matchAll(new RegExp(`\\b${alias}\\.(\\w+)`, 'g'));
  return [...new Set(Array.from(named, ([name]) => name))];
}

/** The position of the parenthesis that closes the one before `start`. */
function closingOf(text: string, start: number): number {
  let depth = 1;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '(') depth += 1;
    if (text[at] === ')') depth -= 1;
    if (depth === 0) return at;
  }
  throw new Error(`a parenthesis is not closed: ${text}`);
}
