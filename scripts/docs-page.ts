/**
 * Renders the OpenAPI document as one HTML page when the console is built. The page is readable without its script
 * console/src/docs/main.ts, which adds search and sends requests, and relies on the classes and `data-` attributes of the
 * page.
 */
import { curlOf, exampleRequest } from '../console/src/docs/example-request.ts';
import type { Content, JsonSchema, OpenApiDocument, Operation, Parameter } from '../src/api/openapi.ts';

/** Text that is already HTML. All other text is escaped when it is inserted into HTML. */
class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Fragment = string | Html | readonly Fragment[];

export function docsPage({ info, tags, paths, components }: OpenApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const sections = tags.map(({ name }) => {
    const members = operations.filter(({ operation }) => operation.tags.includes(name));
    const rendered = members.map(({ path, method, operation }) =>
      renderOperation(path, method, operation, components.responses),
    );
    return html`<section><h2 id="${slug(name)}">${name}</h2>${rendered}</section>`;
  });
  const schemas = Object.entries(components.schemas).map(([name, schema]) => renderSchema(name, schema));
  const links = [...tags.map(({ name }) => name), 'Schemas'].map(
    (name) => html`<li><a href="#${slug(name)}">${name}</a></li>`,
  );
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title}: API reference</title>
<link rel="stylesheet" href="/console/docs.css">
<script type="module" src="/console/docs.js"></script>
</head>
<body>
<header><h1>${info.title}</h1><p>${prose(info.description)}</p>
<p>The token is sent in the header <code>Authorization: Bearer</code>, or in the query as <code>qstash_token</code>.
The machine-readable document is <a href="openapi.json">openapi.json</a>. The examples are for a shell with the variables <code>QSTASH_URL</code> and
<code>QSTASH_TOKEN</code>.</p>
<div id="tools"></div>
<nav><ul>${links}</ul></nav></header>
<main>${sections}<section><h2 id="${slug('Schemas')}">Schemas</h2>${schemas}</section></main>
</body>
</html>
`.text;
}

/** The id is inside the collapsed section, so that a link to the id expands the section. */
function renderOperation(
  path: string,
  method: string,
  operation: Operation,
  errorResponses: OpenApiDocument['components']['responses'],
): Html {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  const example = exampleRequest(method, path, operation);
  const parameterTables = (['path', 'query', 'header'] as const).map((location) =>
    renderParameters(
      location,
      parameters.filter((parameter) => parameter.in === location),
    ),
  );
  const body =
    requestBody === undefined
      ? ''
      : html`<h4>Body</h4><div class="body" data-example="${example.body ?? ''}">${requestBody.description ?? ''}
${renderContent(requestBody.content)}</div>`;
  const responseRows = Object.entries(responses).map(([status, described]) => {
    const response = '$ref' in described ? errorResponses[lastWord(described.$ref)] : described;
    const content = '$ref' in described || response?.content === undefined ? '' : renderContent(response.content);
    return html`<tr><td class="status">${status}</td><td>${prose(response?.description ?? '')} ${content}</td></tr>`;
  });
  return html`<details class="operation" data-method="${example.method}" data-path="${path}" data-public="${String(example.isPublic)}">
<summary><code><span class="method">${example.method}</span>${path}</code>
<span class="quiet">${summary}</span></summary><div id="operation-${operationId}"><p>${prose(description)}</p>
<pre class="example">${curlOf(example)}</pre>${parameterTables}${body}
<h4>Responses</h4><table>${responseRows}</table></div></details>
`;
}

function renderParameters(location: Parameter['in'], parameters: readonly Parameter[]): Fragment {
  if (parameters.length === 0) return '';
  const rows = parameters.map(
    ({ name, description, schema, example = '' }) =>
      html`<tr data-in="${location}" data-name="${name}" data-example="${example}"><td><code>${name}</code></td>
<td>${renderType(schema)}</td><td>${description}</td></tr>`,
  );
  const title = { path: 'Path parameters', query: 'Query parameters', header: 'Headers' }[location];
  return html`<h4>${title}</h4><div class="scroll"><table>${rows}</table></div>`;
}

function renderContent(content: Content): Fragment {
  return Object.entries(content).map(([type, { schema }]) =>
    schema === undefined ? 'Bytes of any content type.' : html`<code>${type}</code>: ${renderType(schema)}`,
  );
}

function renderSchema(name: string, schema: JsonSchema): Html {
  const members = renderMembers(schema);
  const description = textOf(schema['description']);
  const content =
    members.length === 0
      ? html`<div>${renderType(schema)}</div><p>${description}</p>`
      : html`<p>${description}</p><div class="scroll"><table>${members}</table></div>`;
  return html`<details><summary><code>${name}</code></summary><div id="shape-${name}">${content}</div></details>
`;
}

function renderMembers(schema: JsonSchema): Html[] {
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  return Object.entries(schemasIn(schema['properties'])).map(([name, member]) => {
    const presence = required.includes(name) ? '' : 'optional';
    return html`<tr><td><code>${name}</code></td><td>${renderType(member)}</td><td>${textOf(member['description'])}</td>
<td class="quiet">${presence}</td></tr>`;
  });
}

/** Renders a short description of a schema. */
function renderType(schema: JsonSchema): Fragment {
  const { $ref, enum: words, const: constant, anyOf, items, patternProperties, properties, type, examples } = schema;
  if (typeof $ref === 'string') return html`<a href="#shape-${lastWord($ref)}">${lastWord($ref)}</a>`;
  if (Array.isArray(words))
    return separated(
      words.map((word) => html`<code>${String(word)}</code>`),
      ', ',
    );
  if (constant !== undefined) return html`<code>${JSON.stringify(constant)}</code>`;
  if (Array.isArray(anyOf))
    return separated(
      anyOf.map((choice: JsonSchema) => renderType(choice)),
      ' or ',
    );
  if (items !== undefined) return ['array of ', renderType(items as JsonSchema)];
  if (properties !== undefined) {
    const rows = renderMembers(schema);
    return html`<div class="scroll"><table>${rows}</table></div>`;
  }
  const [values] = Object.values(schemasIn(patternProperties));
  if (values !== undefined) return ['object of ', renderType(values)];
  const [example] = Array.isArray(examples) ? examples : [];
  const shown = example === undefined ? '' : html`, such as <code>${String(example)}</code>`;
  return [textOf(type), shown];
}

function schemasIn(value: unknown): Record<string, JsonSchema> {
  return typeof value === 'object' && value !== null ? (value as Record<string, JsonSchema>) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function separated(parts: readonly Fragment[], separator: string): Fragment {
  return parts.flatMap((part, index) => (index === 0 ? [part] : [separator, part]));
}

/** Renders text between backticks as code. */
function prose(text: string): Fragment {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}

function slug(name: string): string {
  return name.toLowerCase().replaceAll(/\W+/g, '-');
}

function lastWord(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

function html(texts: TemplateStringsArray, ...parts: Fragment[]): Html {
  return new Html(texts.map((text, index) => text + toText(parts[index] ?? '')).join(''));
}

function toText(part: Fragment): string {
  if (part instanceof Html) return part.text;
  if (typeof part !== 'string') return part.map(toText).join('');
  return part.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
