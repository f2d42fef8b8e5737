/** How is it certain that a file, or a name in a folder, outlives a power cut? */
import { closeSync, fsyncSync, openSync } from 'node:fs';

/**
 * What a file has, or which names a folder has, is on disk when this returns. Where the file system cannot be asked for
 * that, as some shares and Windows cannot for folders, it is left to itself.
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
