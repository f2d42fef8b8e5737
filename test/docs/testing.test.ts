/** Runs examples of docs/testing.md under the frameworks that they are for. Those that take longer: testing.full.test.ts. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { saveExample } from './framework-example.ts';

const folder = mkdtempSync(join(tmpdir(), 'waypost-docs-'));
symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(folder, 'node_modules'));
afterAll(() => rmSync(folder, { recursive: true }));

// Its tests become tests of this file.
await import(saveExample(folder, 'vitest'));

it('runs the example for node:test', async () => {
  const args = ['--no-warnings', '--test', '--test-reporter', 'tap', saveExample(folder, 'node:test')];
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).toMatch(/^# pass 1\n# fail 0$/m);
});
