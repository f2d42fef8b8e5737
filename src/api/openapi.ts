/**
 * Writes the interface as an OpenAPI 3.1 document from the route table, so that the document has every route. Tests check
 * responses against the schemas of the document.
 */
import type { TSchema } from '@sinclair/typebox';
import { exampleOf } from './examples.ts';
import type { Route } from './route.ts';
import { ErrorSchema } from './schemas.ts';

/** A schema as plain JSON. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface OpenApiDocument {
  openapi: '3.1.0';
  info: { title: string; version: string; description: string; license: { name: string; identifier: string } };
  servers: { url: string }[];
  tags: { name: string }[];
  /** The operations by path, then by method in lower case. */
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, JsonSchema>;
    /** The refusals, by `refusalName`. */
    responses: Record<string, Response>;
    securitySchemes: Record<string, JsonSchema>;
  };
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  security: Record<string, string[]>[];
  parameters?: Parameter[];
  requestBody?: { description?: string; required?: boolean; content: Content };
  /** The responses by status. */
  responses: Record<string, Response | { $ref: string }>;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  description: string;
  required?: true;
  schema: JsonSchema;
  /** All examples of an operation together make a complete request. */
  example?: string;
}

export interface Response {
  description: string;
  headers?: Record<string, { description: string; schema: JsonSchema }>;
  content?: Content;
}

/** The content by media type. Content without a schema may be any bytes. */
export type Content = Record<string, { schema?: JsonSchema; example?: unknown }>;

/** Version of the interface, as in the path `/v2`. `waypost version` prints the release of the server. */
const INTERFACE_VERSION = '2';

const DESCRIPTION = [
  'A message queue and durable workflow service that delivers over HTTP. A publish that returns a 2xx is on disk.',
  'Any request can also be refused with 400 when it is not well-formed HTTP, 403 when it comes from a browser page whose',
  'origin is not allowed, 405 when the path has no such method, 417, 431 when its headers are too large, and 500. Every refusal is an',
  'object with the member `error`.',
  'The response header `Waypost-Ignored` names what the server has ignored: unknown options and parameters,',
  'and connection headers that cannot be forwarded.',
].join(' ');

/** The section of each operation, by the first word of its path after `/v2`. Other paths belong to the server itself. */
const SECTIONS: Readonly<Record<string, string>> = {
  publish: 'Publish',
  trigger: 'Publish',
  enqueue: 'Publish',
  batch: 'Publish',
  messages: 'Messages',
  dlq: 'Dead letter queue',
  topics: 'URL groups',
  schedules: 'Schedules',
  queues: 'Queues',
  flowControl: 'Flow control',
  globalParallelism: 'Flow control',
  logs: 'Logs',
  events: 'Logs',
  workflows: 'Workflows',
  wait: 'Workflows',
  notify: 'Workflows',
  waiters: 'Workflows',
  keys: 'Signing keys',
  rotate: 'Signing keys',
  waypost: 'Console',
};

const SCHEDULES_PATH = '/v2/schedules/{destinationOrScheduleId}';

/**
 * OpenAPI allows only one of several paths that differ only in the name of a parameter. Our routes with such paths differ
 * in their methods too, so these routes share one path, and each operation describes its parameter.
 */
const SHARED_PATHS: Readonly<Record<string, string>> = {
  '/v2/schedules/*': SCHEDULES_PATH,
  '/v2/schedules/:scheduleId': SCHEDULES_PATH,
};

/** The description of every 202 (contract M 11). */
const DUPLICATE = 'A duplicate: no message was created; the response names the earlier one.';

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'The request is invalid; the error names the field and the rule.',
  401: 'The token is missing or unknown.',
  403: 'The scope of the token is insufficient.',
  404: 'The named resource does not exist.',
  409: 'The state of the resource does not allow the request; the error gives the reason.',
  412: 'A quota is exceeded; the error names it and its limit.',
  413: 'The body is too large.',
  422: 'Like 400, for requests of a running workflow, whose library takes a 400 for the end of the run.',
  429: 'Too many messages today, or too many requests in this second; the headers name the limit and its reset time. Or too many live streams.',
  503: 'The server cannot handle the request now; retry after `Retry-After`.',
};

const integerHeader = (description: string) => ({ description, schema: { type: 'integer' } });

/** The headers of a refusal, by status. */
const REFUSAL_HEADERS: Readonly<Record<number, Response['headers']>> = {
  429: Object.fromEntries(
    [
      { prefix: 'RateLimit', kind: 'messages of a day' },
      { prefix: 'Burst-RateLimit', kind: 'requests of a second' },
    ].flatMap(({ prefix, kind }) => [
      [`${prefix}-Limit`, integerHeader(`Only where the ${kind} are used up: how many there are.`)],
      [`${prefix}-Remaining`, integerHeader('How many are left; the request needs more.')],
      [`${prefix}-Reset`, integerHeader('When there are more, in Unix seconds.')],
    ]),
  ),
  503: { 'Retry-After': integerHeader('Seconds; not in responses of /readyz.') },
};

/** Writes the document, which depends only on `routes` and has their order. */
export function writeOpenApi(routes: readonly Route[]): OpenApiDocument {
  const schemas = new SchemaWriter();
  const paths: OpenApiDocument['paths'] = {};
  const refusals = new Set<number>();
  for (const route of routes) {
    const path = pathOf(route);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, schemas) };
    for (const status of refusalsOf(route)) refusals.add(status);
  }
  const responses = [...refusals]
    .sort((a, b) => a - b)
    .map((status) => [refusalName(status), refusal(status, schemas)]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Waypost',
      version: INTERFACE_VERSION,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map(sectionOf))].map((name) => ({ name })),
    paths,
    components: {
      schemas: schemas.named(),
      responses: Object.fromEntries(responses),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'The token in the header Authorization.' },
        qstashToken: {
          type: 'apiKey',
          in: 'query',
          name: 'qstash_token',
          description: 'The token in the query. It takes precedence over the header.',
        },
      },
    },
  };
}

/** `/v2/messages/:messageId` as `/v2/messages/{messageId}`, the embedded destination as `{destination}`. */
export function pathOf({ path }: Pick<Route, 'path'>): string {
  return SHARED_PATHS[path] ?? ownPathOf(path);
}

/** The path as if no other route shared it. */
function ownPathOf(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}').replace(/\*$/, '{destination}');
}

function operation(route: Route, schemas: SchemaWriter): Operation {
  const { responses, operationId, summary } = route;
  const parameters = parametersOf(route, schemas);
  const requestBody = bodyOf(route, schemas);
  const succeeded = Object.entries(responses).map(([status, schema]) => [status, success(status, schema, schemas)]);
  const refused = refusalsOf(route).map((status) => [
    String(status),
    { $ref: `#/components/responses/${refusalName(status)}` },
  ]);
  return {
    operationId,
    tags: [sectionOf(route)],
    summary,
    description: descriptionOf(route),
    security: securityOf(route),
    ...(parameters.length > 0 ? { parameters } : undefined),
    ...(requestBody === undefined ? undefined : { requestBody }),
    responses: Object.fromEntries([...succeeded, ...refused]),
  };
}

function securityOf({ access, isTokenInHeaderOnly }: Route): Operation['security'] {
  if (access === 'public') return [];
  return isTokenInHeaderOnly ? [{ bearer: [] }] : [{ bearer: [] }, { qstashToken: [] }];
}

function sectionOf({ path }: Route): string {
  const [, version, word = ''] = path.split('/');
  return version === 'v2' ? (SECTIONS[word] ?? word) : 'Server';
}

function descriptionOf({ access, path, takes = {} }: Route): string {
  const sentences = [
    {
      public: 'Needs no token.',
      any: 'Any token is enough.',
      read: 'A read-only token is enough.',
      publish: 'A publish-only token is enough.',
      full: 'Needs a full token.',
    }[access],
  ];
  if (takes.configHeaders) sentences.push('Each header may begin with `Waypost-` instead of `Upstash-`.');
  if (configuresMessage(takes)) {
    sentences.push('`Upstash-Forward-<Name>` is delivered as the header `<Name>`.');
    sentences.push(
      'A callback has the options of a message, with `Upstash-Callback-` instead of `Upstash-`: headers to',
    );
    sentences.push('forward, and callbacks of its own, to three levels. Its retries default to those of the message.');
  }
  if (path.endsWith('*')) {
    sentences.push('The destination and its query follow unescaped; a fully escaped destination is accepted too.');
    sentences.push('Each config header can also be sent as a query parameter, which is then not delivered.');
  }
  if (takes.filters) sentences.push('To match any of several values, repeat the name of the filter.');
  return sentences.join(' ');
}

/** The statuses of refusals of this route, besides the statuses that every route has. */
function refusalsOf({ access, path, takes = {}, refusals = [] }: Route): number[] {
  const statuses = new Set(refusals);
  if (access !== 'public') statuses.add(401).add(429).add(503); // rate limits, and the store may be unavailable
  if (access !== 'public' && access !== 'any') statuses.add(403); // the scope of the token may be insufficient
  if (path.includes(':')) statuses.add(404);
  if (Object.keys(takes).length > 0) statuses.add(400);
  if (configuresMessage(takes)) statuses.add(412);
  if (takes.body || takes.filters?.isBulk) statuses.add(413);
  return [...statuses].sort((a, b) => a - b);
}

/** Whether the route takes all options of a message; other routes with config headers take only a few. */
function configuresMessage({ configHeaders = [] }: NonNullable<Route['takes']>): boolean {
  return configHeaders.some(({ name }) => name === 'Upstash-Retries');
}

function parametersOf({ path, operationId, takes = {} }: Route, schemas: SchemaWriter): Parameter[] {
  const ownNames = parameterNames(ownPathOf(path));
  const examples = exampleOf(operationId, ownNames);
  const inPath = parameterNames(pathOf({ path })).map((name, at): Parameter => {
    const ownName = ownNames[at];
    const description = ownName === 'destination' ? destinationOf(path) : `The ${ownName} from an earlier response.`;
    return {
      name,
      in: 'path',
      description,
      required: true,
      schema: { type: 'string' },
      example: examples.path[at] ?? '',
    };
  });
  const { filters, query = [], configHeaders = [] } = takes;
  const described = (
    { name, meaning, schema }: { name: string; meaning: string; schema: TSchema },
    given: Readonly<Record<string, string>> = {},
  ) => ({
    name,
    description: meaning,
    schema: schemas.write(schema),
    ...(given[name] !== undefined && { example: given[name] }),
  });
  return [
    ...inPath,
    ...[...(filters?.rows ?? []), ...query].map(
      (row): Parameter => ({ in: 'query', ...described(row, examples.query) }),
    ),
    ...configHeaders.flatMap((header): Parameter[] =>
      header.isUnlisted ? [] : [{ in: 'header', ...described(header, examples.headers) }],
    ),
  ];
}

function destinationOf(path: string): string {
  return path.startsWith('/v2/trigger/') ? 'URL of the workflow.' : 'URL, or name of the URL group, to deliver to.';
}

function parameterNames(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
}

function bodyOf({ operationId, takes = {} }: Route, schemas: SchemaWriter): Operation['requestBody'] {
  const { body, filters } = takes;
  const exampleBody = exampleOf(operationId).body;
  const example = exampleBody === undefined ? {} : { example: exampleBody };
  if (body === 'bytes') return { description: 'Delivered byte for byte.', content: { '*/*': example } };
  if (body) return { required: true, content: { 'application/json': { schema: schemas.write(body), ...example } } };
  if (!filters?.isBulk) return undefined;
  const properties = Object.fromEntries(
    filters.rows.map(({ name, schema }) => [name, memberOf(schemas.write(schema))]),
  );
  const schema = { type: 'object', properties, additionalProperties: false };
  return {
    description: 'Filters may also be sent here. The query takes precedence.',
    content: { 'application/json': { schema } },
  };
}

/** In JSON, a filter that accepts several values may also be given as one value without an array. */
function memberOf(schema: JsonSchema): JsonSchema {
  return schema['type'] === 'array' ? { anyOf: [schema['items'], schema] } : schema;
}

function success(status: string, schema: TSchema | undefined, schemas: SchemaWriter): Response {
  if (!schema) return { description: 'Done; no body.' };
  const mediaType: unknown = schema['contentMediaType'];
  const type = typeof mediaType === 'string' ? mediaType : 'application/json';
  return {
    description: status === '202' ? DUPLICATE : 'Done.',
    content: { [type]: { schema: schemas.write(schema) } },
  };
}

function refusal(status: number, schemas: SchemaWriter): Response {
  const content: Content = { 'application/json': { schema: schemas.write(ErrorSchema) } };
  const description = REFUSALS[status] ?? 'The request is refused.';
  const headers = REFUSAL_HEADERS[status];
  return headers ? { description, headers, content } : { description, content };
}

function refusalName(status: number): string {
  return `Refused${status}`;
}

/** Converts TypeBox schemas into plain JSON. A schema with an `$id` is written once and referenced. */
class SchemaWriter {
  readonly #named = new Map<string, JsonSchema>();

  write(schema: TSchema): JsonSchema {
    return this.#plain(schema) as JsonSchema;
  }

  /** All schemas that are referenced, by name. */
  named(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.#named].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #plain(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((element) => this.#plain(element));
    if (typeof value !== 'object' || value === null) return value;
    const { $id, ...members } = value as Record<string, unknown>;
    if (typeof $id !== 'string') return this.#members(members);
    if (!this.#named.has($id)) this.#named.set($id, this.#members(members));
    return { $ref: `#/components/schemas/${$id}` };
  }

  /**
   * Omits symbols, which only TypeBox uses. A union of constant texts becomes an `enum`, as other tools expect.
   */
  #members(members: Record<string, unknown>): JsonSchema {
    const { anyOf, ...others } = members;
    const words = wordsOf(anyOf);
    const all = words === undefined ? members : { type: 'string', enum: words, ...others };
    return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, this.#plain(value)]));
  }
}

function wordsOf(anyOf: unknown): string[] | undefined {
  if (!Array.isArray(anyOf)) return undefined;
  const words = anyOf.map((choice: { const?: unknown }) => choice.const);
  return words.every((word) => typeof word === 'string') ? words : undefined;
}
