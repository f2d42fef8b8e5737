/** The syntax trees of the sources of the server, and the declarations to which names in them refer. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Comment, type Node, parseSync } from 'oxc-parser';

const ROOT = join(import.meta.dirname, '../../..');

export type Tree = Node & { type: string };

/** Something that has parameters and answers. */
export interface Callable {
  name: string;
  file: string;
  parameters: readonly string[];
  body: Tree;
}

export interface Source {
  file: string;
  text: string;
  program: Tree;
  comments: readonly Comment[];
  functions: ReadonlyMap<string, Callable>;
  /** Constants of the file. */
  constants: ReadonlyMap<string, Tree>;
  /** By the name here: in which file it is called what. */
  imports: ReadonlyMap<string, { file: string; name: string }>;
}

/** Where refusals, failures and explanations are made; reading all would take twice as long. */
const MAKERS = /^src\/(accounts|api|delivery|engine|protocol|store\/parts|workflow)\//;

export function readSources(): Map<string, Source> {
  const sources = new Map<string, Source>();
  for (const file of globSync('src/**/*.ts', { cwd: ROOT }).toSorted()) {
    const text = readFileSync(join(ROOT, file), 'utf8');
    // Wherever else somebody refuses a request, it is read too.
    if (MAKERS.test(file) || /\bApiError\b|\brefusal\(/.test(text)) sources.set(file, readSource(file, text));
  }
  return sources;
}

function readSource(file: string, text: string): Source {
  const { program, comments, errors } = parseSync(file, text);
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  const functions = new Map<string, Callable>();
  const constants = new Map<string, Tree>();
  const imports = new Map<string, { file: string; name: string }>();
  for (const statement of program.body) {
    if (statement.type === 'ImportDeclaration' && statement.source.value.startsWith('.')) {
      const from = join(dirname(file), statement.source.value);
      for (const specifier of statement.specifiers) {
        if (specifier.type !== 'ImportSpecifier' || specifier.imported.type !== 'Identifier') continue;
        imports.set(specifier.local.name, { file: from, name: specifier.imported.name });
      }
    }
    const declared =
      statement.type === 'ExportNamedDeclaration' && statement.declaration ? statement.declaration : statement;
    if (declared.type === 'VariableDeclaration') {
      for (const { id, init } of declared.declarations) {
        if (id.type !== 'Identifier' || !init) continue;
        constants.set(id.name, init as Tree);
        const made = init.type === 'CallExpression' ? init.arguments[0] : init; // such as memo((url) => …)
        if (made?.type === 'ArrowFunctionExpression') functions.set(id.name, callable(file, id.name, made));
      }
    }
  }
  walk(program as Tree, (node) => {
    if (node.type === 'FunctionDeclaration' && node.id && node.body) {
      functions.set(node.id.name, callable(file, node.id.name, node));
    }
    if (node.type === 'ClassDeclaration' && node.id) {
      // A class is what its constructor makes of its parameters.
      for (const member of node.body.body) {
        if (member.type !== 'MethodDefinition' || member.kind !== 'constructor') continue;
        functions.set(node.id.name, callable(file, node.id.name, member.value as Tree));
      }
    }
  });
  return { file, text, program: program as Tree, comments, functions, constants, imports };
}

// biome-ignore lint/suspicious/noExplicitAny: functions of all kinds have these two
function callable(file: string, name: string, { params, body }: any): Callable {
  const parameters = (params as Tree[]).map((parameter) => {
    const target = parameter.type === 'AssignmentPattern' ? parameter.left : parameter;
    return target.type === 'Identifier' ? target.name : '';
  });
  return { name, file, parameters, body };
}

/** What something is, and what to do about it. */
export interface Said {
  cause: string;
  remedy: string;
}

/** What the comment right before `node` says. Throws where it says too little, unless it may. */
export function saidOf(source: Source, node: Tree, may: { mayLack: true }): Said | undefined;
export function saidOf(source: Source, node: Tree, may?: { isRemedyOnly: true }): Said;
export function saidOf(
  { file, text, comments }: Source,
  node: Tree,
  { mayLack = false, isRemedyOnly = false }: { mayLack?: boolean; isRemedyOnly?: boolean } = {},
): Said | undefined {
  const comment = comments.findLast(({ end }) => end <= node.start);
  const isBefore = comment !== undefined && /^[\s|]*$/.test(text.slice(comment.end, node.start));
  const said = isBefore
    ? comment.value
        .replaceAll(/^[ *]+/gm, '')
        .replaceAll(/\s+/g, ' ')
        .trim()
    : '';
  const [cause = '', remedy = ''] = said.split(/\s*Remedy: /);
  if (remedy === '' || (cause === '' && !isRemedyOnly)) {
    if (mayLack) return undefined;
    throw new Error(`${file}: no cause and remedy before ${text.slice(node.start, node.start + 80)}`);
  }
  // A citation of the contract is for those who read the code.
  const meant = isRemedyOnly ? '' : cause.replaceAll(/ \(contract [^)]*\)/g, '');
  return { cause: meant, remedy: `${remedy[0]?.toUpperCase()}${remedy.slice(1)}` };
}

/** Calls `visit` for every node, a parent before its children, with all that are around it. */
export function walk(node: Tree, visit: (node: Tree, around: readonly Tree[]) => void, around: Tree[] = []): void {
  visit(node, around);
  around.push(node);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child === 'object' && child !== null && 'type' in child) walk(child as Tree, visit, around);
    }
  }
  around.pop();
}
