#!/usr/bin/env -S MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072 node --max-semi-space-size=32
// The young generation of the heap may grow to 32 MiB, and no further: docs/scaling.md, "Tuning a worker". And glibc gives
// back what is freed: by itself it raises these limits to 32 and 64 MiB once large buffers come and go, and keeps as much.
//
// The command. A published package holds compiled files in dist/ alone, because Node does not strip types below node_modules.
// A checkout runs its sources: what "npm pack" has left in its dist/ grows old.
import { existsSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

// As in package.json. Older ones fail in ways that say nothing of the reason, so this comes before all that they do not know.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `waypost: Node ${process.versions.node} is too old, 22.19 or newer is needed; in a checkout "npm start" brings one along\n`,
  );
  process.exit(1);
}

// Names are resolved on half of these threads (src/delivery/resolver.ts): more than 64, which is what as many workers may take
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
