/** Which import goes against the direction of the layers (docs/architecture.md)? The table is the whole rule. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { readImports } from './imports.ts';

/**
 * What each part of src may import besides itself: other parts, packages, modules of Node. Anything else is refused, so
 * a new folder needs a row, and a layer that does no input or output cannot begin to.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  protocol: ['@sinclair/typebox', 'node:buffer', 'node:crypto'],
  workflow: ['protocol', 'node:buffer'],
  engine: ['workflow', 'protocol', 'node:buffer', 'node:crypto'],
  store: [
    ...['folder.ts', 'memory.ts', 'engine', 'workflow', 'protocol', 'pg'],
    ...['node:crypto', 'node:fs', 'node:path', 'node:sqlite', 'node:stream', 'node:worker_threads'],
  ],
  delivery: ['engine', 'workflow', 'protocol', 'undici', 'ipaddr.js', 'node:dns', 'node:net'],
  api: [
    'engine',
    'workflow',
    'protocol',
    '@sinclair/typebox',
    'ipaddr.js',
    'node:crypto',
    'node:http',
    'node:net',
    'node:worker_threads',
  ],
  config: ['folder.ts', 'engine', 'protocol', 'node:crypto', 'node:fs', 'node:path'],
  telemetry: ['engine', 'pino'],
  operator: [
    ...['accounts.ts', 'api', 'config', 'engine', 'protocol', '@sinclair/typebox', '@sinclair/typebox/value'],
    ...['node:fs', 'node:net', 'node:path'],
  ],
  testing: ['engine', 'protocol', 'node:timers'],
  // The files that put the parts together.
  'cannot-start.ts': [],
  'folder.ts': ['node:fs', 'node:path'],
  'memory.ts': ['node:perf_hooks', 'node:v8', 'node:vm'],
  'system.ts': ['engine', 'node:crypto'],
  'accounts.ts': ['api', 'config', 'engine', 'protocol'],
  'open-store.ts': [
    ...['accounts.ts', 'cannot-start.ts', 'system.ts', 'config', 'engine', 'protocol', 'store'],
    ...['node:fs', 'node:path'],
  ],
  'initialise.ts': ['cannot-start.ts', 'open-store.ts', 'system.ts', 'operator', 'api', 'config', 'engine'],
  'administer.ts': ['cannot-start.ts', 'open-store.ts', 'system.ts', 'operator', 'config', 'store'],
  'examine.ts': ['cannot-start.ts', 'open-store.ts', 'system.ts', 'config', 'store', 'node:fs'],
  'store-end.ts': ['cannot-start.ts', 'open-store.ts', 'system.ts', 'config', 'store', 'node:fs', 'node:path'],
  'move-store.ts': ['cannot-start.ts', 'open-store.ts', 'store-end.ts', 'store'],
  'backup.ts': [
    ...['cannot-start.ts', 'open-store.ts', 'store-end.ts', 'system.ts', 'config', 'store'],
    ...['node:fs', 'node:path'],
  ],
  'restore.ts': [
    ...['cannot-start.ts', 'open-store.ts', 'store-end.ts', 'backup.ts', 'config', 'store'],
    ...['node:fs', 'node:os', 'node:path'],
  ],
  'open-accounts.ts': ['accounts.ts', 'cannot-start.ts', 'api', 'config', 'engine', 'protocol'],
  'listen.ts': ['cannot-start.ts', 'api', 'node:dns/promises', 'node:net'],
  'worker.ts': [
    ...['accounts.ts', 'cannot-start.ts', 'listen.ts', 'open-accounts.ts', 'open-store.ts', 'system.ts'],
    ...['api', 'config', 'delivery', 'engine', 'operator', 'protocol', 'telemetry', 'node:os'],
  ],
  threads: [
    ...['worker.ts', 'cannot-start.ts', 'listen.ts', 'memory.ts', 'open-accounts.ts', 'open-store.ts', 'system.ts'],
    ...['config', 'engine', 'store', 'node:worker_threads'],
  ],
  'server.ts': [
    ...['accounts.ts', 'open-accounts.ts', 'open-store.ts', 'worker.ts', 'threads', 'system.ts', 'operator', 'config'],
    'engine',
  ],
  cli: [
    'server.ts',
    'cannot-start.ts',
    'threads',
    'memory.ts',
    'system.ts',
    'initialise.ts',
    'administer.ts',
    'examine.ts',
    'move-store.ts',
    'backup.ts',
    'restore.ts',
    'open-accounts.ts',
    'operator',
    'config',
    'engine',
    'telemetry',
    'node:*',
    '@upstash/qstash',
    '@upstash/workflow',
    '@upstash/workflow/cloudflare',
  ],
};

/** `<file>:<line>: <what is wrong>` of each import below `root`/src that the table does not allow. */
export function findWrongImports(root: string): string[] {
  return globSync('src/**/*.ts', { cwd: root })
    .toSorted()
    .flatMap((file) => {
      const part = partOf(file);
      const allowed = part === undefined ? undefined : MAY_IMPORT[part];
      if (allowed === undefined) return [`${file}: src/${part} has no row in scripts/import-directions.ts`];
      return readImports(join(root, file)).flatMap(({ line, target }) => {
        const wanted = wantedBy(file, target);
        if (wanted === part || allowed.some((name) => name === wanted || (name === 'node:*' && isBuiltin(wanted)))) {
          return [];
        }
        return [`${file}:${line}: ${part} may not import ${wanted}, only ${allowed.join(', ')}`];
      });
    });
}

/** The row of the table that `target` belongs to, seen from `file`: a part of src, a package or a module of Node. */
function wantedBy(file: string, target: string): string {
  if (!target.startsWith('.')) return target;
  const path = join(file, '..', target).replaceAll('\\', '/');
  return partOf(path) ?? path;
}

function partOf(path: string): string | undefined {
  return /^src[\\/]([^\\/]+)/.exec(path)?.[1];
}

function isBuiltin(name: string): boolean {
  return name.startsWith('node:');
}
