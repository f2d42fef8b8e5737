/**
 * Writes console/src/generated/interface.ts from the OpenAPI document: its schemas as types, and the method and path of
 * each operation. The console calls the server only through these types, so that console and server cannot diverge.
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
  // A round trip through JSON removes undefined members.
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
  const targets = operations.map(
    ({ path, method, operation }) => `  ${operation.operationId}: ['${method}', '${path}'],`,
  );
  return [
    '// Generated from the OpenAPI document by scripts/console-types.ts.',
    ...schemas,
    `export interface Operations {\n${types.join('\n')}\n}`,
    `export const OPERATIONS: { readonly [Id in keyof Operations]: readonly [method: string, path: string] } = {\n${targets.join('\n')}\n};`,
    '',
  ].join('\n');
}

function operationType({ parameters = [], requestBody, responses }: Operation): string {
  const membersIn = (location: string): string => {
    const members = parameters
      .filter((parameter) => parameter.in === location)
      .map(
        ({ name, required, schema }) =>
          `${JSON.stringify(name)}${required || location === 'path' ? '' : '?'}: ${typeOf(schema)}`,
      );
    return members.length === 0 ? '{}' : `{ ${members.join('; ')} }`;
  };
  const successes = Object.entries(responses).filter(([status]) => status.startsWith('2'));
  const response = successes.map(([, { content }]) => contentType(content)).join(' | ') || 'undefined';
  return `{ path: ${membersIn('path')}; query: ${membersIn('query')}; headers: ${membersIn('header')}; body: ${contentType(requestBody?.content)}; response: ${response} }`;
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
    const comment = schema.description === undefined ? '' : `/** ${schema.description.replaceAll('*/', '* /')} */ `;
    return `${comment}${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(schema)}`;
  });
  const [values] = Object.values(patternProperties);
  const others = values ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
  if (others !== undefined) members.push(`[name: string]: ${members.length > 0 ? 'unknown' : typeOf(others)}`);
  return members.length === 0 ? 'Record<string, unknown>' : `{ ${members.join('; ')} }`;
}
