/** Writes an answer, and handles a request body that was not read. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../engine/ports.ts';
import type { Connection } from './edge/connections.ts';
import { CHUNK_LENGTH } from './edge/paced-output.ts';
import { expectsContinue } from './requests/request-body.ts';
import type { ApiResponse, ResponseStream } from './response.ts';

/** One request, its response and its connection. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  connection: Connection;
}

/** An unread rest up to this size is read and dropped by Node itself, so that the connection can be used again. */
const DISCARDED_BYTES_MAX = 64 * 1024;
/** Limits of time and bytes for dropping a large refused body, before the connection is closed. */
const LINGER_MS = 2_000;
const LINGER_BYTES_MAX = 16 * 1024 * 1024;

/** A client that takes nothing of a stream for so long is cut off. Streams write something more often. */
const STALLED_MS = 5 * 60_000;

/** Writes `given` as the whole answer. The connection stays open unless too much of the request is unread. */
export function respond({ request, response, connection }: Exchange, given: ApiResponse, clock: Clock): void {
  const { status, json, content, stream, headers, onSent: sent, cutOff } = given;
  if (stream) return beginStream({ request, response, connection }, given, stream);
  if (sent && response.closed) sent();
  else if (sent) response.once('close', sent);
  // Not `response.destroy()`: an answer that stands behind another one would stay in memory.
  if (cutOff?.aborted) request.socket.destroy();
  else cutOff?.addEventListener('abort', () => request.socket.destroy());
  const { type, body } = content ?? { type: 'application/json', body: json };
  const isLeft = isBodyLeft(request) || (status === 401 && hasBody(request));
  if (isLeft) connection.end();
  const isLast = connection.noteResponse(response, status) || isLeft;
  const bytes = Buffer.byteLength(body);
  response.writeHead(status, {
    ...headers,
    ...(bytes === 0 ? undefined : { 'content-type': type }),
    // A 304 is about a body that the client has, and whose length is not 0.
    ...(status === 304 ? undefined : { 'content-length': bytes }),
    ...(isLast ? { connection: 'close' } : undefined),
  });
  // A client that waits for `100 Continue` has sent no body, so nothing must be dropped first.
  const isDropping = isLeft && !isAwaitingContinue(request);
  const end = (): void => (isDropping ? closeAfter(request, response, clock) : void response.end());
  if (bytes > CHUNK_LENGTH && request.method !== 'HEAD') {
    connection.write(response, body, end);
  } else {
    // One write less than `write` and `end`.
    if (!isDropping) return void response.end(body);
    response.write(body);
    end();
  }
}

/** The connection is closed after it: nobody could say when the client may send another request. */
function beginStream(
  { response, connection }: Exchange,
  { status, headers, onSent: sent }: ApiResponse,
  stream: ResponseStream,
): void {
  if (response.closed) return sent?.();
  if (sent) response.once('close', sent);
  if (connection.leaving.aborted) return void response.destroy();
  connection.end();
  // Most clients that close their side have left, which would show only when something is written.
  connection.leaving.addEventListener('abort', () => response.destroy());
  response.setTimeout(STALLED_MS, () => response.destroy());
  response.writeHead(status, { ...headers, 'content-type': stream.contentType, connection: 'close' });
  stream.start(response);
}

/** The body of an unauthenticated request is never read, however small it is. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** True when the unread rest is too large to read it only to keep the connection open. */
function isBodyLeft(request: IncomingMessage): boolean {
  if (request.complete !== false) return false;
  const { headers } = request;
  if (headers['transfer-encoding'] !== undefined) return true;
  const declared = headers['content-length'];
  if (declared === undefined) return false;
  return isAwaitingContinue(request) || Number(declared) > DISCARDED_BYTES_MAX;
}

function isAwaitingContinue(request: IncomingMessage): boolean {
  return expectsContinue(request) && !request.readableDidRead;
}

/**
 * Ends the answer only when the client has stopped sending, or after a limit of time and bytes. Closing a
 * socket while data arrives resets it, and a client that is still sending would lose the answer.
 */
function closeAfter(request: IncomingMessage, response: ServerResponse, clock: Clock): void {
  let bytes = 0;
  let isOver = false;
  const finish = (): void => {
    if (isOver) return;
    isOver = true;
    timer.cancel();
    request.off('data', drop);
    request.pause();
    response.end();
  };
  const drop = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > LINGER_BYTES_MAX) finish();
  };
  const timer = clock.startTimer(LINGER_MS, finish, 'outside');
  request.on('data', drop);
  request.once('end', finish);
  request.once('close', finish);
  request.resume();
}
