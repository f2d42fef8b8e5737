/** Sends the response to a request, and handles a request body that was not read. */
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

/** Node itself reads and discards the rest of a body up to this size, so that the connection can be reused. */
const DISCARDED_BYTES_MAX = 64 * 1024;
/** Limits of time and bytes for discarding a large rejected body, before the connection is closed. */
const DISCARD_LIMIT_MS = 2_000;
const CLOSING_DISCARDED_BYTES_MAX = 16 * 1024 * 1024;

/** A client that reads nothing of a stream for this time is disconnected. Streams send something at shorter intervals. */
const STALLED_MS = 5 * 60_000;

/** Sends `apiResponse`. The connection stays open unless too much of the request is unread. */
export function respond({ request, response, connection }: Exchange, apiResponse: ApiResponse, clock: Clock): void {
  const { status, json, content, stream, headers, onSent, cutOff } = apiResponse;
  if (stream) return startStream({ request, response, connection }, apiResponse, stream);
  if (onSent && response.closed) onSent();
  else if (onSent) response.once('close', onSent);
  // Not `response.destroy()`: a response that waits behind another response would stay in memory.
  if (cutOff?.aborted) request.socket.destroy();
  else cutOff?.addEventListener('abort', () => request.socket.destroy());
  const { type, body } = content ?? { type: 'application/json', body: json };
  const isUnread = isRestTooLarge(request) || (status === 401 && hasBody(request));
  if (isUnread) connection.end();
  const isLast = connection.noteResponse(response, status) || isUnread;
  const bytes = Buffer.byteLength(body);
  response.writeHead(status, {
    ...headers,
    ...(bytes === 0 ? undefined : { 'content-type': type }),
    // A 304 refers to a body that the client already has, so a `Content-Length` of 0 would be wrong.
    ...(status === 304 ? undefined : { 'content-length': bytes }),
    ...(isLast ? { connection: 'close' } : undefined),
  });
  // A client that waits for `100 Continue` has sent no body, so there is nothing to discard.
  const isDiscarding = isUnread && !isAwaitingContinue(request);
  const end = (): void => (isDiscarding ? closeAfter(request, response, clock) : void response.end());
  if (bytes > CHUNK_LENGTH && request.method !== 'HEAD') {
    connection.write(response, body, end);
  } else {
    // Needs one write less than `write` and `end`.
    if (!isDiscarding) return void response.end(body);
    response.write(body);
    end();
  }
}

/** Sends a stream, then closes the connection, since the client cannot know when it may send another request. */
function startStream(
  { response, connection }: Exchange,
  { status, headers, onSent }: ApiResponse,
  stream: ResponseStream,
): void {
  if (response.closed) return onSent?.();
  if (onSent) response.once('close', onSent);
  if (connection.leaving.aborted) return void response.destroy();
  connection.end();
  // Most clients that close their side have left, which would be noticed only at the next write.
  connection.leaving.addEventListener('abort', () => response.destroy());
  response.setTimeout(STALLED_MS, () => response.destroy());
  response.writeHead(status, { ...headers, 'content-type': stream.contentType, connection: 'close' });
  stream.start(response);
}

/** Whether the request has a body. The body of an unauthenticated request is never read. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** True if the unread rest of the body is too large to read it just to keep the connection open. */
function isRestTooLarge(request: IncomingMessage): boolean {
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
 * Ends the response only when the client has stopped sending, or at a limit of time and bytes. Closing a socket while
 * data arrives resets the connection, and a client that is still sending would lose the response.
 */
function closeAfter(request: IncomingMessage, response: ServerResponse, clock: Clock): void {
  let bytes = 0;
  let isFinished = false;
  const finish = (): void => {
    if (isFinished) return;
    isFinished = true;
    timer.cancel();
    request.off('data', discard);
    request.pause();
    response.end();
  };
  const discard = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > CLOSING_DISCARDED_BYTES_MAX) finish();
  };
  const timer = clock.startTimer(DISCARD_LIMIT_MS, finish, 'outside');
  request.on('data', discard);
  request.once('end', finish);
  request.once('close', finish);
  request.resume();
}
