/** The examples of docs/testing.md. The comment in the first line of each says what runs it: `// vitest`, `# pytest`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const page = readFileSync(new URL('../../docs/testing.md', import.meta.url), 'utf8');
const testKit = new URL('../../src/testing/waypost.ts', import.meta.url).href;

/** All examples of TypeScript, as a reader would save them; a fragment uses the server of the first one. */
export function typeScriptExamples(): string[] {
  return [...page.matchAll(/^```(?:ts|typescript)\n(.*?)^```$/gms)].map(([, code = '']) =>
    code.includes("'waypost/testing'") ? code : `declare const waypost: import('waypost/testing').Waypost;\n${code}`,
  );
}

export function exampleFor(framework: string): string {
  const [, code] = new RegExp(`^\`\`\`\\w+\n(?://|#) ${framework}\n(.*?)^\`\`\`$`, 'ms').exec(page) ?? [];
  if (code === undefined) throw new Error(`docs/testing.md has no example for ${framework}`);
  return code;
}

/** Saves an example of TypeScript in `folder` and answers its file. Only the published package has the test kit under its own name. */
export function saveExample(folder: string, framework: string): string {
  const file = join(folder, `${framework.replace(':', '-')}.test.mts`);
  writeFileSync(file, exampleFor(framework).replace("'waypost/testing'", `'${testKit}'`));
  return file;
}
