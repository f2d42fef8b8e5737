/**
 * How is PostgreSQL kept to the plan that a statement is written for?
 *
 * The store writes the table first that has few rows, and says of the others that they are looked up from it by a key. A
 * planner whose statistics are of another time turns that round: it takes a table of a million rows for an empty one (an
 * `analyze` came while the first of them were being written), begins with it, and goes through everything else for each of
 * them. No setting forbids that. So what the text calls a look-up (`Queries` in ../../driver.ts) is sent as something that
 * can only be looked up:
 *
 * - `lookup contents c on (...)` as a lateral subquery of the columns that the text has of `c`;
 * - `in list (select ...)` as an array that is made before;
 * - `exists lookup (select ...)` as a subquery of its own for each row.
 *
 * `offset 0` keeps the planner from dissolving them.
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

/** Not all columns: for the sake of what is locked PostgreSQL may keep the row that it has, and would load its body. */
function columnsOf(alias: string, text: string): string[] {
  const named = text.matchAll(new RegExp(`\\b${alias}\\.(\\w+)`, 'g'));
  return [...new Set(Array.from(named, ([name]) => name))];
}

/** Where the parenthesis is closed that was opened before `start`. */
function closingOf(text: string, start: number): number {
  let depth = 1;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '(') depth += 1;
    if (text[at] === ')') depth -= 1;
    if (depth === 0) return at;
  }
  throw new Error(`a parenthesis is not closed: ${text}`);
}
