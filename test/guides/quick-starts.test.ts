/** Follows each quick start, and compares the output of the app with the page, which shows it after the commands. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { blocksOf } from '../support/pages.ts';
import { Reader } from './reader.ts';
import { deliver, signatures } from './signatures.ts';

/** The pages, and what in them only Waypost may call. */
const PAGES = {
  curl: ['/greet'],
  express: ['/welcome', '/trial'],
  fastify: ['/welcome', '/trial'],
  hono: ['/welcome', '/trial'],
  nextjs: ['/api/welcome', '/api/trial'],
};
/** 500: so the workflow library says it. */
const REFUSED = [403, 500];

/** Next.js calls what a file of its folder `app` exports by the method's name. */
const ROUTES = {
  language: 'ts',
  file: 'routes.ts',
  code: `
    import { serve } from '@hono/node-server';
    async function fetch(request) {
      const { POST } = await import('./app' + new URL(request.url).pathname + '/route.ts');
      return POST(request);
    }
    serve({ fetch, port: 3000, hostname: '127.0.0.1' });`,
};

/** Next.js takes all files for ES modules, whatever `npm init` has written. */
const BUNDLED = { language: 'json', file: 'package.json', code: '{"type":"module"}' };

const RESPONSE = globalThis.Response;

let waypost: Waypost;
beforeAll(async () => {
  // Before no time of a schedule on a page.
  waypost = await startWaypost({ startAt: new Date('2026-03-26T12:00:00Z') });
});
afterAll(() => waypost.stop());

it('has a test for each page', () => {
  const pages = readdirSync(join(import.meta.dirname, '../../docs/quick-starts')).map((file) =>
    file.replace('.md', ''),
  );
  expect(pages.toSorted()).toEqual([...Object.keys(PAGES), 'go', 'python'].toSorted());
});

describe.each(Object.entries(PAGES))('the quick start for %s', (name, guarded) => {
  const blocks = blocksOf(`docs/quick-starts/${name}.md`);
  let reader: Reader;
  let printed: MockInstance<typeof console.log>;

  beforeEach(async () => {
    reader = await Reader.open(waypost.env());
    printed = vi.spyOn(console, 'log').mockReturnValue();
    vi.spyOn(console, 'error').mockReturnValue(); // of the workflow library, when a signature is missing
    reader.save(name === 'nextjs' ? [...blocks, ROUTES, BUNDLED] : blocks);
    await reader.run(name === 'nextjs' ? ROUTES.file : 'app.mts');
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await reader.close();
    expect(globalThis.Response, 'tests that follow in this process have it too').toBe(RESPONSE);
  });

  it('prints what it says', async () => {
    for (const { language, code } of blocks) {
      if (language === 'sh' && code.includes('curl')) {
        await reader.type(name === 'curl' ? `. ./.env; ${code}` : code); // that page has said so
        await waypost.runUntilIdle();
      } else if (language === 'text') {
        expect(printed.mock.calls.map(([line]) => `${line}\n`).join('')).toBe(code);
        printed.mockClear();
      }
    }
    expect((await waypost.dlq()).length).toBe(0);
  });

  it('does nothing for those who cannot sign', async () => {
    for (const path of guarded) {
      const url = `${reader.appUrl}${path}`;
      const { genuine: _, ...forged } = signatures(waypost.signingKeys, url);
      // Receivers of the official client look at the URL where they are told it.
      if (name !== 'curl') delete forged['for another URL'];
      for (const [flaw, signature] of Object.entries(forged)) {
        expect(await deliver(url, signature), `a signature ${flaw}`).toBeOneOf(REFUSED);
      }
    }
    expect(printed.mock.calls).toEqual([]);
    const [path] = guarded;
    const { genuine = '' } = signatures(waypost.signingKeys, `${reader.appUrl}${path}`);
    expect(await deliver(`${reader.appUrl}${path}`, genuine)).toBeOneOf([200, 204]);
  });
});
