/** Flushes files and folders to disk, so that the files and folders survive a power failure. */
import { closeSync, fsyncSync, openSync } from 'node:fs';

/**
 * Flushes the content of a file, or the names in a folder. Does nothing where the file system does not support flushing,
 * such as on some network shares, and for folders on Windows.
 */
export function syncToDisk(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } catch (error) {
    if (!['EINVAL', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    closeSync(handle);
  }
}
