/** Checks the published package, and what the repository says of itself. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { declareTesting } from '../../scripts/declarations.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(`${root}${path}`, 'utf8');

describe('whoever imports the package', () => {
  const importing = (name: string) =>
    spawnSync(process.execPath, ['--input-type=module', '--eval', `await import('${name}')`], {
      cwd: root,
      encoding: 'utf8',
    });

  it('is told that it is a command, and what to do instead', () => {
    const { status, stderr } = importing('waypost');
    expect(status).toBe(1);
    expect(stderr).toContain('waypost is a command, not a library: run "waypost dev"');
  });

  it('cannot reach into it', () => {
    for (const path of ['waypost/dist/server.js', 'waypost/bin/waypost.js']) {
      expect(importing(path).stderr).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED');
    }
  });

  it('finds each file that the package names among those that are published', () => {
    const { exports, types, files } = JSON.parse(read('package.json'));
    for (const path of [types, ...Object.values(exports['.'])] as string[]) {
      expect(existsSync(`${root}${path}`)).toBe(true);
      expect(files).toContain(path.split('/')[1]);
    }
  });
});

it('publishes the documents for users, and not the contract', () => {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const { stdout } = spawnSync('npm', args, { cwd: root, encoding: 'utf8', shell: process.platform === 'win32' });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const published = files.map(({ path }) => path);
  expect(published).toEqual(expect.arrayContaining(['bin/waypost.js', 'docs/publishing.md', 'docs/architecture.md']));
  expect(published.filter((path) => /^(docs\/contract|examples|test|src)\//.test(path))).toEqual([]);
});

it('publishes the console that was built, and not from what', () => {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-package-'));
  cpSync(`${root}package.json`, join(folder, 'package.json'));
  mkdirSync(join(folder, 'dist/console/assets'), { recursive: true });
  const built = ['dist/console/assets/index-1a2b.js', 'dist/console/index.html'];
  for (const name of [...built, 'dist/console.built-from']) writeFileSync(join(folder, name), 'x');
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const { stdout } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8', shell: process.platform === 'win32' });
  rmSync(folder, { recursive: true, force: true });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  expect(files.map(({ path }) => path).toSorted()).toEqual([...built, 'package.json']);
  expect(JSON.parse(read('package.json')).scripts.prepack).toContain('npm run build');
});

it('publishes the test kit with types that an app compiles against', () => {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-package-'));
  const compile = (cwd: string, args: string[]) =>
    spawnSync(`${root}node_modules/.bin/tsc`, args, { cwd, encoding: 'utf8', shell: process.platform === 'win32' });
  const published = join(folder, 'node_modules/waypost');
  expect(compile(root, declareTesting(join(published, 'dist/testing'))).stdout).toBe('');
  cpSync(`${root}package.json`, join(published, 'package.json'));
  const { exports } = JSON.parse(read('package.json'));
  expect(existsSync(join(published, exports['./testing'].types))).toBe(true);
  expect(existsSync(`${root}${exports['./testing'].default.replace('dist', 'src').replace('.js', '.ts')}`)).toBe(true);
  const app = `import { startWaypost } from 'waypost/testing';
const waypost = await startWaypost();
const state: 'DELIVERED' | undefined = (await waypost.messages())[0]?.state;`;
  writeFileSync(join(folder, 'app.mts'), app);
  const strict = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', '', 'app.mts'];
  // The types are known: a state has other values, too.
  const { stdout } = compile(folder, strict);
  expect(stdout.match(/error TS.*/g)).toEqual([expect.stringMatching("TS2322: Type 'MessageState' is not assignable")]);
  rmSync(folder, { recursive: true, force: true });
});

describe('the command', () => {
  it('is installed from the archive that the README names', () => {
    const { name, version } = JSON.parse(read('package.json'));
    expect(read('README.md')).toContain(`/${name}-${version}.tgz`);
  });

  it.each([
    ['a checkout, also once "npm pack" has compiled it, runs its sources', ['src/cli/main.ts', 'dist/cli/main.js']],
    ['a package, which has no sources, runs what was compiled', ['dist/cli/main.js']],
  ])('of %s', (_, programs) => {
    const folder = mkdtempSync(join(tmpdir(), 'waypost-package-'));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    cpSync(`${root}bin/waypost.js`, join(folder, 'bin/waypost.js'));
    for (const program of programs) {
      mkdirSync(join(folder, dirname(program)), { recursive: true });
      writeFileSync(join(folder, program), `console.log('${program}');`);
    }
    const { stdout } = spawnSync(process.execPath, [join(folder, 'bin/waypost.js')], { encoding: 'utf8' });
    rmSync(folder, { recursive: true, force: true });
    expect(stdout).toBe(`${programs[0]}\n`);
  });
});

describe('the repository', () => {
  it('runs in public what people run, on the Node that is developed with', () => {
    const { jobs } = parse(read('.github/workflows/ci.yml'));
    const steps: { run?: string; with?: Record<string, unknown> }[] = jobs.check.steps;
    expect(steps.flatMap(({ run }) => run ?? [])).toEqual(['bash .ci/run']);
    const versionFile = steps.map((step) => step.with?.['node-version-file']).find(Boolean);
    const { devDependencies } = JSON.parse(read('package.json'));
    expect(devDependencies.node).toMatch(new RegExp(`^\\^${read(String(versionFile)).trim()}\\.`));
  });

  it('publishes the documentation that people build', () => {
    const { jobs } = parse(read('.github/workflows/docs.yml'));
    const steps: { run?: string; with?: { path?: string } }[] = jobs.publish.steps;
    expect(steps.flatMap(({ run }) => run ?? [])).toEqual(['npm run docs -- build --base "$BASE_PATH/"']);
    expect(steps.map((step) => step.with?.path).filter(Boolean)).toEqual(['site/dist']);
  });

  it.each(['bug', 'idea'])('has a form for issues of the kind %s that can be filled in', (name) => {
    const { body } = parse(read(`.github/ISSUE_TEMPLATE/${name}.yml`));
    const fields = (body as { type: string; id?: string }[]).filter(({ type }) => type !== 'markdown');
    expect(fields.length).toBeGreaterThan(1);
    expect(fields.every(({ id }) => id !== undefined)).toBe(true);
  });
});
