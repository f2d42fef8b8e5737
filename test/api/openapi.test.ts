/**
 * Checks that the interface document is complete, self-contained and correct. `openapi.digest` shows which parts a change
 * affects.
 */
import { readFileSync } from 'node:fs';
import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type MessageUse, messageFilters, readFilters } from '../../src/api/messages/filters.ts';
import { readRetryOverride } from '../../src/api/messages/retry-override.ts';
import { type JsonSchema, type OpenApiDocument, pathOf, writeOpenApi } from '../../src/api/openapi.ts';
import { PUBLISH_HEADERS, RETRY_HEADERS } from '../../src/api/publishing/config-headers.ts';
import type { Parameter } from '../../src/api/requests/parameters.ts';
import { describedRoutes } from '../../src/api/routes.ts';
import { deriveOperations } from '../../src/cli/http/derived-operations.ts';
import { successorOf } from '../../src/engine/messages/dead-retry.ts';
import type { DeadLetter } from '../../src/engine/model.ts';
import {
  ALL_OPTIONS,
  type ConfigOption,
  OPTIONS,
  SCHEDULE_OPTIONS,
} from '../../src/protocol/options/config-options.ts';
import { readPublishOptions } from '../../src/protocol/options/options.ts';
import { message, NOW_MS } from '../engine/fixtures.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { digestOfDocument, digestOfOperations } from './support/digest.ts';
import { openWorld, type Reply, type World } from './support/world.ts';

const LATER_MS = NOW_MS + 1_000;
const QUOTAS = { retriesDefault: 3, retriesMax: 0, delayMsMax: 0, timeoutMsMax: 0 };

let world: World;
let reply: Reply;
let document: OpenApiDocument;
beforeAll(async () => {
  world = await openWorld();
  reply = await world.ask({ method: 'GET', url: '/openapi.json', headers: { authorization: '' } });
  document = reply.json;
});
afterAll(() => world.close());

function operations() {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
}

describe('the document', () => {
  it('has the digest in openapi.digest (after a wanted change: npm test -- test/api/openapi.test.ts --update)', async () => {
    await expect(digestOfDocument(document)).toMatchFileSnapshot('openapi.digest');
  });

  it('gives the command line the options in operations.digest (updated by the same command)', async () => {
    await expect(digestOfOperations(deriveOperations())).toMatchFileSnapshot('operations.digest');
  });

  it('is the same without a server, as the console and the command line are built from it', () => {
    expect(JSON.parse(JSON.stringify(writeOpenApi(describedRoutes())))).toEqual(document);
  });

  it('has every route of the table and no other', () => {
    const documented = operations().map(({ method, path }) => `${method} ${path}`);
    expect(documented.toSorted()).toEqual(world.routes.map((route) => `${route.method} ${pathOf(route)}`).toSorted());
  });

  it('asks for a token exactly where the server does', () => {
    for (const route of world.routes) {
      const { security, responses } = operationOf(pathOf(route), route.method);
      expect([pathOf(route), security.length, '401' in responses, '403' in responses]).toEqual([
        pathOf(route),
        route.access === 'public' ? 0 : route.isTokenInHeaderOnly ? 1 : 2,
        route.access !== 'public' || (route.refusals ?? []).includes(401), // with a token of another kind
        route.access !== 'public' && route.access !== 'any',
      ]);
    }
  });

  it('gives each operation an id of its own', () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('names operations as a person would', () => {
    const byRoute = new Map(
      operations().map(({ path, method, operation }) => [`${method} ${path}`, operation.operationId]),
    );
    expect([...byRoute.values()].filter((id) => !/^[a-z]+([A-Z][a-z]+)*$/.test(id))).toEqual([]);
    expect(byRoute.get('POST /v2/publish/{destination}')).toBe('publish');
    expect(byRoute.get('GET /v2/messages/{messageId}')).toBe('getMessage');
    expect(byRoute.get('POST /v2/dlq/retry')).toBe('retryDlqMessages');
  });

  it('declares each parameter once, and every one of its path', () => {
    for (const { path, operation } of operations()) {
      const names = (operation.parameters ?? []).map((parameter) => `${parameter.in} ${parameter.name}`);
      expect(new Set(names).size, path).toBe(names.length);
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => `path ${name}`);
      expect(names.filter((name) => name.startsWith('path '))).toEqual(inPath);
    }
  });

  it('has no two paths that differ in nothing but the names of their parameters, as OpenAPI asks', () => {
    const templates = Object.keys(document.paths).map((path) => path.replace(/\{\w+\}/g, '{}'));
    expect(templates).toHaveLength(new Set(templates).size);
  });

  it('names its sections as people would', () => {
    for (const { name } of document.tags) expect(name).toMatch(/^[A-Z]/);
  });

  it('refers only to what is in it, and has no component that nothing refers to', () => {
    const references = new Set(referencesIn(document));
    const components = ['schemas', 'responses'] as const;
    const there = components.flatMap((kind) =>
      Object.keys(document.components[kind]).map((name) => `#/components/${kind}/${name}`),
    );
    expect([...references].toSorted()).toEqual(there.toSorted());
  });

  it('describes responses with the schemas against which responses are checked', () => {
    for (const route of world.routes) {
      const { responses } = operationOf(pathOf(route), route.method);
      const succeeded = Object.keys(responses).filter((status) => status < '400');
      expect(succeeded).toEqual(Object.keys(route.responses));
      for (const status of succeeded) {
        const response = responses[status];
        const content = response && 'content' in response ? response.content : undefined;
        const [written] = Object.values(content ?? {});
        const schema = route.responses[Number(status)];
        expect(withoutReferences(written?.schema)).toEqual(schema && plain(schema));
      }
    }
  });

  it('holds only JSON Schema of the draft that OpenAPI 3.1 names', () => {
    const schemas = schemasOf(document);
    expect(schemas.length).toBeGreaterThan(50);
    expect(schemas.flatMap(faultsOf)).toEqual([]);
  });

  it('names each refusal that a test of the interface meets', async () => {
    const long = 'x'.repeat(200_000);
    const met = [
      await refusedWith('POST', '/v2/publish/{destination}', '/v2/publish/nowhere', {}),
      await refusedWith('POST', '/v2/publish/{destination}', '/v2/publish/ftp://x.example', {}),
      await refusedWith('POST', '/v2/publish/{destination}', '/v2/publish/https://x.example', {
        'upstash-retries': '1000',
      }),
      await refusedWith('POST', '/v2/publish/{destination}', '/v2/publish/https://x.example', {}, long),
      await refusedWith('DELETE', '/v2/messages', '/v2/messages?nothing=1', {}),
      await refusedWith('DELETE', '/v2/messages', '/v2/messages', {}, `"${'x'.repeat(300_000)}"`),
      await refusedWith('GET', '/v2/logs', '/v2/logs?count=x', {}),
      await refusedWith('POST', '/v2/dlq/retry', '/v2/dlq/retry?dlqIds=1-1', {}),
      await refusedWith('POST', '/v2/dlq/retry/{dlqId}', '/v2/dlq/retry/1-1', { 'upstash-retries': '1000' }),
    ];
    expect(met).toEqual([404, 400, 412, 413, 400, 413, 400, 404, 412]);
  });
});

describe('config headers', () => {
  it('are the rows of the table', () => {
    const own = optionsOf('upstash-').filter((option) => !option.includes('callback-'));
    const documented = [...own, ...optionsOf('waypost-')];
    expect(documented.toSorted()).toEqual(ALL_OPTIONS.map(({ key }) => key).toSorted());
  });

  it.each(ALL_OPTIONS.filter(({ setting }) => setting))('$name is read into the setting that its row names', (row) => {
    const { name, schema, setting = 'dialect' } = row;
    const rawHeaders = Object.entries(complete(name, String(schema['examples'][0]))).flat();
    const input = { rawHeaders, queryConfig: [], tokenInQuery: false, proxyHeaders: [] };
    const { settings } = readPublishOptions(input, 'publish', { ...QUOTAS, retriesDefault: 0 }, 0);
    expect(settings[setting]).toBeTruthy();
  });

  it('that hold no setting are each read by name, those of a schedule as members of its group', () => {
    const sources = ['options/config-options.ts', 'options/options.ts', 'workflow/run-request.ts'].map((name) =>
      readFileSync(new URL(`../../src/protocol/${name}`, import.meta.url), 'utf8'),
    );
    for (const [row, { setting }] of Object.entries<ConfigOption>(OPTIONS)) {
      const isRead = sources.some((source) => new RegExp(`\\b${row}\\.(read|raw)\\(`).test(source));
      expect(isRead || row in SCHEDULE_OPTIONS || setting, row).toBeTruthy();
    }
  });

  it.each(['callback', 'failure-callback'])('of a %s are those of a message that a callback may have', (kind) => {
    expect(optionsOf('upstash-')).toContain(kind);
    const options = optionsOf(`upstash-${kind}-`);
    const refused = [
      'delay',
      'not-before',
      'deduplication-id',
      'content-based-deduplication',
      'header-forward', // a callback has no incoming headers
      ...['cron', 'schedule-id', 'queue-name'],
      // Libraries send some of them for callbacks too, and only the features mean something there.
      ...optionsOf('upstash-').filter((option) => /^workflow-|^feature-set$/.test(option)),
    ];
    const own = optionsOf('upstash-').filter((option) => !option.includes('callback'));
    expect([...options, ...refused].toSorted()).toEqual(own.toSorted());
  });

  it.each(PUBLISH_HEADERS.map((header) => ({ name: header.name, header })))(
    '$name is accepted with its examples, which fit its schema',
    ({ header: { name, schema } }) => {
      const examples: unknown[] = schema['examples'] ?? [];
      expect(examples).not.toEqual([]);
      for (const example of examples) {
        expect(Value.Check(schema, example)).toBe(true);
        const rawHeaders = Object.entries(complete(name, String(example))).flat();
        const input = { rawHeaders, queryConfig: [], tokenInQuery: false, proxyHeaders: [] };
        expect(() => readPublishOptions(input, 'publish', QUOTAS, 0)).not.toThrow();
      }
    },
  );

  it.each(RETRY_HEADERS.map(({ name, schema }): [string, string] => [name, String(schema['examples'][0])]))(
    '%s is accepted by a DLQ retry',
    async (name, value) => {
      const dlqId = await world.bury('https://fail.example/documented');
      const headers = complete(name, value);
      expect((await world.ask({ method: 'POST', url: `/v2/dlq/retry/${dlqId}`, headers })).status).toBe(201);
    },
  );

  it.each(RETRY_HEADERS)('$name changes what a DLQ retry sends, unless only libraries say it', async (row) => {
    const { name, schema, isUnlisted } = row;
    const retried = async (headers: Record<string, string>) => {
      const services = { quotas: QUOTAS, clock: new SimulatedClock(LATER_MS), checkDestination: () => () => undefined };
      const override = await readRetryOverride({ projectId: 1, rawHeaders: Object.entries(headers).flat() }, services);
      const context = {
        projectId: 1,
        nowMs: LATER_MS,
        randomness: new SeededRandom(1),
        deduplicationWindowMs: 0,
        lazyAboveBytes: 0,
      };
      const stored = message({ method: 'PATCH' });
      return successorOf({ dlqId: '1-1', message: stored, deadLetter: {} as DeadLetter }, 2, override, context);
    };
    // What is said of a callback means nothing without its URL.
    const [callback] = /^Upstash-(Failure-)?Callback(?=-)/.exec(name) ?? [];
    const others: Record<string, string> = callback ? { [callback]: 'https://ok.example/callback' } : {};
    // One that is none of the defaults.
    const value = name.endsWith('-Method') ? 'PUT' : String(schema['examples'][0]);
    const changed = await retried({ ...others, ...complete(name, value) });
    const isOfLibraries = isUnlisted && !name.endsWith('-Forward-Name');
    if (isOfLibraries) expect(changed).toEqual(await retried(others));
    else expect(changed).not.toEqual(await retried(others));
  });
});

describe('filters', () => {
  const AMOUNT = { countDefault: 10, countMax: 10 };

  it.each<MessageUse>(['cancel', 'dlqList', 'dlqBulk', 'logs'])('of %s are accepted with a value that fits', (use) => {
    const filters = messageFilters(use, AMOUNT);
    for (const row of filters.rows) {
      const query = `${row.name}=${encodeURIComponent(String(fitting(row)))}`;
      expect(() => readFilters(filters, query), query).not.toThrow();
    }
  });

  function fitting({ schema }: Parameter): unknown {
    const { anyOf, items = schema }: TSchema = schema;
    const choices: TSchema[] = anyOf ?? items['anyOf'] ?? [];
    return choices[0]?.['const'] ?? (items['type'] === 'integer' ? 1 : 'text');
  }

  it('each have a sentence of their own', () => {
    for (const use of ['cancel', 'dlqList', 'dlqBulk', 'logs'] as const) {
      const meanings = messageFilters(use, AMOUNT).rows.map(({ meaning }) => meaning);
      expect(new Set(meanings).size).toBe(meanings.length);
    }
  });
});

it('is sent compressed, and not again to whoever has it', async () => {
  const { port } = await world.listen();
  const url = `http://127.0.0.1:${port}/openapi.json`;
  const plain = await fetch(url, { headers: { 'accept-encoding': 'identity' } });
  const text = await plain.text();
  const etag = plain.headers.get('etag') ?? '';
  expect([plain.headers.get('content-encoding'), plain.headers.get('cache-control')]).toEqual([null, 'no-cache']);
  const compressed = await fetch(url, { headers: { 'accept-encoding': 'gzip' } });
  expect([compressed.headers.get('content-encoding'), compressed.headers.get('etag')]).toEqual(['gzip', etag]);
  expect(await compressed.text()).toBe(text);
  const again = await fetch(url, { headers: { 'if-none-match': etag } });
  expect([again.status, await again.text()]).toEqual([304, '']);
});

function operationOf(path: string, method: string) {
  const operation = document.paths[path]?.[method.toLowerCase()];
  if (!operation) throw new Error(`${method} ${path} is not in the document`);
  return operation;
}

/** What follows `prefix` in the names of the headers of a publish, lower-case. */
function optionsOf(prefix: string): string[] {
  const names = PUBLISH_HEADERS.filter(({ isUnlisted }) => !isUnlisted).map(({ name }) => name.toLowerCase());
  return names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
}

/** The header, with the one that it cannot be without. */
function complete(name: string, value: string): Record<string, string> {
  const missing = name.endsWith('-Key') ? name.replace(/Key$/, 'Value') : name.replace(/Value$/, 'Key');
  const example: unknown = PUBLISH_HEADERS.find((header) => header.name === missing)?.schema['examples'][0];
  return { [missing]: String(example), [name]: value };
}

/** The status of a refusal, once it is seen to be in the document. */
async function refusedWith(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  url: string,
  headers: Record<string, string>,
  payload = '',
): Promise<number> {
  const { status } = await world.ask({ method, url, headers, payload });
  expect(Object.keys(operationOf(path, method).responses)).toContain(String(status));
  return status;
}

function referencesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => (name === '$ref' ? [String(member)] : referencesIn(member)));
}

/** The schema with what it refers to in place of each reference, and choices of words as TypeBox has them. */
function withoutReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutReferences);
  if (typeof value !== 'object' || value === null) return value;
  const { $ref, enum: words, ...others } = value as Record<string, unknown>;
  if (typeof $ref === 'string') return withoutReferences(document.components.schemas[$ref.split('/').at(-1) ?? '']);
  const members = Object.fromEntries(Object.entries(others).map(([name, member]) => [name, withoutReferences(member)]));
  if (!Array.isArray(words)) return members;
  const { type: _, ...rest } = members;
  return { ...rest, anyOf: words.map((word) => ({ const: word, type: 'string' })) };
}

/** As JSON, without the names under which schemas are written once. */
function plain(schema: TSchema): unknown {
  return JSON.parse(JSON.stringify(schema), (_name, value) => {
    if (typeof value !== 'object' || value === null) return value;
    const { $id: _, ...members } = value;
    return Array.isArray(value) ? value : members;
  });
}

function schemasOf({ components }: OpenApiDocument): JsonSchema[] {
  const inOperations = operations().flatMap(({ operation: { parameters = [], requestBody, responses } }) => [
    ...parameters.map(({ schema }) => schema),
    ...Object.values(requestBody?.content ?? {}).map(({ schema }) => schema),
    ...Object.values(responses).flatMap((response) =>
      'content' in response ? Object.values(response.content ?? {}).map(({ schema }) => schema) : [],
    ),
  ]);
  return [...inOperations, ...Object.values(components.schemas)].filter((schema) => schema !== undefined);
}

const isText = (value: unknown): boolean => typeof value === 'string';
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isSchemas = (value: unknown): string[] => Object.values(value as Record<string, JsonSchema>).flatMap(faultsOf);

/** The keywords in use and what each must hold: true, or the faults of the schemas in it. */
const KEYWORDS: Readonly<Record<string, (value: unknown, schema: JsonSchema) => boolean | string[]>> = {
  deprecated: (value) => value === true,
  $ref: isText,
  description: isText,
  contentMediaType: isText,
  contentSchema: (value) => faultsOf(value as JsonSchema),
  default: (value, { enum: words, type }) =>
    Array.isArray(words) ? words.includes(value) : type === 'integer' && Number.isSafeInteger(value),
  examples: Array.isArray,
  const: () => true,
  type: (value) => ['object', 'array', 'string', 'integer', 'boolean', 'null'].includes(String(value)),
  enum: (value) => Array.isArray(value) && new Set(value).size === value.length && value.length > 0,
  pattern: (value) => new RegExp(String(value), 'u') instanceof RegExp,
  minimum: Number.isFinite,
  maximum: Number.isFinite,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  items: (value) => faultsOf(value as JsonSchema),
  anyOf: (value) => Array.isArray(value) && isSchemas(value),
  properties: isSchemas,
  patternProperties: isSchemas,
  additionalProperties: (value) => typeof value === 'boolean' || faultsOf(value as JsonSchema),
  required: (value, { properties = {} }) =>
    Array.isArray(value) && value.every((name) => Object.hasOwn(properties as object, name)),
};

function faultsOf(schema: JsonSchema): string[] {
  return Object.entries(schema).flatMap(([keyword, value]) => {
    const verdict = KEYWORDS[keyword]?.(value, schema) ?? false;
    if (Array.isArray(verdict)) return verdict;
    return verdict ? [] : [`${keyword}: ${JSON.stringify(value)}`];
  });
}
