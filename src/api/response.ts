/** The responses of handlers: a status and, in most cases, JSON. Each refusal becomes `{"error"}` here (contract M 1.3). */
import { Slices } from '../engine/loops/slices.ts';
import type { Clock, EventLog } from '../engine/ports.ts';
import { StoreUnavailable } from '../engine/store-errors.ts';
import { ApiError } from '../protocol/errors.ts';
import { Overloaded, RateLimited } from '../protocol/rate-limits.ts';

export interface ApiResponse {
  status: number;
  /** JSON text; `''` for the responses that the contract calls "200, no body". */
  json: string;
  /** A page or a file, sent instead of `json`. A text is sent as UTF-8. */
  content?: { type: string; body: string | Uint8Array };
  /** A stream that either side can end, sent instead of `json`. A stream is the last response of its connection. */
  stream?: ResponseStream;
  headers?: Readonly<Record<string, string>>;
  /** Called when the response is no longer in memory: it was sent, or the client has disconnected. */
  onSent?: () => void;
  /** Aborts if the client is too slow: the connection is then closed in the middle of the response. */
  cutOff?: AbortSignal;
}

export interface ResponseStream {
  contentType: string;
  /** Called once the head of the response is sent; `ApiResponse.onSent` is called later. */
  start: (to: Sink) => void;
}

/** The writable side of a streamed response. */
export interface Sink {
  /** Number of bytes that wait in memory for the client. */
  readonly writableLength: number;
  write(text: string | Uint8Array): unknown;
  end(): unknown;
  /** Emitted when a full buffer has been sent. */
  on(event: 'drain', listener: () => void): unknown;
}

/** The `Retry-After` of a 503. Until then, a flush ends and a full disk is checked again, and no client gives up. */
const RETRY_AFTER_S = 1;

export const NO_BODY: ApiResponse = { status: 200, json: '' };

/** A response with `value` as JSON. Throws if `value` cannot be serialized, which is a defect of our code. */
export function jsonResponse(status: number, value: unknown): ApiResponse {
  return { status, json: JSON.stringify(value) };
}

/** A response with an object of serialized members, in this order. Members that are `undefined` are omitted. */
export function jsonObjectResponse(members: Readonly<Record<string, string | undefined>>): ApiResponse {
  const defined = Object.entries(members).filter(([, json]) => json !== undefined);
  return { status: 200, json: `{${defined.map(([name, json]) => `"${name}":${json}`).join(',')}}` };
}

/** The views of `items` as a JSON array, written in time slices: a page may have a thousand entries with many headers. */
export async function jsonArrayOf<T>(
  items: readonly T[],
  view: (item: T) => unknown,
  { clock, endOfTurn }: { clock: Clock; endOfTurn: () => Promise<void> },
): Promise<string> {
  const texts = await new Slices(clock, endOfTurn).map(items, (item) => JSON.stringify(view(item)));
  return `[${texts.join(',')}]`;
}

/** An error response in the form that all clients parse. */
export function refusal(status: number, error: string, headers?: ApiResponse['headers']): ApiResponse {
  const refused: ApiResponse = { status, json: JSON.stringify({ error }) };
  if (headers) refused.headers = headers;
  return refused;
}

/**
 * The response to an error that a handler threw. The error of a client is explained. If the store cannot write, the client is
 * asked to retry. Every other error is a defect of our code: it is logged, and the client gets no details (contract M 25).
 */
export function errorResponse(error: unknown, log: EventLog, where: string): ApiResponse {
  if (error instanceof ApiError) {
    if (error instanceof RateLimited || error instanceof Overloaded)
      return refusal(error.status, error.message, error.headers);
    return error.status === 503
      ? refusal(503, error.message, { 'retry-after': String(RETRY_AFTER_S) })
      : refusal(error.status, error.message);
  }
  if (error instanceof StoreUnavailable) {
    log.warn('store_unavailable', { route: where, reason: error.message });
    return refusal(503, 'the store cannot take the request now, try again shortly', {
      'retry-after': String(RETRY_AFTER_S),
    });
  }
  // The stack names only our source lines. The message of an unknown error may quote input, so it is not logged.
  log.error('request_failed', { route: where, kind: kindOf(error), stack: stackFrames(error) });
  /** A fault in Waypost. Remedy: report it with the line `request_failed` of the server log, which contains none of your data. */
  return refusal(500, 'internal server error');
}

function kindOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

function stackFrames(error: unknown): string {
  if (!(error instanceof Error) || error.stack === undefined) return '';
  const frames = error.stack.split('\n').filter((line) => line.startsWith('    at '));
  return frames.slice(0, 8).join('\n');
}
