/** The path of the socket at which a server on a database file listens for the operator. */
import { basename, dirname, join, resolve } from 'node:path';

/** The shortest limit of the systems we know, without the final zero byte. Some systems cut longer paths silently. */
const PATH_BYTES_MAX = 103;

/** Why no server can ever listen at `path`; `undefined`: one can. */
export function unusablePath(path: string): string | undefined {
  if (process.platform === 'win32') return 'Windows has no sockets in folders';
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) return `its path is longer than ${PATH_BYTES_MAX} bytes`;
  return undefined;
}

/**
 * The socket has a folder of its own beside the database file. The folder keeps other users out, because only its owner
 * can read it. The mode of the socket is not enough: for a moment the socket has another mode, before it can be
 * changed.
 */
export function socketPathOf(databasePath: string): string {
  const path = resolve(databasePath);
  return join(dirname(path), `${basename(path)}.operator`, 'socket');
}
