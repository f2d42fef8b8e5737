/** Builds the example of an operation as a request and as a curl command. The API page shows the command and sends the request. */

export interface ExampleRequest {
  method: string;
  /** A template with `{parameters}`. */
  path: string;
  isPublic: boolean;
  parameters: readonly ExampleParameter[];
  body?: string | undefined;
}

interface ExampleParameter {
  in: 'path' | 'query' | 'header';
  name: string;
  value: string;
}

/** The members of an operation in the OpenAPI document that are used. */
interface DescribedOperation {
  security: readonly unknown[];
  parameters?: readonly (Pick<ExampleParameter, 'in' | 'name'> & { example?: string })[];
  requestBody?: { content: Readonly<Record<string, { example?: unknown }>> };
}

export function exampleRequest(
  method: string,
  path: string,
  { security, parameters = [], requestBody }: DescribedOperation,
): ExampleRequest {
  const [content] = Object.values(requestBody?.content ?? {});
  return {
    method: method.toUpperCase(),
    path,
    isPublic: security.length === 0,
    parameters: parameters.flatMap(({ in: location, name, example }) =>
      example === undefined ? [] : [{ in: location, name, value: example }],
    ),
    body: content?.example === undefined ? undefined : JSON.stringify(content.example),
  };
}

/** The path with its query. */
export function targetOf({ path, parameters }: Pick<ExampleRequest, 'path' | 'parameters'>): string {
  const valuesIn = (location: ExampleParameter['in']) => parameters.filter((parameter) => parameter.in === location);
  const values = new Map(valuesIn('path').map(({ name, value }) => [name, value]));
  const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = values.get(name) ?? '';
    // A destination is not encoded: the server reads it byte for byte.
    return name.startsWith('destination') && /^https?:/i.test(value) ? value : encodeURIComponent(value);
  });
  const query = valuesIn('query').map(({ name, value }) => `${name}=${encodeURIComponent(value)}`);
  return query.length === 0 ? target : `${target}${target.includes('?') ? '&' : '?'}${query.join('&')}`;
}

/** All headers except the token. */
export function headersOf({ parameters, body }: ExampleRequest): Record<string, string> {
  const given = parameters.filter((parameter) => parameter.in === 'header');
  return {
    ...Object.fromEntries(given.map(({ name, value }) => [name, value])),
    ...(body !== undefined && { 'Content-Type': isJson(body) ? 'application/json' : 'text/plain' }),
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A command for `sh`, `bash` and `zsh`, with the environment variables of the client libraries. */
export function curlOf(request: ExampleRequest): string {
  const { method, isPublic, body } = request;
  const target = targetOf(request);
  const verb = { GET: '', HEAD: ' --head' }[method] ?? ` -X ${method}`;
  // Without these options, curl would expand brackets as a range and shorten the path.
  const asIs = /[[\]{}]|\/\.\.?(\/|$)/.test(target) ? ' --globoff --path-as-is' : '';
  return [
    `curl -sS${verb}${asIs} "$QSTASH_URL"${quotedWhereNeeded(target)}`,
    ...(isPublic ? [] : ['-H "Authorization: Bearer $QSTASH_TOKEN"']),
    ...Object.entries(headersOf(request)).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`--data-raw ${quoted(body)}`]),
  ].join(' \\\n  ');
}

function quotedWhereNeeded(text: string): string {
  return /^[\w/.:,%=+@-]*$/.test(text) ? text : quoted(text);
}

/** In single quotes a shell changes nothing, not even a line break; a single quote has to be escaped. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
