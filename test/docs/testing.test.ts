/** Runs the examples of docs/testing.md under the frameworks that they are for: a first line such as `// vitest` says which. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const testKit = new URL('../../src/testing/waypost.ts', import.meta.url).href;
const page = readFileSync(`${root}docs/testing.md`, 'utf8');

const folder = mkdtempSync(join(tmpdir(), 'waypost-docs-'));
symlinkSync(`${root}node_modules`, join(folder, 'node_modules'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Saves the example and answers its file. Only the published package has the test kit under its own name. */
function save(framework: string): string {
  const [, code] = new RegExp(`^\`\`\`typescript\n// ${framework}\n(.*?)^\`\`\`$`, 'ms').exec(page) ?? [];
  if (code === undefined) throw new Error(`docs/testing.md has no example for ${framework}`);
  const file = join(folder, `${framework.replace(':', '-')}.test.mts`);
  writeFileSync(file, code.replace("'waypost/testing'", `'${testKit}'`));
  return file;
}

// Its tests become tests of this file.
await import(save('vitest'));

it('runs the example for node:test', async () => {
  const args = ['--no-warnings', '--test', '--test-reporter', 'tap', save('node:test')];
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).toMatch(/^# pass 1\n# fail 0$/m);
});
