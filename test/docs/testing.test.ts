/** Runs examples of docs/testing.md in their test frameworks. The slower ones: testing.full.test.ts. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { saveExample, typeScriptExamples } from './framework-example.ts';

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

it('compiles all examples strictly', async () => {
  const typed = join(folder, 'typed');
  mkdirSync(typed);
  for (const [index, code] of typeScriptExamples().entries()) writeFileSync(join(typed, `example-${index}.mts`), code);
  // A reader has @types/express.
  writeFileSync(
    join(typed, 'express.d.ts'),
    "declare module 'express' { const express: any; export default express; }",
  );
  const compilerOptions = {
    ...{ strict: true, noEmit: true, skipLibCheck: true, module: 'nodenext', target: 'es2024', types: ['node'] },
    ...{ preserveSymlinks: true, allowImportingTsExtensions: true },
    paths: { 'waypost/testing': [fileURLToPath(new URL('../../src/testing/types.ts', import.meta.url))] },
  };
  writeFileSync(join(typed, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.mts', '*.d.ts'] }));
  const tsc = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, '-p', typed]).catch((error) => error);
  expect(stdout).toBe('');
});
