/** Each lint rule of the project reports a file that breaks it: a rule without effect would go unnoticed for years. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Breach {
  title: string;
  file: string;
  source: string;
  /** Category that Biome reports; rules written in GritQL report as `plugin`. */
  rule: string;
}

const clocks: Breach[] = [
  ['Date.now()', 'plugin'],
  ['new Date()', 'plugin'],
  ["Date['now']()", 'plugin'],
  ['Math.random()', 'plugin'],
  ['process.hrtime.bigint()', 'plugin'],
  ['AbortSignal.timeout(5)', 'plugin'],
  ['globalThis.setTimeout(() => {}, 5)', 'plugin'],
  ['performance.now()', 'lint/style/noRestrictedGlobals'],
  ['setTimeout(() => {}, 5)', 'lint/style/noRestrictedGlobals'],
  ['setInterval(() => {}, 5)', 'lint/style/noRestrictedGlobals'],
  ['setImmediate(() => {})', 'lint/style/noRestrictedGlobals'],
  ['crypto.randomUUID()', 'lint/style/noRestrictedGlobals'],
].map(([expression, rule], index) => ({
  title: `refuses ${expression} in the engine`,
  file: `src/engine/clock-${index}.ts`,
  source: `export const value = ${expression};\n`,
  rule: rule ?? '',
}));

const clockImports: Breach[] = [
  ["import { setTimeout } from 'node:timers/promises'", 'setTimeout'],
  ["import { setTimeout } from 'node:timers'", 'setTimeout'],
  ["import { performance } from 'node:perf_hooks'", 'performance'],
  ["import { randomBytes } from 'node:crypto'", 'randomBytes'],
  ["import crypto from 'node:crypto'", 'crypto'],
].map(([statement, name], index) => ({
  title: `refuses ${statement} in the engine`,
  file: `src/engine/clock-import-${index}.ts`,
  source: `${statement};\n\nexport const value = ${name};\n`,
  rule: 'lint/style/noRestrictedImports',
}));

const others: Breach[] = [
  {
    title: 'refuses @ts-ignore',
    file: 'src/engine/ignore.ts',
    source: '// @ts-ignore\nexport const value: string = 5;\n',
    rule: 'lint/suspicious/noTsIgnore',
  },
  {
    title: 'refuses any',
    file: 'src/engine/any.ts',
    source: 'export const value: any = 5;\n',
    rule: 'lint/suspicious/noExplicitAny',
  },
  {
    title: 'refuses console outside the command line',
    file: 'src/engine/console.ts',
    source: "console.log('x');\n",
    rule: 'lint/suspicious/noConsole',
  },
  {
    title: 'refuses to read the environment outside the command line',
    file: 'src/config/environment.ts',
    source: "export const value = process.env['HOME'];\n",
    rule: 'lint/style/noProcessEnv',
  },
  {
    title: 'refuses a promise that nobody waits for',
    file: 'src/engine/floating.ts',
    source: 'async function work(): Promise<void> {}\n\nwork();\n',
    rule: 'lint/nursery/noFloatingPromises',
  },
  {
    title: 'refuses a switch that leaves a case undecided',
    file: 'src/engine/switch.ts',
    source:
      "export function f(kind: 'a' | 'b'): number {\n  switch (kind) {\n    case 'a':\n      return 1;\n  }\n  return 0;\n}\n",
    rule: 'lint/nursery/useExhaustiveSwitchCases',
  },
  {
    title: 'refuses a default export',
    file: 'src/engine/default.ts',
    source: 'export default 5;\n',
    rule: 'lint/style/noDefaultExport',
  },
  {
    title: 'refuses a test that is left out',
    file: 'test/engine/skipped.test.ts',
    source: "import { it } from 'vitest';\n\nit.skip('works', () => {});\n",
    rule: 'lint/suspicious/noSkippedTests',
  },
  ...[
    'new Promise((resolve) => setTimeout(resolve, 5))',
    'new Promise<void>((resolve) => setTimeout(resolve, 5))',
    'new Promise<void>((resolve) => {\n  setTimeout(resolve, 5);\n})',
    'new Promise<void>((resolve) => setTimeout(() => resolve(), 5))',
  ].map((sleep, index) => ({
    title: `refuses a test that sleeps, way ${index + 1}`,
    file: `test/engine/sleep-${index}.test.ts`,
    source: `await ${sleep};\n`,
    rule: 'plugin',
  })),
  ...[
    "'select key from messages where wait_state = 1'",
    `\`select m.key from messages m where \${column} is null\n and m.wait_state = 2\``,
    "'select key from messages where wait_state in (1, 4)'",
    "'select key from runs where state <> 1'",
  ].map((text, index) => ({
    title: `refuses the number of a state in a statement, way ${index + 1}`,
    file: `src/store/operations/number-${index}.ts`,
    source: `const column = 'm.claim_token';\nexport const values = [column, ${text}];\n`,
    rule: 'plugin',
  })),
  ...[
    'select c.id from messages m join contents c on c.key = m.key',
    'select r.key from runs r\\n left join contents c on (c.key = r.key)',
    'select key from runs where key in (select run_key from journal)',
    'delete from contents where not exists (select 1 from dead)',
  ].map((text, index) => ({
    title: `refuses a statement that leaves its plan to the planner, way ${index + 1}`,
    file: `src/store/operations/untold-${index}.ts`,
    source: `export const value = \`${text}\`;\n`,
    rule: 'plugin',
  })),
  {
    title: 'refuses a test that sleeps by node:timers/promises',
    file: 'test/engine/sleep-promises.test.ts',
    source: "import { setTimeout } from 'node:timers/promises';\n\nawait setTimeout(5);\n",
    rule: 'lint/style/noRestrictedImports',
  },
];

const allowed: Breach[] = [
  {
    title: 'lets the command line read the clock',
    file: 'src/cli/clock.ts',
    source: 'export const value = Date.now();\n',
    rule: '',
  },
  {
    title: 'lets the production clock start timers',
    file: 'src/system/system.ts',
    source: 'export const value = setTimeout(() => {}, Date.now());\n',
    rule: '',
  },
  {
    title: 'lets the engine make a date of a given time',
    file: 'src/engine/date.ts',
    source: 'export const value = new Date(5);\n',
    rule: '',
  },
  {
    title: 'lets a migration write the number of a state',
    file: 'src/store/migrations/900-number.ts',
    source: "export const value = 'create index waiting on messages (key) where wait_state = 0';\n",
    rule: '',
  },
  {
    title: 'lets the engine hash',
    file: 'src/engine/hash.ts',
    source: "import { createHash } from 'node:crypto';\n\nexport const value = createHash('sha256');\n",
    rule: '',
  },
];

describe('the linter', () => {
  let folder: string;
  const found = new Map<string, string[]>();

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'waypost-bans-'));
    for (const part of ['biome.jsonc', 'lint', 'package.json'])
      cpSync(join(root, part), join(folder, part), { recursive: true });
    for (const { file, source } of [...clocks, ...clockImports, ...others, ...allowed]) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), source);
    }
    const args = ['lint', '--reporter=json', '--max-diagnostics=none', '.'];
    const { stdout } = spawnSync(join(root, 'node_modules/.bin/biome'), args, { cwd: folder, encoding: 'utf8' });
    for (const { file, rule } of readDiagnostics(stdout)) found.set(file, [...(found.get(file) ?? []), rule]);
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each([...clocks, ...clockImports, ...others])('$title', ({ file, rule }) => {
    expect(found.get(file) ?? []).toContain(rule);
  });

  it.each(allowed)('$title', ({ file }) => {
    expect(found.get(file)).toBeUndefined();
  });
});

function readDiagnostics(report: string): { file: string; rule: string }[] {
  const { diagnostics } = JSON.parse(report) as { diagnostics: { category: string; location: { path: unknown } }[] };
  return diagnostics.map(({ category, location }) => {
    const path = typeof location.path === 'string' ? location.path : (location.path as { file: string }).file;
    return { file: path.replace(/^\.\//, ''), rule: category };
  });
}
