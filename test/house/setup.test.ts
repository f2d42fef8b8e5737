/** When the first script of a fresh clone installs and builds the console, and when it does neither. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { testFolder } from '../support/folder.ts';

const setup = fileURLToPath(new URL('../../scripts/setup.mjs', import.meta.url));
const locked = { '': { version: '1.0.0' }, 'node_modules/a': { version: '1.2.3' } };

describe('scripts/setup.mjs', () => {
  let folder: string;

  beforeEach(() => {
    folder = testFolder();
    mkdirSync(join(folder, 'scripts'));
    cpSync(setup, join(folder, 'scripts/setup.mjs'));
    // Stands in for npm: writes down what it was asked for, and fails when told to.
    const npm = `require('node:fs').writeFileSync('asked', process.argv.slice(2).join(' ')); process.exit(Number(process.env.NPM_CODE));`;
    writeFileSync(join(folder, 'npm.cjs'), npm);
  });

  function run(wanted: object, present: object | string | undefined, npmCode = 0) {
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ packages: wanted }));
    if (present !== undefined) {
      mkdirSync(join(folder, 'node_modules'));
      const text = typeof present === 'string' ? present : JSON.stringify({ packages: present });
      writeFileSync(join(folder, 'node_modules/.package-lock.json'), text);
    }
    const env = { ...process.env, npm_execpath: join(folder, 'npm.cjs'), NPM_CODE: String(npmCode) };
    const { status, stderr } = spawnSync(process.execPath, [join(folder, 'scripts/setup.mjs')], {
      env,
      encoding: 'utf8',
    });
    return { status, stderr, asked: askedOfNpm() };
  }

  function askedOfNpm(): string | undefined {
    try {
      return readFileSync(join(folder, 'asked'), 'utf8');
    } catch {
      return undefined; // nothing was asked
    }
  }

  it('installs what the lock file names, development packages included, when nothing is there', () => {
    const { status, asked } = run(locked, undefined);
    expect(status).toBe(0);
    expect(asked).toMatch(/^ci --include=dev /);
  });

  it('installs when a version differs', () => {
    expect(run(locked, { 'node_modules/a': { version: '1.2.2' } }).asked).toMatch(/^ci /);
  });

  it('installs when an earlier installation was cut short', () => {
    expect(run(locked, '{"packages": {"node_mod').asked).toMatch(/^ci /);
  });

  it('does nothing, silently, when all is there', () => {
    expect(run(locked, { 'node_modules/a': { version: '1.2.3' } })).toEqual({
      status: 0,
      stderr: '',
      asked: undefined,
    });
  });

  it("does not miss other platforms' packages", () => {
    const wanted = { ...locked, 'node_modules/a-darwin': { version: '1.2.3', optional: true } };
    expect(run(wanted, { 'node_modules/a': { version: '1.2.3' } }).asked).toBeUndefined();
  });

  it('installs when an optional package is there in another version', () => {
    const wanted = { ...locked, 'node_modules/b': { version: '1.2.3', optional: true } };
    const present = { 'node_modules/a': { version: '1.2.3' }, 'node_modules/b': { version: '1.2.2' } };
    expect(run(wanted, present).asked).toMatch(/^ci /);
  });

  it('fails when the installation fails', () => {
    const { status, stderr } = run(locked, undefined, 3);
    expect(status).toBe(3);
    expect(stderr).toContain('The installation failed');
  });

  it('installs only the packages of the site with the argument "docs"', () => {
    mkdirSync(join(folder, 'site'));
    writeFileSync(join(folder, 'site/package-lock.json'), JSON.stringify({ packages: locked }));
    const env = { ...process.env, npm_execpath: join(folder, 'npm.cjs'), NPM_CODE: '0' };
    const { status } = spawnSync(process.execPath, [join(folder, 'scripts/setup.mjs'), 'docs'], { env });
    expect([status, readdirSync(join(folder, 'site'))]).toEqual([0, ['asked', 'package-lock.json']]);
  });

  describe('with the argument "console"', () => {
    beforeEach(() => {
      mkdirSync(join(folder, 'node_modules'));
      for (const path of ['console/src/generated', 'src/api', 'test/api'])
        mkdirSync(join(folder, path), { recursive: true });
      write('package-lock.json', JSON.stringify({ packages: locked }));
      write('node_modules/.package-lock.json', JSON.stringify({ packages: locked }));
      for (const path of ['console/index.html', 'console/src/main.tsx', 'scripts/console-types.ts']) write(path, 'x');
      write('test/api/openapi.digest', 'x');
      write('scripts/docs-page.ts', 'x');
      // Stands in for the build: makes what the build does, and counts.
      write(
        'scripts/build-console.ts',
        `import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
         appendFileSync('builds', 'x');
         writeFileSync('console/src/generated/interface.ts', String(process.hrtime.bigint()));
         mkdirSync('dist/console', { recursive: true });
         writeFileSync('dist/console/index.html', '');
         process.exit(Number(process.env.BUILD_CODE ?? 0));`,
      );
    });

    const write = (path: string, text: string): void => writeFileSync(join(folder, path), text);

    function build(args = ['console'], env: Record<string, string> = {}) {
      const { status, stderr } = spawnSync(process.execPath, [join(folder, 'scripts/setup.mjs'), ...args], {
        env: { ...process.env, ...env },
        encoding: 'utf8',
      });
      const builds = existsSync(join(folder, 'builds')) ? readFileSync(join(folder, 'builds'), 'utf8').length : 0;
      return { status, said: stderr, builds };
    }

    it('builds the console once, with a line that says so, and then does nothing, silently', () => {
      expect(build()).toEqual({ status: 0, said: 'Building the console (once)…\n', builds: 1 });
      expect(build()).toEqual({ status: 0, said: '', builds: 1 });
    });

    it('builds again when a source, a style, the interface or what makes its types is another than it was, and then not again', () => {
      build();
      const sources = [
        'console/src/main.tsx',
        'console/new.css',
        'test/api/openapi.digest',
        'scripts/console-types.ts',
        'scripts/docs-page.ts',
      ];
      for (const [index, path] of sources.entries()) {
        write(path, '{"changed":true}');
        expect(build().builds, path).toBe(index + 2);
      }
      expect(build().builds).toBe(sources.length + 1);
    });

    it('builds again when a source is gone, when the packages are others, and when what was built is gone', () => {
      build();
      rmSync(join(folder, 'console/src/main.tsx'));
      expect(build().builds).toBe(2);
      write('package-lock.json', JSON.stringify({ packages: locked, changed: true }));
      expect(build().builds).toBe(3);
      rmSync(join(folder, 'dist/console'), { recursive: true });
      expect(build().builds).toBe(4);
    });

    it('fails when the build fails, and tries again the next time', () => {
      const { status, said } = build(['console'], { BUILD_CODE: '3' });
      expect(status).toBe(3);
      expect(said).toContain('Building the console failed');
      expect(build()).toMatchObject({ status: 0, builds: 2 });
    });

    it('builds with the Node that is installed here, whichever runs this script', () => {
      const pinned = join(folder, 'node_modules/node/bin/node');
      mkdirSync(join(folder, 'node_modules/node/bin'), { recursive: true });
      writeFileSync(pinned, `#!/bin/sh\ntouch '${folder}/pinned'\nexec '${process.execPath}' "$@"\n`);
      chmodSync(pinned, 0o755);
      expect(build().builds).toBe(1);
      expect(existsSync(join(folder, 'pinned'))).toBe(true);
    });

    it('is what builds: the other scripts do without the console', () => {
      expect(build([])).toEqual({ status: 0, said: '', builds: 0 });
    });
  });
});
