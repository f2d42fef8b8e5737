/**
 * Answers input that is no valid request (malformed, too large, too slow) with a JSON error, and closes the connection.
 */
import type { Socket } from 'node:net';
import type { Connections } from './connections.ts';

const ANSWER_BY_CODE: ReadonlyMap<string, readonly [status: string, error: string]> = new Map([
  ['HPE_HEADER_OVERFLOW', ['431 Request Header Fields Too Large', 'request line and headers are too large']],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', ['413 Payload Too Large', 'chunk extensions are too large']],
  /** The headers or the body arrived too slowly. Remedy: check the network and the proxy; `WAYPOST_REQUEST_TIMEOUT` is the limit. */
  ['ERR_HTTP_REQUEST_TIMEOUT', ['408 Request Timeout', 'the request did not arrive in time']],
]);

const MALFORMED = ['400 Bad Request', 'malformed HTTP request'] as const;

/**
 * For the server's `clientError` event. Earlier requests of the connection are answered first: they may have been done
 * (P1).
 */
export function clientErrorHandler(connections: Connections): (error: NodeJS.ErrnoException, socket: Socket) => void {
  return (error, socket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) socket.destroy();
    else connections.of(socket).fail(() => answerAndClose(error, socket));
  };
}

function answerAndClose({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
  if (socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, text] = ANSWER_BY_CODE.get(code) ?? MALFORMED;
  const json = JSON.stringify({ error: text });
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(json)}`;
  // The connection is closed at once: such a client does not speak HTTP, or is too slow to wait for.
  socket.end(`${head}\r\nconnection: close\r\n\r\n${json}`, () => socket.destroy());
}
