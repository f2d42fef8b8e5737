/**
 * How is PostgreSQL kept to the plan that a statement is written for?
 *
 * The store writes the table first that has few rows, and the others are looked up from it by a key. A planner whose
 * statistics are of another time turns that round: it takes a table of a million rows for an empty one (an `analyze` came
 * while the first of them were being written), begins with it, and goes through everything else for each of them. No setting
 * forbids that. So what is looked up is written as something that can only be looked up:
 *
 * - `join contents c on c.key = m.key` as a lateral subquery of the columns that the text has of `c`;
 * - `in (select ...)` as an array that is made before;
 * - `exists (select ...)` as a subquery of its own for each row.
 *
 * `offset 0` keeps the planner from dissolving them.
 */

const JOIN =
  /\b(left )?join (\w+) (\w+) on ((?:[^()]|\([^()]*\))+?)(?=\s+(?:left join|join|where|order by|group by|limit|for update)\b|\s*\)|\s*$)/g;
const SUBQUERY = /\b(in|exists) \(select\b/;

/** An alias means one table in all of `text`, and its columns are written `alias.column`. */
export function fixPlan(text: string): string {
  return fixSubqueries(fixJoins(text));
}

function fixJoins(text: string): string {
  return text.replaceAll(JOIN, (_, left: string | undefined, table: string, alias: string, condition: string) => {
    const columns = columnsOf(alias, text).join(', ');
    const found = `lateral (select ${columns} from ${table} ${alias} where ${condition} offset 0) ${alias}`;
    return left === undefined ? `cross join ${found}` : `left join ${found} on true`;
  });
}

/** Not all columns: for the sake of what is locked PostgreSQL may keep the row that it has, and would load its body. */
function columnsOf(alias: string, text: string): string[] {
  const named = text.matchAll(new RegExp(`\\b${alias}\\.(\\w+)`, 'g'));
  return [...new Set(Array.from(named, ([name]) => name))];
}

function fixSubqueries(text: string): string {
  const found = SUBQUERY.exec(text);
  if (!found) return text;
  const start = found.index + found[0].indexOf('(') + 1;
  const end = closingOf(text, start);
  const inner = fixSubqueries(text.slice(start, end));
  const fixed = found[1] === 'in' ? `= any(array(${inner}))` : `exists (${inner} offset 0)`;
  return text.slice(0, found.index) + fixed + fixSubqueries(text.slice(end + 1));
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
