/** Finds imports that violate the layers (docs/architecture.md). The table below is the complete rule. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { readImports } from './imports.ts';

/**
 * What each folder of src may import: other folders, packages, and modules of Node. Everything else is rejected, so a new
 * folder needs a row, and a layer that uses no input or output cannot start to use any. `src/store/store.ts`
 * contains only the type of the store, which is derived from its operations.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  protocol: ['@sinclair/typebox', 'node:buffer', 'node:crypto'],
  workflow: ['protocol', 'node:buffer'],
  engine: ['workflow', 'protocol', 'src/store/store.ts', 'node:buffer', 'node:crypto'],
  store: [
    ...['system', 'engine', 'workflow', 'protocol', 'pg', 'src/cells/store/directory.ts', 'src/cells/store/moves.ts'],
    ...['node:crypto', 'node:fs', 'node:path', 'node:sqlite', 'node:stream', 'node:worker_threads'],
  ],
  delivery: [
    ...['engine', 'workflow', 'protocol', 'undici', 'ipaddr.js'],
    ...['node:dns', 'node:net', 'node:stream', 'node:zlib'],
  ],
  api: [
    ...['engine', 'workflow', 'protocol', '@sinclair/typebox', 'ipaddr.js'],
    ...['node:crypto', 'node:http', 'node:net', 'node:util', 'node:worker_threads', 'node:zlib'],
  ],
  config: ['system', 'engine', 'protocol', 'node:crypto', 'node:fs', 'node:path', 'node:util'],
  telemetry: [
    ...['engine', 'workflow', 'protocol', 'pino', 'prom-client', '@opentelemetry/otlp-transformer'],
    ...['@opentelemetry/otlp-exporter-base/node-http', 'node:fs', 'node:perf_hooks', 'node:v8'],
  ],
  system: ['engine', 'node:crypto', 'node:fs', 'node:path', 'node:perf_hooks', 'node:v8', 'node:vm'],
  accounts: ['system', 'api', 'config', 'engine', 'protocol', 'src/store/store.ts'],
  admin: [
    ...['accounts', 'api', 'cells', 'config', 'engine', 'protocol', 'store', 'system'],
    ...['@sinclair/typebox', '@sinclair/typebox/value', 'node:fs', 'node:net', 'node:os', 'node:path'],
  ],
  // `cells` has the code that uses several databases. Other folders may import only the files of `cells` in their rows.
  cells: ['accounts', 'config', 'engine', 'admin', 'protocol', 'store', 'system', 'telemetry'],
  server: [
    ...[
      'accounts',
      'api',
      'cells',
      'config',
      'delivery',
      'engine',
      'admin',
      'protocol',
      'store',
      'system',
      'telemetry',
    ],
    ...[
      'node:crypto',
      'node:dns/promises',
      'node:fs/promises',
      'node:http',
      'node:net',
      'node:os',
      'node:path',
      'node:url',
    ],
    ...['node:util', 'node:worker_threads', 'node:zlib'],
  ],
  testing: ['config', 'delivery', 'engine', 'admin', 'protocol', 'server', 'system', 'node:buffer'],
  cli: [
    ...['accounts', 'api', 'cells', 'config', 'engine', 'admin', 'server', 'system', 'telemetry', 'testing'],
    ...['node:*', '@upstash/qstash', '@upstash/workflow', '@upstash/workflow/cloudflare'],
  ],
};

/** Returns `<file>:<line>: <problem>` for each import below `root`/src that the table does not allow. */
export function findWrongImports(root: string): string[] {
  return globSync('src/**/*.ts', { cwd: root })
    .toSorted()
    .flatMap((file) => {
      const folder = folderOf(file);
      const allowed = folder === undefined ? undefined : MAY_IMPORT[folder];
      if (allowed === undefined) return [`${file}: src/${folder} has no row in scripts/import-directions.ts`];
      return readImports(join(root, file)).flatMap(({ line, target }) => {
        const imported = nameOf(file, target);
        const isAllowed = (name: string) =>
          name === imported || name === pathOf(file, target) || (name === 'node:*' && isBuiltin(imported));
        if (imported === folder || allowed.some(isAllowed)) return [];
        return [`${file}:${line}: ${folder} may not import ${imported}, only ${allowed.join(', ')}`];
      });
    });
}

/** The name in the table for `target`, imported by `file`: a folder of src, a package, or a module of Node. */
function nameOf(file: string, target: string): string {
  if (!target.startsWith('.')) return target;
  const path = pathOf(file, target);
  return folderOf(path) ?? path;
}

function pathOf(file: string, target: string): string {
  return join(file, '..', target).replaceAll('\\', '/');
}

function folderOf(path: string): string | undefined {
  return /^src[\\/]([^\\/]+)/.exec(path)?.[1];
}

function isBuiltin(name: string): boolean {
  return name.startsWith('node:');
}
