/** Changing the import is the whole migration, in both directions: small apps compile and do the same with either library. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { registerHooks } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { startWaypost } from '../../src/testing/waypost.ts';
import type { App } from './apps/app.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const apps = fileURLToPath(new URL('./apps', import.meta.url));
const NAMES = readdirSync(apps).filter((name) => name !== 'app.ts');

/** Files of our library by what is imported of the official one. */
const OURS: Record<string, string> = {
  '@upstash/workflow': 'index',
  '@upstash/workflow/express': 'node',
  '@upstash/workflow/hono': 'hono',
  '@upstash/workflow/nextjs': 'nextjs',
  '@upstash/workflow/cloudflare': 'cloudflare',
};

const fileOf = (name: string) => join(root, `packages/workflow/src/${name}.ts`);

/** With it at the end of its URL, an app gets our library for what it imports of the official one. */
const WITH_OURS = '?ours';

const hooks = registerHooks({
  resolve: (specifier, context, next) => {
    const file = context.parentURL?.endsWith(WITH_OURS) ? OURS[specifier] : undefined;
    return next(file ? new URL(`../../packages/workflow/src/${file}.ts`, import.meta.url).href : specifier, context);
  },
});
afterAll(() => hooks.deregister());

describe.each([
  ['the official library', {}],
  ['ours', Object.fromEntries(Object.entries(OURS).map(([name, file]) => [name, [fileOf(file)]]))],
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
    const { app } = (await import(`./apps/${name}${library === 'ours' ? WITH_OURS : ''}`)) as { app: App };
    const waypost = await startWaypost();
    const env = waypost.env();
    const server = createServer(app.listener(env));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const idle = async () => void (await waypost.runUntilIdle());
      expect(await app.use({ env, url, idle })).toEqual(app.sees);
    } finally {
      server.closeAllConnections();
      server.close();
      await waypost.stop();
    }
  });
});
