/** The published workflow library: installed from its archive without the server, and bundled. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createContext, runInContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readImports } from '../../scripts/imports.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { listen, originOf } from '../support/listen.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const isWindows = process.platform === 'win32';
const GZIPPED_MAX = 30 * 1024;

/** What each subpath exports beside types. */
const EXPORTS = {
  '.': [
    ...['Client', 'Receiver', 'StepTypes', 'WorkflowAbort', 'WorkflowContext', 'WorkflowError', 'WorkflowMiddleware'],
    ...['WorkflowNonRetryableError', 'WorkflowRetryAfterError', 'createWorkflow', 'loggingMiddleware', 'serve'],
  ],
  './hono': ['createWorkflow', 'serve', 'serveMany'],
  './express': ['createWorkflow', 'serve', 'serveMany'],
  './nextjs': [
    ...['createWorkflow', 'createWorkflowPagesRouter', 'serve', 'serveMany', 'serveManyPagesRouter'],
    'servePagesRouter',
  ],
  './fastify': ['createWorkflow', 'routes', 'serve', 'serveMany'],
  './node': ['createWorkflow', 'serve', 'serveMany'],
  './cloudflare': ['createWorkflow', 'serve', 'serveMany'],
};
const SUBPATHS = Object.keys(EXPORTS) as (keyof typeof EXPORTS)[];

/** Those for runtimes that have nothing but the web's standards. */
const OF_THE_WEB = ['.', './hono', './nextjs', './cloudflare'] as const;

const nameOf = (subpath: string) => `@waypost/workflow${subpath.slice(1)}`;

/** An app's folder, with nothing but the library installed. */
let folder: string;
let packed: string[];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'waypost-library-'));
  const shell = isWindows;
  const packing = ['pack', '--workspace', '@waypost/workflow', '--json', '--pack-destination', folder];
  const [{ filename, files }] = JSON.parse(
    // Whatever its script prints is not part of the answer.
    execFileSync('npm', ['--silent', ...packing], { cwd: root, encoding: 'utf8', shell }).replace(/^[^[]*/, ''),
  );
  packed = (files as { path: string }[]).map(({ path }) => path);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  // No registry is asked: there is nothing else to install.
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${filename}`], { cwd: folder, shell });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('is installed alone, with its license', () => {
  const installed = readdirSync(join(folder, 'node_modules'), { recursive: true, encoding: 'utf8' });
  expect(installed.filter((path) => path.endsWith('package.json'))).toEqual([
    join('@waypost', 'workflow', 'package.json'),
  ]);
  expect(packed.filter((path) => !path.startsWith('dist/')).toSorted()).toEqual([
    'LICENSE',
    'README.md',
    'package.json',
  ]);
});

it.each(SUBPATHS)('%s is imported, and required, with all that it has', (subpath) => {
  for (const get of ['await import', 'createRequire(import.meta.url)']) {
    const source = `import { createRequire } from 'node:module';
      console.log(JSON.stringify(Object.keys(${get}('${nameOf(subpath)}')).sort()));`;
    writeFileSync(join(folder, 'app.js'), source);
    const { stdout, stderr } = spawnSync(process.execPath, ['app.js'], { cwd: folder, encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual(EXPORTS[subpath]);
  }
});

it.each([
  ["Node's", ['--lib', 'es2022', '--types', 'node', '--typeRoots', join(root, 'node_modules/@types')]],
  ["a browser's", ['--lib', 'es2022,dom,dom.iterable', '--types', '']],
])('has types that an app compiles against beside %s', (_, types) => {
  const uses = SUBPATHS.map((subpath, index) => {
    const creates = `of${index}.createWorkflow(async (context: WorkflowContext<{ a: number }>) => context.requestPayload.a)`;
    return `import * as of${index} from '${nameOf(subpath)}';\nexport const workflow${index} = ${creates};`;
  });
  const app = `import { type WorkflowContext, serve } from '@waypost/workflow';
    export const wrong: number = serve<{ a: string }>(async (context) => context.run('a', () => context.requestPayload.a));`;
  writeFileSync(join(folder, 'app.ts'), [app, ...uses].join('\n'));
  const strict = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--target', 'es2022'];
  const { stdout } = spawnSync(`${root}node_modules/.bin/tsc`, [...strict, ...types, 'app.ts'], {
    cwd: folder,
    encoding: 'utf8',
    shell: isWindows,
  });
  // The types are known: what is served is no number. Nothing else is wrong, also in the declarations.
  expect(stdout.match(/error TS.*/g)).toEqual([expect.stringMatching('TS2322: Type .* is not assignable to type')]);
});

it(`has at most ${GZIPPED_MAX / 1024} KiB, gzipped, in the bundle of an app that uses all of it`, async () => {
  const bundle = await bundleOf(SUBPATHS, 'es');
  expect(gzipSync(bundle).length).toBeLessThan(GZIPPED_MAX);
  writeFileSync(join(folder, 'bundle.js'), bundle);
  // Nor does it name a module that a bundler would look for.
  expect(readImports(join(folder, 'bundle.js'))).toEqual([]);
});

it("runs on the web's standards alone", async () => {
  const globals = {
    ...{ AbortController, Headers, Request, Response, URL, URLSearchParams, TextDecoder, TextEncoder, fetch, crypto },
    ...{ atob, btoa, clearTimeout, console, performance, queueMicrotask, setTimeout },
  };
  const sandbox = createContext({ ...globals });
  const library = runInContext(`${await bundleOf(OF_THE_WEB, 'iife')};library`, sandbox);
  const waypost = await startWaypost();
  const { handler } = library.of0.serve(
    async (context: import('../../packages/workflow/src/index.ts').WorkflowContext<number>) => {
      const one = await context.run('one', () => context.requestPayload + 1);
      const both = await Promise.all([context.run('a', () => one), context.run('b', () => one * 2)]);
      return context.run('sum', () => both[0] + both[1]);
    },
    { env: waypost.env() },
  );
  const app = createServer(async (from, to) => {
    const { headers } = from as { headers: Record<string, string> };
    const request = new Request(`http://${headers['host']}/`, { method: 'POST', headers, body: await text(from) });
    const answer: Response = await handler(request);
    to.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  await listen(app);
  try {
    const client = new library.of0.Client({ baseUrl: waypost.url, token: waypost.token });
    const url = `${originOf(app)}/`;
    const { workflowRunId } = await client.trigger({ url, body: 7 });
    await waypost.runUntilIdle();
    const { runs } = await client.logs({ workflowRunId });
    expect(runs[0]).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '24' });
  } finally {
    app.closeAllConnections();
    app.close();
    await waypost.stop();
  }
});

/** One file of all these subpaths; as a script it leaves them in `library`, as `of0`, `of1`, … */
async function bundleOf(subpaths: readonly string[], format: 'es' | 'iife'): Promise<string> {
  const source = join(folder, 'bundled');
  mkdirSync(source, { recursive: true });
  const lines = subpaths.map((subpath, index) => `export * as of${index} from '${nameOf(subpath)}';`);
  writeFileSync(join(source, 'app.js'), lines.join('\n'));
  const output = await build({
    root: folder,
    configFile: false,
    logLevel: 'silent',
    build: {
      lib: { entry: join(source, 'app.js'), name: 'library', formats: [format] },
      minify: true,
      write: false,
    },
  });
  const [bundle] = [output].flat();
  if (!bundle || !('output' in bundle)) throw new Error('nothing was bundled');
  expect(bundle.output).toHaveLength(1);
  return bundle.output[0].code;
}
