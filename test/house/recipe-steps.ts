/** The steps of a recipe in docs/architecture.md. */
import { readFileSync } from 'node:fs';

const PAGE = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8');

/** The path that each step begins with; `undefined` for a step that begins with none. */
export function stepsOf(recipe: string): (string | undefined)[] {
  const section = PAGE.split(`### ${recipe}\n`)[1]?.split('\n##')[0] ?? '';
  return [...section.matchAll(/^\d\. (?:`(.+?)`)?/gm)].map(([, path]) => path);
}
