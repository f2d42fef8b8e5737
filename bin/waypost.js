#!/usr/bin/env node
// The command. A published package holds compiled files in dist/ alone, because Node does not strip types below node_modules.
// A checkout runs its sources: what "npm pack" has left in its dist/ grows old.
import { existsSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

// As in package.json. Older ones fail in ways that say nothing of the reason, so this comes before all that they do not know.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `waypost: Node ${process.versions.node} is too old, 22.19 or newer is needed; in a checkout "npm start" brings one along\n`,
  );
  process.exit(1);
}

// What a server needs before its process starts, however it is started. glibc returns freed memory to the system: otherwise
// it raises these limits to 32 and 64 MiB once large buffers come and go, and keeps that much in each arena. The young
// generation of the heap may grow to 32 MiB: docs/scaling.md, "Tuning a worker".
const ALLOCATOR = { MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' };
const HEAP = '--max-semi-space-size';
const SERVERS = ['serve', 'dev', 'demo'];
const isHeapSet = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some((options) => options.includes(HEAP));
const isPrepared = isHeapSet && Object.keys(ALLOCATOR).every((name) => name in process.env);
if (SERVERS.includes(process.argv[2] ?? '') && !isPrepared && isMainThread && !process.connected) restart();

/** Replaces the program of this process. Its id, signals, terminal, streams and exit code stay. */
function restart() {
  if (!process.execve) return; // Windows
  // Node calls it experimental.
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    const args = [...(isHeapSet ? [] : [`${HEAP}=32`]), ...process.execArgv, ...process.argv.slice(1)];
    process.execve(process.execPath, [process.argv0, ...args], { ...ALLOCATOR, ...process.env });
  } catch {
    // The server runs all the same, and takes more memory.
    process.emitWarning = emitWarning;
  }
}

// Names are resolved on half of these threads (src/delivery/addresses/resolver.ts): more than 64, which is what as many workers may take
// for names without an answer. Four threads, as by default, are held up by two such names.
process.env.UV_THREADPOOL_SIZE ??= '192';

const sources = new URL('../src/cli/main.ts', import.meta.url);
if (existsSync(sources)) {
  // Sources are stripped of their types once, not at every start: that is faster by half and saves 50 MiB of memory.
  // The variable tells the database's threads, which do not hear of the call.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../node_modules/.cache/waypost', import.meta.url));
  module.enableCompileCache(process.env.NODE_COMPILE_CACHE);
  await import(sources.href);
} else {
  await import(new URL('../dist/cli/main.js', import.meta.url).href);
}
