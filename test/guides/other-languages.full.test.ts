/** Follows the quick starts for other languages unchanged, with packages of Debian where they may be installed. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { obstacleTo } from '../support/debian.ts';
import { eventually } from '../support/eventually.ts';
import { blocksOf } from '../support/pages.ts';
import { Reader } from './reader.ts';
import { deliver, signatures } from './signatures.ts';

/** Debian's, since it is the one that Debian's packages are for. */
const PYTHON = '/usr/bin/python3';

const LANGUAGES = [
  {
    name: 'python',
    obstacle: obstacleTo(
      PYTHON,
      ['python3-fastapi', 'python3-uvicorn', 'python3-jwt'],
      ['-c', 'import fastapi, jwt, uvicorn'],
    ),
    prepare: undefined,
    start: [PYTHON, '-m', 'uvicorn', 'app:app', '--port', '3000', '--log-level', 'warning'],
  },
  {
    name: 'go',
    obstacle: obstacleTo('go', ['golang-go'], ['version']),
    prepare: ['go', 'build', '-o', 'app', 'main.go'],
    start: ['./app'],
  },
];

let waypost: Waypost;
beforeAll(async () => {
  waypost = await startWaypost();
});
afterAll(() => waypost.stop());

describe.each(LANGUAGES)('the quick start for $name', ({ name, obstacle, prepare, start }) => {
  const blocks = blocksOf(`docs/quick-starts/${name}.md`);
  let reader: Reader;
  let app: ChildProcess | undefined;
  let printed = '';

  beforeAll(async () => {
    if (obstacle !== undefined) return;
    reader = await Reader.open(waypost.env());
    reader.save(blocks);
    const options = { cwd: reader.folder, env: { ...process.env, ...waypost.env() } };
    if (prepare !== undefined) {
      const [program = '', ...args] = prepare;
      const { status, stderr } = spawnSync(program, args, { ...options, encoding: 'utf8' });
      expect(status, stderr).toBe(0);
    }
    const [program = '', ...args] = start.map((word) => word.replace('3000', new URL(reader.appUrl).port));
    app = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
    app.stdout?.on('data', (chunk: Buffer) => {
      printed += chunk.toString('utf8');
    });
    await eventually(
      `the app of ${name} to listen`,
      () => fetch(reader.appUrl).catch(() => undefined) ?? app?.exitCode !== null,
    );
  }, 200_000);
  afterAll(async () => {
    if (app === undefined) return;
    const exited = once(app, 'exit');
    app.kill('SIGKILL');
    await exited;
    await reader.close();
  });

  it.skipIf(obstacle !== undefined)(`prints what it says${obstacle ? ` (skipped: ${obstacle})` : ''}`, async () => {
    for (const { language, code } of blocks) {
      if (language === 'sh' && code.includes('curl')) {
        await reader.type(code);
        await waypost.runUntilIdle();
      } else if (language === 'text') {
        await eventually(`"${code}"`, () => printed === code);
      }
    }
    expect(await waypost.dlq()).toEqual([]);
    expect((await waypost.messages()).at(-1)?.state).toBe('DELIVERED');
  });

  it.skipIf(obstacle !== undefined)('does nothing for those who cannot sign', async () => {
    const before = printed;
    const url = `${reader.appUrl}/welcome`;
    const { genuine = '', ...forged } = signatures(waypost.signingKeys, url);
    for (const [flaw, signature] of Object.entries(forged)) {
      expect(await deliver(url, signature), `a signature ${flaw}`).toBe(403);
    }
    expect(printed).toBe(before);
    expect(await deliver(url, genuine)).toBe(200);
  });
});
