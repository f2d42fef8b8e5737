/** Flushes a data folder to disk before a measurement, so that no earlier write is pending during it. */
import { closeSync, fsyncSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Flushes only the files of the data folder: a full `sync` would also wait for other programs. */
export function flush(dataDir: string): void {
  for (const entry of readdirSync(dataDir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = openSync(join(entry.parentPath, entry.name), 'r');
    fsyncSync(file);
    closeSync(file);
  }
}
