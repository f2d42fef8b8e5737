/** Reduces a document of thousands of lines to one line per part, so that a change shows which parts it affects. */
import { hash } from 'node:crypto';
import type { OpenApiDocument, Operation } from '../../../src/api/openapi.ts';
import type { Operations } from '../../../src/cli/http/derived-operations.ts';

export function digestOfDocument({ paths, components, ...about }: OpenApiDocument): string {
  const { schemas, ...others } = components;
  return lines([
    `document ${digest({ about, others })}`,
    ...Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => `${method.toUpperCase()} ${path} ${partsOf(operation)}`),
    ),
    ...Object.entries(schemas).map(([name, schema]) => `schema ${name} ${digest(schema)}`),
  ]);
}

function partsOf({ operationId, parameters = [], requestBody, responses, ...about }: Operation): string {
  return [
    `${operationId} ${digest(about)}`,
    ...(parameters.length > 0 ? [`${parameters.length} parameters ${digest(parameters)}`] : []),
    ...(requestBody ? [`body ${digest(requestBody)}`] : []),
    `${Object.keys(responses).join(' ')} ${digest(responses)}`,
  ].join(', ');
}

export function digestOfOperations(operations: Operations): string {
  const counted = (kind: string, options: object | undefined) =>
    options ? [`${Object.keys(options).length} ${kind} ${digest(options)}`] : [];
  return lines(
    Object.entries(operations).map(([id, { method, path, query, headers }]) =>
      [`${id} ${method} ${path}`, ...counted('filters', query), ...counted('headers', headers)].join(', '),
    ),
  );
}

function digest(value: unknown): string {
  return hash('sha256', JSON.stringify(value)).slice(0, 8);
}

function lines(texts: readonly string[]): string {
  return `${texts.join('\n')}\n`;
}
