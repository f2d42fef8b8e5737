#!/usr/bin/env node
// The entry point of the command. A published package contains only compiled files in dist/, since Node does not strip types
// below node_modules. A checkout runs its sources, because a dist/ left there by "npm pack" may be outdated.
import { existsSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

// The same minimum as in package.json. Older versions fail with unrelated errors, so this check comes first.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `waypost: Node ${process.versions.node} is too old; 22.19 or newer is required. In a checkout, "npm start" uses its own Node\n`,
  );
  process.exit(1);
}

// Settings that a server needs before its process starts. With fixed thresholds, glibc returns freed memory to the system.
// Otherwise it raises them to 32 and 64 MiB once large buffers come and go, and retains that much in each arena. The young
// generation of the heap may grow to 32 MiB: docs/scaling.md, "Tuning a worker".
const ALLOCATOR = { MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' };
const HEAP = '--max-semi-space-size';
const SERVERS = ['serve', 'dev', 'demo'];
const isHeapSet = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some((options) => options.includes(HEAP));
const isPrepared = isHeapSet && Object.keys(ALLOCATOR).every((name) => name in process.env);
if (SERVERS.includes(process.argv[2] ?? '') && !isPrepared && isMainThread && !process.connected) restart();

/** Replaces the program of this process. Its id, signals, terminal, streams and exit code remain. */
function restart() {
  if (!process.execve) return; // Windows
  // Node prints a warning, since execve is experimental.
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    const args = [...(isHeapSet ? [] : [`${HEAP}=32`]), ...process.execArgv, ...process.argv.slice(1)];
    process.execve(process.execPath, [process.argv0, ...args], { ...ALLOCATOR, ...process.env });
  } catch {
    // The server still works, but uses more memory.
    process.emitWarning = emitWarning;
  }
}

// Half of these threads resolve names (src/delivery/addresses/resolver.ts). They must exceed the 64 that workers may use for
// names without a response. With Node's default of four threads, two such names would block all others.
process.env.UV_THREADPOOL_SIZE ??= '192';

const sources = new URL('../src/cli/main.ts', import.meta.url);
if (existsSync(sources)) {
  // Caches the stripped sources, which halves the start time and saves 50 MiB of memory.
  // The variable enables the cache in the database threads as well.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../node_modules/.cache/waypost', import.meta.url));
  module.enableCompileCache(process.env.NODE_COMPILE_CACHE);
  await import(sources.href);
} else {
  await import(new URL('../dist/cli/main.js', import.meta.url).href);
}
