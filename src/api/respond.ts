/** Writes an answer, and deals with a request body that nobody read. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../engine/ports.ts';
import type { Answer } from './answer.ts';
import type { Connection } from './connections.ts';
import { expectsContinue } from './request-body.ts';

/** One request and what answers it. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  connection: Connection;
}

/** A rest of this size is read and dropped by Node itself, so that the connection can be used again. */
const DISCARDED_BYTES_MAX = 64 * 1024;
/** How long and how much of a large refused body is dropped before the connection is closed. */
const LINGER_MS = 2_000;
const LINGER_BYTES_MAX = 16 * 1024 * 1024;

/** Writes `given` as the whole answer. The connection stays open unless too much of the request is still to come. */
export function respond({ request, response, connection }: Exchange, given: Answer, clock: Clock): void {
  const { status, json, html, headers, sent } = given;
  if (sent && response.closed) sent();
  else if (sent) response.once('close', sent);
  const text = html ?? json;
  const contentType = html === undefined ? 'application/json' : 'text/html; charset=utf-8';
  const isLeft = isBodyLeft(request) || (status === 401 && hasBody(request));
  if (isLeft) connection.end();
  const isLast = connection.answer(response, status) || isLeft;
  response.writeHead(status, {
    ...headers,
    ...(text === '' ? undefined : { 'content-type': contentType }),
    'content-length': Buffer.byteLength(text),
    ...(isLast ? { connection: 'close' } : undefined),
  });
  // A caller that still waits to be told to go on has sent nothing, so there is nothing to linger for.
  if (isLeft && !isAwaitingContinue(request)) closeAfter(request, response, text, clock);
  else response.end(text);
}

/** Of somebody who is not known no body is read, however small. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** True when more is to come than is worth reading only to keep the connection. */
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
 * Answers at once, but closes only when the caller has stopped sending or has had its chance to: a socket that is
 * closed while data arrives is reset, and the reset would take the answer away from a caller still busy sending.
 */
function closeAfter(request: IncomingMessage, response: ServerResponse, text: string, clock: Clock): void {
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
  const timer = clock.startTimer(LINGER_MS, finish);
  response.write(text);
  request.on('data', drop);
  request.once('end', finish);
  request.once('close', finish);
  request.resume();
}
