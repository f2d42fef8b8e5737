/**
 * `npm run sql -- [operation…]`: prints the SQL of these store operations, by default of all operations, for `psql`.
 * docs/sql.md describes the dialect of the sources.
 */
import { statementsByOperation } from '../test/store/statements.ts';

const names = process.argv.slice(2);
const found = await statementsByOperation();
const unknown = names.filter((name) => !found.has(name));
if (unknown.length > 0) {
  console.error(
    `unknown operation: ${unknown.join(', ')}; the operations are ${[...found.keys()].toSorted().join(', ')}`,
  );
  process.exitCode = 1;
} else {
  for (const [operation, statements] of found) {
    if (names.length > 0 && !names.includes(operation)) continue;
    console.log(`-- ${operation}`);
    for (const statement of statements) console.log(`${statement};\n`);
  }
}
