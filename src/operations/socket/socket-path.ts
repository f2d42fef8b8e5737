/** Where does a server on a database file listen for its operator? */
import { basename, dirname, join, resolve } from 'node:path';

/** The shortest limit of the systems we know, without its final zero; some cut longer ones without a word. */
const PATH_BYTES_MAX = 103;

/** Why no server can listen at `path`, whatever lies there; `undefined`: one can. */
export function unusablePath(path: string): string | undefined {
  if (process.platform === 'win32') return 'Windows has no sockets in folders';
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) return `its path is longer than ${PATH_BYTES_MAX} bytes`;
  return undefined;
}

/**
 * A socket in a folder of its own beside the file. The folder, readable by its owner only, is what keeps others out: a
 * socket has the mode it was made with for a moment before that can be changed.
 */
export function socketPathOf(databasePath: string): string {
  const path = resolve(databasePath);
  return join(dirname(path), `${basename(path)}.operator`, 'socket');
}
