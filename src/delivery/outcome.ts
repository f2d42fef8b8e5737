/** Maps a failed exchange to its outcome, and to the error text for the user (contract M 7.3, 7.4). */
import type { Millis, Outcome, UnreachableReason } from '../engine/model.ts';
import { type AddressClass, ALLOW_SETTING } from './addresses/address-guard.ts';
import { BlockedAddress } from './connector.ts';

type Unreachable = Extract<Outcome, { kind: 'unreachable' }>;

/** The state of an exchange when it failed: the same error code has different meanings at different points. */
export interface Progress {
  /** The host of the destination, as the user wrote it. */
  hostname: string;
  isTls: boolean;
  /** The request was passed to a connected socket. */
  started: boolean;
  /** The first byte of a response arrived. */
  responseStarted: boolean;
  /** The complete head of the final response arrived. */
  headRead: boolean;
}

const REASON_BY_CODE: Readonly<Record<string, UnreachableReason>> = {
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  EAI_FAIL: 'dns',
  EAI_NODATA: 'dns',
  EAI_NONAME: 'dns',
  ENODATA: 'dns',
  ESERVFAIL: 'dns',
  ETIMEOUT: 'dns', // the spelling of c-ares
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'refused',
  EHOSTDOWN: 'refused',
  ENETUNREACH: 'refused',
  ENETDOWN: 'refused',
  EADDRNOTAVAIL: 'refused',
  EACCES: 'refused',
  EPERM: 'refused',
  EINVAL: 'refused',
  ECONNRESET: 'reset',
  ECONNABORTED: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  WAYPOST_MALFORMED_RESPONSE: 'malformed',
  UND_ERR_HEADERS_OVERFLOW: 'malformed',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'malformed',
  HTTPParserError: 'malformed', // a name: not every parser error of undici has a code
  UND_ERR_INVALID_ARG: 'unsendable',
  UND_ERR_NOT_SUPPORTED: 'unsendable',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'unsendable',
};

/** Classifies errors of undici, Node and our own filters. The text never contains an address. */
export function unreachable(error: Error, progress: Progress): Unreachable {
  if (error instanceof BlockedAddress) return blocked(error.addressClass);
  const code = codeOf(error);
  const reason = reasonOf(code, progress);
  return { kind: 'unreachable', reason, error: textOf(reason, code, error, progress) };
}

/** The address guard blocked the attempt, before or right after a connection was opened. */
export function blocked(addressClass: AddressClass): Unreachable {
  return { kind: 'unreachable', reason: 'blocked', error: `destination refused: ${refusalText(addressClass)}` };
}

export function timedOut(timeoutMs: Millis): Unreachable {
  return { kind: 'unreachable', reason: 'timeout', error: `timeout: no complete response within ${timeoutMs} ms` };
}

export function tooManyInterimResponses(): Unreachable {
  return { kind: 'unreachable', reason: 'malformed', error: 'malformed response: too many 1xx responses' };
}

export function compressedBomb(bytesMax: number): Unreachable {
  const error = `malformed response: its compressed body expands to more than ${bytesMax} bytes`;
  return { kind: 'unreachable', reason: 'malformed', error };
}

/** The request could not be built or sent. */
export function unsendable(error: unknown): Unreachable {
  const detail = error instanceof Error ? error.message : 'unknown reason';
  return { kind: 'unreachable', reason: 'unsendable', error: `request cannot be sent: ${detail}` };
}

/** `endpoint resolves to a private address, which WAYPOST_ALLOW_DESTINATIONS does not allow`. */
function refusalText(addressClass: AddressClass): string {
  return `endpoint resolves to ${withArticle(addressClass)} address, which ${ALLOW_SETTING} does not allow`;
}

export function withArticle(addressClass: AddressClass): string {
  return addressClass === 'unspecified' ? `an ${addressClass}` : `a ${addressClass}`;
}

/** Whether the peer closed the connection without a response, for example when a request reuses an idle connection. */
export function isHangUp(error: Error): boolean {
  const code = codeOf(error);
  return code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET';
}

function reasonOf(code: string, progress: Progress): UnreachableReason {
  if (code.startsWith('HPE_')) return 'malformed';
  const reason = REASON_BY_CODE[code];
  // undici uses the same code when it closes the connection itself because of an invalid head.
  if (code === 'UND_ERR_SOCKET' && progress.responseStarted && !progress.headRead) return 'malformed';
  if (reason !== undefined) return reason;
  // OpenSSL and certificate checks have too many codes to list, so every other error before the request is `tls`.
  if (progress.isTls && !progress.started) return 'tls';
  return /^ERR_(SSL|TLS|OSSL)_|^EPROTO$/.test(code) ? 'tls' : 'reset';
}

function textOf(reason: UnreachableReason, code: string, error: Error, progress: Progress): string {
  switch (reason) {
    case 'dns':
      return `unable to resolve host: ${progress.hostname} (${code === 'ENOTFOUND' ? 'no such host' : code})`;
    case 'refused':
      return code === 'ECONNREFUSED' ? 'connection refused' : `connection impossible (${code})`;
    case 'tls':
      return `TLS handshake failed (${code})`;
    case 'timeout':
      return 'timeout: the connection gave no response';
    case 'malformed':
      return `malformed response: ${defectOf(code, error)}`;
    case 'unsendable':
      return unsendable(error).error;
    case 'reset':
    case 'blocked':
      return progress.headRead
        ? 'connection closed in the middle of the response'
        : 'connection closed before a response arrived';
  }
}

/** The parser names only the violated rule, without any content of the response. */
function defectOf(code: string, error: Error): string {
  switch (code) {
    case 'WAYPOST_MALFORMED_RESPONSE':
      return error.message;
    case 'UND_ERR_HEADERS_OVERFLOW':
      return 'its headers are too large';
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return 'the length of its body differs from Content-Length';
    case 'UND_ERR_SOCKET':
      return 'its headers are incomplete';
    default: {
      const [, rule] = /\(([ -~]+)\)$/.exec(error.message) ?? [];
      return rule === undefined ? 'not valid HTTP/1.1' : `not valid HTTP/1.1 (${rule})`;
    }
  }
}

function codeOf(error: Error): string {
  const code = 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : error.name;
}
