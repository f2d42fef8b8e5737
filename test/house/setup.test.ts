/** When does the first script of a fresh clone install, and when does it leave node_modules alone? */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const setup = fileURLToPath(new URL('../../scripts/setup.mjs', import.meta.url));
const locked = { '': { version: '1.0.0' }, 'node_modules/a': { version: '1.2.3' } };

describe('scripts/setup.mjs', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'waypost-setup-'));
    mkdirSync(join(folder, 'scripts'));
    cpSync(setup, join(folder, 'scripts/setup.mjs'));
    // Stands in for npm: writes down what it was asked for, and fails when told to.
    const npm = `require('node:fs').writeFileSync('asked', process.argv.slice(2).join(' ')); process.exit(Number(process.env.NPM_CODE));`;
    writeFileSync(join(folder, 'npm.cjs'), npm);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

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
});
