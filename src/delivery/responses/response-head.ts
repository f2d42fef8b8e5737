/**
 * Detects and repairs harmless defects in the head of a response (contract M 7.3.6).
 *
 * Clients such as curl and Go accept these defects, so endpoints have them without noticing. A strict parser would reject
 * the response, and the message would be retried although the endpoint has processed it.
 */
import { trimBlanks } from '../../protocol/headers.ts';

/** A response that is unreadable or ambiguous. `message` gives the reason without any content of the response. */
export class MalformedResponse extends Error {
  readonly code = 'WAYPOST_MALFORMED_RESPONSE';

  constructor(reason: string) {
    super(reason);
    this.name = 'MalformedResponse';
  }
}

const LENGTH = 'content-length:';
const CODING = 'transfer-encoding:';

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const BLANK = 0x20;
const COMMA = 0x2c;
const COLON = 0x3a;

/** The position of the body after a head that ends at or after `from`; -1 if the head is incomplete. */
export function headEndOf(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf(LF, Math.max(0, from - 2)); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at + 1] === LF) return at + 2;
    if (bytes[at + 1] === CR && bytes[at + 2] === LF) return at + 3;
  }
  return -1;
}

/**
 * Whether the head (with its empty line) has a bare LF, a folded line, a blank before a colon, several lengths, or both a
 * length and a transfer coding. Every response is checked: a loop over bytes takes a third of the time of regular expressions.
 */
export function isDefective(head: Buffer): boolean {
  let lengths = 0;
  let codings = 0;
  let nameAt = -1;
  let isInLength = false;
  for (let at = 0; at < head.length; at++) {
    const byte = head[at];
    if (byte === LF) {
      if (head[at - 1] !== CR || isBlank(head[at + 1])) return true;
      nameAt = at + 1;
      isInLength = false;
    } else if (byte === COLON && nameAt !== -1) {
      if (isBlank(head[at - 1])) return true;
      const nameBytes = at + 1 - nameAt;
      if (nameBytes === LENGTH.length && isName(head, nameAt, LENGTH)) {
        lengths += 1;
        isInLength = true;
      } else if (nameBytes === CODING.length && isName(head, nameAt, CODING)) codings += 1;
      nameAt = -1;
    } else if (byte === COMMA && isInLength) return true;
  }
  return lengths > 1 || (lengths > 0 && codings > 0);
}

function isBlank(byte: number | undefined): boolean {
  return byte === BLANK || byte === TAB;
}

/** `name` is in lower case, with its colon. */
function isName(head: Buffer, at: number, name: string): boolean {
  return head.toString('latin1', at, at + name.length).toLowerCase() === name;
}

/** Returns the head with correct line ends, unfolded lines, and at most one length. */
export function repairHead(head: Buffer): Buffer | MalformedResponse {
  const text = head.toString('latin1');
  if (/^[^\n]*\n[ \t]/.test(text)) return new MalformedResponse('its first header line begins with a blank');
  const [status = '', ...fields] = text.replace(/\r?\n[ \t]+/g, ' ').split(/\r?\n/);
  const lines = fields.filter((field) => field !== '').map((field) => field.replace(/^([^:\s]+)[ \t]+:/, '$1:'));
  const lengths = lines.filter(isLength).flatMap((line) => line.slice(LENGTH.length).split(','));
  const others = lines.filter((line) => !isLength(line));
  const values = new Set(lengths.map(trimBlanks));
  if (values.size > 1) return new MalformedResponse('it has several different Content-Length');
  // A transfer coding overrides the length (RFC 9112 section 6.3).
  const isChunked = others.some((line) => /^transfer-encoding:(?:.*,)?[ \t]*chunked[ \t]*$/i.test(line));
  const length = isChunked ? [] : [...values].map((value) => `Content-Length: ${value}`);
  return Buffer.from([status, ...others, ...length, '', ''].join('\r\n'), 'latin1');
}

function isLength(line: string): boolean {
  return line.slice(0, LENGTH.length).toLowerCase() === LENGTH;
}
