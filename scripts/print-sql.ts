/**
 * `npm run sql -- [operation…]`: prints what operations of the store send, as plain SQL for `psql`. Without a name: of all.
 * The dialect in which they are written: docs/sql.md.
 */
import { statementsByOperation } from '../test/store/statements.ts';

const wanted = process.argv.slice(2);
const found = await statementsByOperation();
const unknown = wanted.filter((name) => !found.has(name));
if (unknown.length > 0) {
  console.error(`no operation is called ${unknown.join(' or ')}; there are ${[...found.keys()].toSorted().join(', ')}`);
  process.exitCode = 1;
} else {
  for (const [operation, statements] of found) {
    if (wanted.length > 0 && !wanted.includes(operation)) continue;
    console.log(`-- ${operation}`);
    for (const statement of statements) console.log(`${statement};\n`);
  }
}
