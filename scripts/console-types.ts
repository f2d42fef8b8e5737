/**
 * Writes console/src/generated/interface.ts: the interface document as types, and the method and path of each operation. The console
 * calls the server only by these, so that neither can drift from the other.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { writeOpenApi } from '../src/api/openapi.ts';
import { describedRoutes } from '../src/api/routes.ts';

interface Schema {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  required?: string[];
  description?: string;
}

interface Operation {
  operationId: string;
  parameters?: { in: string; name: string; required?: boolean; schema: Schema }[];
  requestBody?: { content: Record<string, { schema?: Schema }> };
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

const root = fileURLToPath(new URL('..', import.meta.url));

if (process.argv[1] === fileURLToPath(import.meta.url)) writeConsoleTypes();

export function writeConsoleTypes(): void {
  // As JSON, which has no absent members.
  const document = JSON.parse(JSON.stringify(writeOpenApi(describedRoutes()))) as Document;
  mkdirSync(`${root}console/src/generated`, { recursive: true });
  writeFileSync(`${root}console/src/generated/interface.ts`, textOf(document));
}

function textOf({ paths, components }: Document): string {
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema)};`,
  );
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const types = operations.map(({ operation }) => `  ${operation.operationId}: ${operationType(operation)};`);
  const places = operations.map(
    ({ path, method, operation }) => `  ${operation.operationId}: ['${method}', '${path}'],`,
  );
  return [
    '// Made from the interface document: see scripts/console-types.ts.',
    ...schemas,
    `export interface Operations {\n${types.join('\n')}\n}`,
    `export const OPERATIONS: { readonly [Id in keyof Operations]: readonly [method: string, path: string] } = {\n${places.join('\n')}\n};`,
    '',
  ].join('\n');
}

function operationType({ parameters = [], requestBody, responses }: Operation): string {
  const of = (place: string): string => {
    const members = parameters
      .filter((parameter) => parameter.in === place)
      .map(
        ({ name, required, schema }) =>
          `${JSON.stringify(name)}${required || place === 'path' ? '' : '?'}: ${typeOf(schema)}`,
      );
    return members.length === 0 ? '{}' : `{ ${members.join('; ')} }`;
  };
  const answers = Object.entries(responses).filter(([status]) => status.startsWith('2'));
  const answer = answers.map(([, { content }]) => contentType(content)).join(' | ') || 'undefined';
  return `{ path: ${of('path')}; query: ${of('query')}; headers: ${of('header')}; body: ${contentType(requestBody?.content)}; answer: ${answer} }`;
}

function contentType(content: Record<string, { schema?: Schema }> | undefined): string {
  const json = content?.['application/json'];
  if (json?.schema) return typeOf(json.schema);
  return content === undefined ? 'undefined' : 'string';
}

function typeOf(schema: Schema): string {
  const { $ref, enum: words, const: constant, anyOf, type } = schema;
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf('/') + 1);
  if (words !== undefined) return words.map((word) => JSON.stringify(word)).join(' | ');
  if (constant !== undefined) return JSON.stringify(constant);
  if (anyOf !== undefined) return `(${anyOf.map(typeOf).join(' | ')})`;
  if (type === 'array') return schema.items === undefined ? 'unknown[]' : `(${typeOf(schema.items)})[]`;
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'string' || type === 'boolean' || type === 'null') return type;
  return type === 'object' || schema.properties ? objectType(schema) : 'unknown';
}

function objectType({ properties = {}, patternProperties = {}, additionalProperties, required = [] }: Schema): string {
  const members = Object.entries(properties).map(([name, schema]) => {
    const told = schema.description === undefined ? '' : `/** ${schema.description.replaceAll('*/', '* /')} */ `;
    return `${told}${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(schema)}`;
  });
  const [values] = Object.values(patternProperties);
  const others = values ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
  if (others !== undefined) members.push(`[name: string]: ${members.length > 0 ? 'unknown' : typeOf(others)}`);
  return members.length === 0 ? 'Record<string, unknown>' : `{ ${members.join('; ')} }`;
}
