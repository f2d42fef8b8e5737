/** Looks up the operations of the API by id. */
import { existsSync, readFileSync } from 'node:fs';
import type { Operation, Operations } from './derived-operations.ts';

/** This file exists only in the published package. Reading the file takes 1 ms; loading the routes would take 100 ms. */
const BUILT = new URL('./operations.json', import.meta.url);
const OPERATIONS: Operations = existsSync(BUILT)
  ? JSON.parse(readFileSync(BUILT, 'utf8'))
  : (await import('./derived-operations.ts')).deriveOperations();

export function operationOf(id: string): Operation {
  const operation = OPERATIONS[id];
  if (operation === undefined) throw new Error(`the interface has no operation ${id}`);
  return operation;
}

/** Converts `queueName` and `Upstash-Queue-Name` to `queue-name`. */
export function flagOf(name: string): string {
  return name
    .replace(/^Upstash-/, '')
    .replace(/([a-z])([A-Z])/g, '$1-$2')
    .toLowerCase();
}

/** Replaces the placeholders of the path with `words`. A destination URL is not escaped, as the API requires. */
export function pathOf({ path }: Operation, words: readonly string[]): string {
  const left = [...words];
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const word = left.shift() ?? '';
    return name.startsWith('destination') && URL.canParse(word) ? word : encodeURIComponent(word);
  });
}
