/**
 * How does PostgreSQL keep to the plan that a statement is written for?
 *
 * The store writes the table with few rows first; the text says that the other tables are looked up from it by a key. A
 * planner with outdated statistics reverses that. It may take a table of a million rows for an empty one, because an
 * `analyze` ran while the first rows were written. It then begins with that table, and goes through everything else for
 * each of its rows. No setting forbids that. So each look-up of the text (`Queries` in ../../driver.ts) is sent in a
 * form that the planner can only run as a look-up:
 *
 * - `lookup contents c on (...)` as a lateral subquery of the columns of `c` that the text uses;
 * - `in list (select ...)` as an array that is computed first;
 * - `exists lookup (select ...)` as a subquery of its own for each row.
 *
 * `offset 0` keeps the planner from merging them into the statement.
 */

const LOOKUP = /\b(?:(left )?lookup (\w+) (\w+) on|(exists) lookup|in list) \(/;

/** An alias means one table in all of `text`, and its columns are written `alias.column`. */
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

/** Only the columns that are used: a statement that locks rows may keep whole rows, and would load their bodies. */
function columnsOf(alias: string, text: string): string[] {
  const named = text.matchAll(new RegExp(`\\b${alias}\\.(\\w+)`, 'g'));
  return [...new Set(Array.from(named, ([name]) => name))];
}

/** The position of the parenthesis that closes the one opened before `start`. */
function closingOf(text: string, start: number): number {
  let depth = 1;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '(') depth += 1;
    if (text[at] === ')') depth -= 1;
    if (depth === 0) return at;
  }
  throw new Error(`a parenthesis is not closed: ${text}`);
}
