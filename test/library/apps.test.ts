/** To migrate in either direction, only the import has to change: small apps compile and do the same with both libraries. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { startWaypost } from '../../src/testing/waypost.ts';
import { listen, originOf } from '../support/listen.ts';
import type { App } from './apps/app.ts';
import { importWithOurs, OURS } from './ours.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const apps = fileURLToPath(new URL('./apps', import.meta.url));
const NAMES = readdirSync(apps).filter((name) => name !== 'app.ts');

describe.each([
  ['the official library', {}],
  ['ours', Object.fromEntries(Object.entries(OURS).map(([name, file]) => [name, [fileURLToPath(file)]]))],
])('with %s', (library, paths) => {
  it('the apps compile', () => {
    const folder = mkdtempSync(join(tmpdir(), 'waypost-apps-'));
    const config = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { paths, typeRoots: [join(root, 'node_modules/@types')] },
      include: [],
      files: [...NAMES.map((name) => join(apps, name)), join(root, 'test/workflows/support/express.d.ts')],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    const { stdout } = spawnSync(`${root}node_modules/.bin/tsc`, ['-p', folder], {
      encoding: 'utf8',
      shell: process.platform === 'win32',
    });
    expect(stdout).toBe('');
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(NAMES)('%s does what its user wants', async (name) => {
    const file = new URL(`./apps/${name}`, import.meta.url);
    const { app } = (await (library === 'ours' ? importWithOurs(file) : import(file.href))) as { app: App };
    const waypost = await startWaypost();
    const env = waypost.env();
    const server = createServer(app.listener(env));
    await listen(server);
    try {
      const url = originOf(server);
      const idle = async () => void (await waypost.runUntilIdle());
      expect(await app.use({ env, url, idle })).toEqual(app.sees);
    } finally {
      server.closeAllConnections();
      server.close();
      await waypost.stop();
    }
  });
});
