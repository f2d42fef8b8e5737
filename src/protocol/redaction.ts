/** Reads the parts of a message that logs and other views must hide, and hides these parts (contract M 19). */
import { Buffer } from 'node:buffer';
import { hash } from 'node:crypto';
import { invalidHeader } from './errors.ts';
import { canonicalHeaderName, isHeaderName, newHeaderMap, quoted } from './headers.ts';
import { hasConfigPrefix, readConfigName } from './options/config-names.ts';
import type { HeaderMap, Redaction } from './options/settings.ts';
import { maskPassword } from './urls/masked-url.ts';
import { decodeWireText } from './urls/request-target.ts';

const ONE_HEADER = /^headers?\[([^\]]*)\]$/;

/**
 * Reads `Upstash-Redact-Fields`: `body`, `header` or `headers` for all headers, `header[Name]` for one header (contract
 * M 19). Throws `invalid_header` (400) for any other element, and for an empty list, which is surely a mistake.
 */
export function parseRedaction(text: string, header = 'Upstash-Redact-Fields'): Redaction {
  let body = false;
  let all = false;
  const names = new Set<string>();
  for (const element of text.replace(/[ \t]/g, '').split(',')) {
    const [, name] = ONE_HEADER.exec(element) ?? [];
    if (element === '') continue;
    else if (element === 'body') body = true;
    else if (element === 'header' || element === 'headers') all = true;
    else if (name !== undefined && isHeaderName(name)) names.add(canonicalHeaderName(name));
    else throw invalidHeader(header, `elements are body, header or header[Name], not ${quoted(element)}`);
  }
  if (!body && !all && names.size === 0) throw invalidHeader(header, 'the list has no element');
  return { body, headers: all ? 'all' : [...names] };
}

/** A redaction that hides everything that `a` or `b` hides. */
export function mergeRedactions(a: Redaction | undefined, b: Redaction): Redaction {
  if (a === undefined) return b;
  const isAll = a.headers === 'all' || b.headers === 'all';
  return {
    body: a.body || b.body,
    headers: isAll ? 'all' : [...new Set([...a.headers, ...b.headers])],
  };
}

/** The text that views show instead of `bytes`: `REDACTED:` and their SHA-256 in lower-case hex. */
export function redactedText(bytes: Uint8Array): string {
  return `REDACTED:${hash('sha256', bytes, 'hex')}`;
}

/**
 * The saved default config headers of a URL group, as views show them. A header to forward is hidden if the defaults
 * themselves redact it: otherwise the view would reveal a value that the logs of each message hide.
 */
export function redactDefaults(map: HeaderMap): HeaderMap {
  let redaction: Redaction | undefined;
  for (const [name, [fields]] of Object.entries(map)) {
    if (fields === undefined || !hasConfigPrefix(name) || readConfigName(name).option !== 'redact-fields') continue;
    redaction = mergeRedactions(redaction, parseRedaction(fields, name));
  }
  return redactConfigHeaders(map, redaction);
}

/** Config headers as views show them. `redaction`: the redaction of the messages published with these headers. */
export function redactConfigHeaders(map: HeaderMap, redaction: Redaction | undefined): HeaderMap {
  const shownMap = newHeaderMap();
  for (const [name, values] of Object.entries(map)) {
    const delivered = hasConfigPrefix(name) ? readConfigName(name).forwardedName : name;
    shownMap[name] = values.map(delivered !== '' && hides(redaction, delivered) ? redactedHeader : shownValue);
  }
  return shownMap;
}

/** `map` as views show it: each value as text, or redacted. Names are kept. */
export function redactHeaderMap(map: HeaderMap, redaction?: Redaction): HeaderMap {
  const shownMap = newHeaderMap();
  for (const [name, values] of Object.entries(map)) {
    shownMap[name] = values.map(hides(redaction, name) ? redactedHeader : shownValue);
  }
  return shownMap;
}

/** Whether views hide the values of the header `name` (canonical). */
export function hides(redaction: Redaction | undefined, name: string): boolean {
  return redaction !== undefined && (redaction.headers === 'all' || redaction.headers.includes(name));
}

/** Masks the password of a URL, since the URLs of callbacks and workflows are header values, too. */
function shownValue(value: string): string {
  return maskPassword(decodeWireText(value));
}

/** Header values are Latin-1 text: one character is one byte on the wire. */
function redactedHeader(value: string): string {
  return redactedText(Buffer.from(value, 'latin1'));
}
