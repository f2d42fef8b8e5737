/** What is docs/errors.md? Made of the sources, so that each text stands in one place. */
import { readSources, type Said, type Source, saidOf, type Tree, walk } from './sources.ts';
import { type Refusal, Texts } from './texts.ts';

/** Statuses that have no code of their own, or for which one of several codes speaks. */
const CODE_OF_STATUS: Readonly<Record<string, string>> = {
  '400': 'invalid_request',
  '403': 'forbidden',
  '404': 'not_found',
  '405': 'method_not_allowed',
  '413': 'body_too_large',
  '429': 'rate_limited',
  '431': 'headers_too_large',
  '503': 'unavailable',
};

export function errorsPage(): string {
  const sources = readSources();
  const texts = new Texts(sources);
  const source = (file: string): Source => {
    const found = sources.get(file);
    if (found === undefined) throw new Error(`${file} is gone`);
    return found;
  };
  return `# Errors

<!-- Made of the sources by test/docs/errors: change the text or the comment there, then npm test -- test/docs/errors --update -->

Each text with which Waypost refuses a request, fails an attempt, or says why something waits; what it means, and what to do. \`<words>\` stand for
what is known only then. Do you know the symptom, but no text? [Troubleshooting](troubleshooting.md) begins there.

## When a request is refused

The answer is \`{"error": "<text>"}\` with the status. Nothing of a refused request is stored, unless its text says so. Of a batch the text ends
with \`(item <index>)\`, and of an endpoint of a URL group with \`(endpoint <name>)\`.

${refusedRequests(texts, source('src/protocol/errors.ts'), source('src/api/answer.ts'), source('src/api/edge/connection-errors.ts'), source('src/api/edge/listener.ts')).join('\n\n')}

## When an attempt fails

The text stands in the log (\`waypost logs\`), in the DLQ, in callbacks and in the console; the word before it is the cause that
[metrics](metrics.md) count by. Whatever the cause, the attempt is repeated as often as the message's retries say, but for \`unsendable\` and
for answers that [forbid it](receiving.md).

${failedAttempts(texts, source).join('\n\n')}

## When something waits

\`waypost explain <id>\`, the console and \`GET /v2/messages/<id>/explain\` say why, as a word (\`reason\`) and as a sentence.

| reason | sentence | what it means | what to do |
|---|---|---|---|
${waits(texts, source).join('\n')}
`;
}

function refusedRequests(texts: Texts, catalogue: Source, ...others: readonly Source[]): string[] {
  const refusals = texts.refusals();
  const table = catalogue.constants.get('STATUS_BY_CODE');
  const codes = table?.type === 'TSAsExpression' ? table.expression : table;
  if (codes?.type !== 'ObjectExpression') throw new Error('errors.ts has no STATUS_BY_CODE');
  const entries = codes.properties.map((property) => {
    if (property.type !== 'Property' || property.key.type !== 'Identifier' || property.value.type !== 'Literal') {
      throw new Error('STATUS_BY_CODE is more than names and numbers');
    }
    return { code: property.key.name, status: String(property.value.value), said: saidOf(catalogue, property as Tree) };
  });
  const listed = new Set(entries.map(({ code }) => code));
  // What is wrong with a destination is found apart from where it is said.
  const checks = texts.pairs('src/delivery/addresses/destination-check.ts', 'kind', 'reason');
  refusals.push(
    ...checks.map(({ text }) => ({ code: 'invalid_destination', text: `invalid destination url: ${text}` })),
  );
  const placed = Map.groupBy(refusals, ({ code }) => CODE_OF_STATUS[code] ?? code);
  // What has neither a code nor a place above says itself what it is.
  for (const status of [...placed.keys()].filter((key) => !listed.has(key))) {
    entries.push({ code: NAMES[status] ?? status, status, said: saidBeside(status, others) });
    placed.set(NAMES[status] ?? status, placed.get(status) ?? []);
  }
  return entries
    .toSorted((a, b) => Number(a.status) - Number(b.status))
    .map(({ code, status, said }) => {
      const words = code.replaceAll('_', ' ');
      return section(`${status}: ${words}`, said, placed.get(code) ?? []);
    });
}

const NAMES: Readonly<Record<string, string>> = {
  '408': 'request_timeout',
  '417': 'expectation_failed',
  '500': 'internal_error',
};

/** The comment beside the only refusal with this status. */
function saidBeside(status: string, sources: readonly Source[]): Said {
  const found: Said[] = [];
  for (const source of sources) {
    walk(source.program, (node, around) => {
      if (node.type !== 'Literal' || !String(node.value).startsWith(status)) return;
      for (const place of around.toReversed()) {
        const said = saidOf(source, place, { mayLack: true });
        if (said !== undefined) {
          found.push(said);
          return;
        }
      }
    });
  }
  if (found[0] === undefined) throw new Error(`nothing is said about the status ${status}`);
  return found[0];
}

function failedAttempts(texts: Texts, source: (file: string) => Source): string[] {
  const outcome = 'src/delivery/outcome.ts';
  const causes = [...texts.pairs(outcome, 'reason', 'error'), ...texts.cases(outcome, 'textOf')];
  const model = source('src/engine/model.ts');
  const named = wordsOf(model, 'UnreachableReason').map(({ word, said }) =>
    section(
      `\`${word}\``,
      said,
      causes.filter(({ code }) => code === word),
    ),
  );
  const byFunction = (file: string, name: string, title: string): string => {
    const found = texts.answersOf(file, [name]).map((text) => ({ code: '', text }));
    const declared = source(file).program.type === 'Program' ? declarationIn(source(file), name) : undefined;
    return section(title, declared && saidOf(source(file), declared, { isRemedyOnly: true }), found);
  };
  return [
    byFunction('src/engine/messages/decide.ts', 'answeredWith', 'The endpoint answered, but not with 2xx'),
    ...named,
    byFunction('src/workflow/detection.ts', 'detectionError', 'No workflow answers there'),
    byFunction('src/workflow/detection.ts', 'stepMissingError', 'A step with settings brings no result'),
  ];
}

function waits(texts: Texts, source: (file: string) => Source): string[] {
  const messages = source('src/engine/messages/explain.ts');
  const runs = source('src/engine/runs/logs/explain.ts');
  const reasons = [...elementsOf(messages, 'UNFINISHED_REASONS'), ...wordsOf(runs, 'RunReason')];
  const files = ['messages/explain.ts', 'runs/logs/explain.ts'];
  const sentences = files.flatMap((file) => texts.pairs(`src/engine/${file}`, 'reason', 'sentence'));
  return reasons.map(({ word, said }) => {
    // The longer ones say the same with more of what is known.
    const [sentence] = sentences
      .flatMap(({ code, text }) => (code === word ? [text] : []))
      .sort((a, b) => a.length - b.length);
    if (sentence === undefined) throw new Error(`no sentence for ${word}`);
    return `| \`${word}\` | ${sentence.replaceAll('<', '&lt;')} | ${said.cause} | ${said.remedy} |`;
  });
}

function section(title: string, said: Said | undefined, found: readonly Refusal[]): string {
  if (said === undefined) throw new Error(`nothing is said about ${title}`);
  const lines = found.map(({ text }) => `- \`${text}\``);
  return [`### ${title}`, [said.cause, `**What to do:** ${said.remedy}`].filter(Boolean).join(' '), lines.join('\n')]
    .filter((part) => part !== '')
    .join('\n\n');
}

interface Word {
  word: string;
  said: Said;
}

/** The words of a type that is a choice of words. */
function wordsOf(source: Source, name: string): Word[] {
  const words: Word[] = [];
  walk(source.program, (node) => {
    if (node.type !== 'TSTypeAliasDeclaration' || node.id.name !== name || node.typeAnnotation.type !== 'TSUnionType')
      return;
    for (const choice of node.typeAnnotation.types as Tree[]) {
      if (choice.type !== 'TSLiteralType' || choice.literal.type !== 'Literal') continue;
      words.push({ word: String(choice.literal.value), said: saidOf(source, choice) });
    }
  });
  return words;
}

function elementsOf(source: Source, name: string): Word[] {
  const list = source.constants.get(name);
  const array = list?.type === 'TSAsExpression' ? list.expression : list;
  if (array?.type !== 'ArrayExpression') throw new Error(`${source.file} has no list ${name}`);
  return (array.elements as Tree[]).flatMap((element) =>
    element.type === 'Literal' ? [{ word: String(element.value), said: saidOf(source, element) }] : [],
  );
}

function declarationIn({ program }: Source, name: string): Tree | undefined {
  let found: Tree | undefined;
  walk(program, (node) => {
    if (node.type !== 'ExportNamedDeclaration' || node.declaration?.type !== 'FunctionDeclaration') return;
    if (node.declaration.id?.name === name) found = node;
  });
  return found;
}
