/** The path of the socket on which the server of a database file receives the operator's commands. */
import { basename, dirname, join, resolve } from 'node:path';

/** The shortest limit of the supported systems, without the final zero byte. Some systems silently truncate paths. */
const PATH_BYTES_MAX = 103;

/** The reason why no server can listen at `path`. Undefined if a server can listen there. */
export function unusablePath(path: string): string | undefined {
  if (process.platform === 'win32') return 'Windows has no sockets in folders';
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) return `its path is longer than ${PATH_BYTES_MAX} bytes`;
  return undefined;
}

/**
 * The socket has a folder of its own next to the database file. Only the owner can read this folder, which keeps other
 * users out. The mode of the socket is not enough, because the mode can only be set a moment after the socket was
 * created.
 */
export function socketPathOf(databasePath: string): string {
  const path = resolve(databasePath);
  return join(dirname(path), `${basename(path)}.operator`, 'socket');
}
