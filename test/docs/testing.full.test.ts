/** Runs the examples of docs/testing.md that need more than this checkout: a browser, Python, another test framework. */
import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeEach, expect, it } from 'vitest';
import { browserObstacle, CHROMIUM } from '../console/support/visit.ts';
import { obstacleTo } from '../support/debian.ts';
import { testFolder } from '../support/folder.ts';
import { exampleFor, saveExample } from './framework-example.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

let folder: string;
beforeEach(() => {
  folder = testFolder();
});

/** What a program prints that is run in the folder of the example, with this Node before any other. */
async function run(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  const PATH = [dirname(process.execPath), inherited['PATH']].join(delimiter);
  const { stdout, stderr } = await promisify(execFile)(program, args, {
    cwd: folder,
    env: { ...inherited, PATH, ...env },
  });
  return stdout + stderr;
}

it.skipIf(browserObstacle() !== undefined)('runs the example for Playwright', async () => {
  symlinkSync(`${root}node_modules`, join(folder, 'node_modules'));
  saveExample(folder, 'playwright');
  const use = { launchOptions: { executablePath: CHROMIUM.path, args: CHROMIUM.flags } };
  writeFileSync(join(folder, 'playwright.config.mjs'), `export default ${JSON.stringify({ workers: 1, use })};`);
  // Node itself strips the types of the sources: Playwright would compile each.
  const output = await run(join(root, 'node_modules/.bin/playwright'), ['test'], { PW_DISABLE_TS_ESM: '1' });
  expect(output).toContain('1 passed');
});

it('runs the example for Jest, which is installed from npm', async () => {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  symlinkSync(`${root}node_modules`, join(folder, 'node_modules'));
  const code = exampleFor('vitest').replace(/^import .* from 'vitest';\n/m, '');
  writeFileSync(join(folder, 'trial.test.ts'), code);
  writeFileSync(
    join(folder, 'strip-types.mjs'),
    `import { stripTypeScriptTypes } from 'node:module';
     export default { process: (code) => ({ code: stripTypeScriptTypes(code) }) };`,
  );
  const config = {
    testEnvironment: 'node',
    extensionsToTreatAsEsm: ['.ts'],
    // The published package consists of JavaScript, under its own name.
    transform: { '\\.ts$': './strip-types.mjs' },
    moduleNameMapper: { '^waypost/testing$': `${root}src/testing/waypost.ts` },
  };
  writeFileSync(join(folder, 'jest.config.json'), JSON.stringify(config));
  const output = await run('npx', ['--yes', 'jest@30'], { NODE_OPTIONS: '--experimental-vm-modules' });
  expect(output).toContain('Tests:       1 passed, 1 total');
});

const pytestObstacle = obstacleTo('pytest-3', ['python3-pytest']);
it.skipIf(pytestObstacle !== undefined)('runs the example for pytest', async () => {
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  symlinkSync(`${root}bin/waypost.js`, join(folder, 'node_modules/.bin/waypost'));
  writeFileSync(join(folder, 'test_reminder.py'), exampleFor('pytest'));
  expect(await run('pytest-3', ['-p', 'no:cacheprovider'])).toContain('1 passed');
});
