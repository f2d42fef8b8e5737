/**
 * Finds in the sources all error texts of the server. A text is a pattern: `<name>` is a part that is known only at run time.
 * If a text is a parameter, the calls of the function are searched.
 */
import { type Callable, type Source, type Tree, walk } from './sources.ts';

/** What a name stands for within a function: the values of its parameters, where it is called. */
type Given = ReadonlyMap<string, readonly string[]>;

export interface Refusal {
  /** A code of the catalogue, or a status. */
  code: string;
  text: string;
}

/** Where a code and a text stand. */
interface Pair {
  code: Tree;
  text: Tree;
  before?: string;
}

interface Call {
  source: Source;
  node: Extract<Tree, { type: 'CallExpression' | 'NewExpression' }>;
  around: readonly Tree[];
}

/** Parameters that name what is wrong: one text for all of them. */
const FIELDS = new Set(['name', 'header', 'kind', 'id', 'spec', 'value', 'url']);
const DEPTH_MAX = 4;
/** Functions that only shorten or write what they are given. */
const SHOWS = new Set(['quoted', 'cut', 'String', 'JSON.stringify', 'nameOf', 'slice']);

export class Texts {
  readonly #sources: ReadonlyMap<string, Source>;

  readonly #calls: ReadonlyMap<Callable, readonly Call[]>;
  readonly #given = new Map<Callable, readonly Given[]>();

  constructor(sources: ReadonlyMap<string, Source>) {
    this.#sources = sources;
    this.#calls = this.#findCalls();
  }

  /** Of each `new ApiError(code, text)`, and of each `refusal(status, text)` beside them. */
  refusals(): Refusal[] {
    const found: Refusal[] = [];
    this.#eachText(refusedWith, ([code, text]) => found.push({ code: code.replace(/^(\d{3}) .*/, '$1'), text }));
    // The reasons of the last kind are found where they are made.
    const isKnown = ({ code, text }: Refusal) => !code.includes('<') && !/^<\w+>$|: <reason>$/.test(text);
    return distinct(found.filter(isKnown));
  }

  /** Of each object of `file` that has a word as one member and a text as another. */
  pairs(file: string, word: string, text: string): Refusal[] {
    const found: Refusal[] = [];
    const given = (node: Tree) => (node.type === 'ObjectExpression' ? pairIn(node, word, text) : undefined);
    this.#eachText(given, ([code, said]) => found.push({ code, text: said }), file);
    return distinct(found.filter(({ text: said }) => !/^<\w+>$/.test(said)));
  }

  /** What a function answers in each case of its switch. */
  cases(file: string, name: string): Refusal[] {
    const source = this.#sources.get(file);
    const found: Refusal[] = [];
    const called = source?.functions.get(name);
    if (source === undefined || called === undefined) throw new Error(`${file} has no function ${name}`);
    walk(called.body, (node) => {
      if (node.type !== 'SwitchStatement') return;
      let first: string | undefined;
      for (const { test, consequent } of node.cases) {
        // Of cases that share their lines, the first is the one that is meant.
        if (test?.type === 'Literal') first ??= String(test.value);
        if (first === undefined || consequent.length === 0) continue;
        const body = { ...node, cases: [], discriminant: consequent[0] } as unknown as Tree;
        for (const text of this.#answers({ ...called, body }, new Map(), 0)) found.push({ code: first, text });
        first = undefined;
      }
    });
    return found;
  }

  #eachText(
    given: (node: Tree, around: readonly Tree[]) => Pair | undefined,
    found: (pair: [code: string, text: string]) => void,
    only?: string,
  ): void {
    for (const source of this.#sources.values()) {
      if (only !== undefined && source.file !== only) continue;
      walk(source.program, (node, around) => {
        const pair = given(node, around);
        if (pair === undefined) return;
        for (const parameters of this.#callsOf(makerAround(source, around))) {
          for (const code of this.#written(source, pair.code, parameters, around)) {
            for (const text of this.#written(source, pair.text, parameters, around))
              found([code, `${pair.before ?? ''}${text}`]);
          }
        }
      });
    }
  }

  /** What functions with one of these names answer, or hand on as `member` of what they answer. */
  answersOf(file: string, names: readonly string[]): string[] {
    const source = this.#sources.get(file);
    const texts = names.flatMap((name) => {
      const found = source?.functions.get(name);
      return found ? this.#answers(found, new Map(), 0) : [];
    });
    return [...new Set(texts)];
  }

  /** How a function is called: for each call, what its parameters are. Nothing is known of one that nobody calls by name. */
  #callsOf(maker: Callable | undefined): readonly Given[] {
    if (maker === undefined) return [new Map()];
    const known = this.#given.get(maker);
    if (known !== undefined) return known;
    this.#given.set(maker, [new Map()]); // for one that calls itself
    const calls = new Map<string, Given>();
    for (const { source, node, around } of this.#calls.get(maker) ?? []) {
      for (const outer of this.#callsOf(makerAround(source, around))) {
        const values = maker.parameters.map((name, at): [string, readonly string[]] => {
          const argument = node.arguments[at] as Tree | undefined;
          return [name, argument ? this.#written(source, argument, outer, around) : ['']];
        });
        calls.set(JSON.stringify(values), new Map(values));
      }
    }
    const found = calls.size === 0 ? [new Map()] : [...calls.values()];
    this.#given.set(maker, found);
    return found;
  }

  /** Where each function is called by its name. */
  #findCalls(): Map<Callable, Call[]> {
    const calls = new Map<Callable, Call[]>();
    for (const source of this.#sources.values()) {
      walk(source.program, (node, around) => {
        if (node.type !== 'CallExpression' && node.type !== 'NewExpression') return;
        const called = node.callee.type === 'Identifier' ? this.#resolve(source, node.callee.name) : undefined;
        if (called) calls.set(called, [...(calls.get(called) ?? []), { source, node, around: [...around] }]);
      });
    }
    return calls;
  }

  #resolve(source: Source, name: string): Callable | undefined {
    const own = source.functions.get(name);
    if (own) return own;
    const imported = source.imports.get(name);
    return imported && this.#sources.get(imported.file)?.functions.get(imported.name);
  }

  /** All texts that an expression can be. */
  #written(source: Source, node: Tree, given: Given, around: readonly Tree[], depth = 0): readonly string[] {
    const written = (part: Tree) => this.#written(source, part, given, around, depth);
    switch (node.type) {
      case 'Literal':
        return [String(node.value)];
      case 'TemplateLiteral':
        return node.quasis.reduce<readonly string[]>(
          (texts, { value }, at) => {
            const expression = node.expressions[at];
            const ends = expression ? written(expression as Tree) : [''];
            return texts.flatMap((text) => ends.map((end) => `${text}${value.cooked ?? ''}${end}`));
          },
          [''],
        );
      case 'ConditionalExpression':
        return [...written(node.consequent as Tree), ...written(node.alternate as Tree)];
      case 'LogicalExpression':
        return node.operator === '??'
          ? [...written(node.left as Tree), ...written(node.right as Tree)].filter(Boolean)
          : [nameless];
      case 'Identifier':
        return this.#named(source, node.name, given, around, depth);
      case 'MemberExpression':
        return [`<${node.property.type === 'Identifier' ? node.property.name : 'value'}>`];
      case 'CallExpression':
      case 'AwaitExpression':
        return this.#called(source, node, given, around, depth);
      default:
        return [nameless];
    }
  }

  #named(source: Source, name: string, given: Given, around: readonly Tree[], depth: number): readonly string[] {
    const value = given.get(name);
    if (value !== undefined && !FIELDS.has(name)) return value;
    const imported = source.imports.get(name);
    const home = imported ? this.#sources.get(imported.file) : source;
    const constant = home?.constants.get(imported?.name ?? name);
    if (home && constant) {
      const texts = this.#written(home, constant, new Map(), [], depth);
      return texts.includes(nameless) ? [`<${name}>`] : texts;
    }
    const init = declarationOf(name, around);
    if (init === undefined || depth > DEPTH_MAX) return [`<${name}>`];
    const texts = this.#written(source, init, given, around, depth + 1).filter((text) => text !== nameless);
    return texts.length === 0 ? [`<${name}>`] : texts.map((text) => (/^<\w+>$/.test(text) ? `<${name}>` : text));
  }

  #called(source: Source, node: Tree, given: Given, around: readonly Tree[], depth: number): readonly string[] {
    if (node.type === 'AwaitExpression') return this.#written(source, node.argument as Tree, given, around, depth);
    if (node.type !== 'CallExpression') return [nameless];
    const name = calleeName(node);
    const [first] = node.arguments;
    if (name === 'quoted' && first?.type === 'Identifier') return [`<${first.name}>`]; // a value from a client
    if (SHOWS.has(name)) {
      const shown = name === 'slice' && node.callee.type === 'MemberExpression' ? node.callee.object : first;
      return shown ? this.#written(source, shown as Tree, given, around, depth) : [nameless];
    }
    const called = this.#resolve(source, name);
    if (called === undefined || depth > DEPTH_MAX) return [nameless];
    const values = called.parameters.map((parameter, at): [string, readonly string[]] => {
      const argument = node.arguments[at] as Tree | undefined;
      return [parameter, argument ? this.#written(source, argument, given, around, depth + 1) : ['']];
    });
    const texts = this.#answers(called, new Map(values), depth + 1);
    return texts.length === 0 ? [nameless] : texts;
  }

  /** The texts among what a function returns. */
  #answers(called: Callable, given: Given, depth: number): string[] {
    const source = this.#sources.get(called.file);
    const texts: string[] = [];
    if (source === undefined) return texts;
    walk(called.body, (node, around) => {
      if (node.type !== 'ReturnStatement' || !node.argument) return;
      const inner = around.some(({ type }) => type === 'ArrowFunctionExpression' || type === 'FunctionExpression');
      if (inner) return;
      const written = this.#written(source, node.argument as Tree, given, [called.body, ...around], depth);
      texts.push(...written.filter((text) => text !== nameless && text !== '' && !/^<\w+>$/.test(text)));
    });
    return texts;
  }
}

/** What nothing is known of. */
const nameless = '<value>';

/** The same text with other names for what is known only then is one; an end in brackets is left out. */
function distinct(refusals: readonly Refusal[]): Refusal[] {
  const known = new Map<string, Refusal>();
  for (const { code, text } of refusals) {
    const plain = text
      .replaceAll('>…', '>')
      .replace(/ \(<\w+>\)$/, '')
      .replace(/^<value>-/, 'Upstash-');
    const key = `${code} ${plain.replaceAll(/<\w+>/g, '<>')}`;
    if (!known.has(key) && !/ {2}|^invalid :|name :|""/.test(plain)) known.set(key, { code, text: plain });
  }
  return [...known.values()];
}

function pairIn(node: Extract<Tree, { type: 'ObjectExpression' }>, word: string, text: string): Pair | undefined {
  const values = new Map<string, Tree>();
  for (const property of node.properties) {
    if (property.type !== 'Property' || property.key.type !== 'Identifier') continue;
    values.set(property.key.name, property.value as Tree);
  }
  const [code, said] = [values.get(word), values.get(text)];
  return code?.type === 'Literal' && said ? { code, text: said } : undefined;
}

const CODE_OF_HEADERS = { type: 'Literal', value: 'invalid_header' } as Tree;

function refusedWith(node: Tree, around: readonly Tree[]): Pair | undefined {
  const isError = node.type === 'NewExpression' && node.callee.type === 'Identifier' && node.callee.name === 'ApiError';
  const isRefusal =
    node.type === 'CallExpression' && node.callee.type === 'Identifier' && node.callee.name === 'refusal';
  // Its reason stands behind the name of the header.
  const isOfExpression =
    node.type === 'NewExpression' && node.callee.type === 'Identifier' && node.callee.name === 'DelayExpressionError';
  if (isOfExpression) return { code: CODE_OF_HEADERS, text: node.arguments[0] as Tree, before: 'invalid <header>: ' };
  // Answers that are written before there is a request: a line of HTTP and a text.
  if (node.type === 'ArrayExpression') {
    const [line, said] = node.elements as Tree[];
    const isAnswer = line?.type === 'Literal' && /^\d{3} /.test(String(line.value));
    return isAnswer && said ? { code: line, text: said } : undefined;
  }
  const isSuper = node.type === 'CallExpression' && node.callee.type === 'Super' && isApiError(around);
  if (!isError && !isRefusal && !isSuper) return undefined;
  const [code, text] = node.arguments as Tree[];
  return code && text ? { code, text } : undefined;
}

function isApiError(around: readonly Tree[]): boolean {
  return around.some(
    (node) =>
      node.type === 'ClassDeclaration' && node.superClass?.type === 'Identifier' && node.superClass.name === 'ApiError',
  );
}

/** The named function that a place is in, from which the parameters come. */
function makerAround(source: Source, around: readonly Tree[]): Callable | undefined {
  for (const node of around.toReversed()) {
    if (node.type === 'FunctionDeclaration' && node.id) return source.functions.get(node.id.name);
    if (node.type === 'MethodDefinition') {
      const owner = around.findLast(({ type }) => type === 'ClassDeclaration');
      const isConstructor = node.kind === 'constructor' && owner?.type === 'ClassDeclaration' && owner.id;
      return isConstructor ? source.functions.get(owner.id?.name ?? '') : undefined;
    }
  }
  return undefined;
}

/** What a name was declared to be in the nearest block around. */
function declarationOf(name: string, around: readonly Tree[]): Tree | undefined {
  for (const block of around.toReversed()) {
    if (block.type !== 'BlockStatement') continue;
    for (const statement of block.body) {
      if (statement.type !== 'VariableDeclaration') continue;
      const found = statement.declarations.find(({ id }) => id.type === 'Identifier' && id.name === name);
      if (found?.init) return found.init as Tree;
    }
  }
  return undefined;
}

function calleeName(node: Tree): string {
  if (node.type !== 'CallExpression') return '';
  const { callee } = node;
  if (callee.type === 'Identifier') return callee.name;
  if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier') return '';
  const { name } = callee.property;
  return callee.object.type === 'Identifier' && callee.object.name === 'JSON' ? `JSON.${name}` : name;
}
