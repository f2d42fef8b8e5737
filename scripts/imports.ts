/** Reads the imports of a file. */
import { readFileSync } from 'node:fs';
import { type Node, parseSync, Visitor } from 'oxc-parser';

interface Import {
  line: number;
  /** The specifier in the source. */
  target: string;
}

/** Reads all forms of imports: import, export from, import() and the type import('…'). */
export function readImports(path: string): Import[] {
  const source = readFileSync(path, 'utf8');
  const { program, errors } = parseSync(path, source);
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`);
  const imports: Import[] = [];
  const note = ({ start, source: target }: { start: number; source: Node | null }) => {
    if (target === null) return; // An export of a local declaration.
    const name = target.type === 'Literal' && typeof target.value === 'string' ? target.value : 'a computed name';
    imports.push({ line: source.slice(0, start).split('\n').length, target: name });
  };
  new Visitor({
    ImportDeclaration: note,
    ExportNamedDeclaration: note,
    ExportAllDeclaration: note,
    ImportExpression: note,
    TSImportType: note,
  }).visit(program);
  return imports;
}
