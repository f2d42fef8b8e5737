/** What does a file import? */
import { readFileSync } from 'node:fs';
import { type Node, parseSync, Visitor } from 'oxc-parser';

interface Import {
  line: number;
  /** As it is written. */
  target: string;
}

/** Every way to name another module: import, export from, import() and the type import('…'). */
export function readImports(path: string): Import[] {
  const source = readFileSync(path, 'utf8');
  const { program, errors } = parseSync(path, source);
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`);
  const imports: Import[] = [];
  const note = ({ start, source: target }: { start: number; source: Node | null }) => {
    if (target === null) return; // an export of something declared here
    const name = target.type === 'Literal' && typeof target.value === 'string' ? target.value : 'what is computed';
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
