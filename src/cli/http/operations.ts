/**
 * The operations of the interface, as the route table declares them: `operations.json` is made from it by
 * `npm test -- test/api/openapi.test.ts --update`. Reading this costs a millisecond, loading the routes a tenth of a second.
 */
import { readFileSync } from 'node:fs';

export interface Operation {
  method: string;
  /** With `{names}` for what belongs there. */
  path: string;
  /** What each parameter of the query means, by its name. */
  query?: Readonly<Record<string, string>>;
  /** What each option of a message means, by the name of its header. */
  headers?: Readonly<Record<string, string>>;
}

const OPERATIONS = JSON.parse(readFileSync(new URL('./operations.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, Operation>
>;

export function operationOf(id: string): Operation {
  const operation = OPERATIONS[id];
  if (operation === undefined) throw new Error(`the interface has no operation ${id}`);
  return operation;
}

/** `queueName` and `Upstash-Queue-Name` as `queue-name`. */
export function flagOf(name: string): string {
  return name
    .replace(/^Upstash-/, '')
    .replace(/([a-z])([A-Z])/g, '$1-$2')
    .toLowerCase();
}

/** The path with `words` in the place of its names. A destination stands there unescaped, as the interface wants it. */
export function pathOf({ path }: Operation, words: readonly string[]): string {
  const left = [...words];
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const word = left.shift() ?? '';
    return name.startsWith('destination') && URL.canParse(word) ? word : encodeURIComponent(word);
  });
}
