/** Selects the headers of a workflow message that reach the endpoint, and encodes them (contract W 9.4). */
import { Buffer } from 'node:buffer';
import { isConnectionHeader, newHeaderMap, refuseUnforwardable } from '../headers.ts';
import { hasConfigPrefix } from '../options/config-names.ts';
import type { Scope } from '../options/config-scopes.ts';
import type { CallType, HeaderMap } from '../options/settings.ts';

/**
 * The headers that a library forwards: the headers of the request that started the run. Throws 400 for a name or value
 * that HTTP cannot carry.
 */
export function workflowHeaders(scope: Scope): HeaderMap {
  const map = newHeaderMap();
  for (const [name, { header, values }] of scope.forwarded) {
    if (!isForwarded(name)) continue;
    const sendable = values.map(encodeWireValue);
    refuseUnforwardable(header, name, sendable);
    map[name] = sendable;
  }
  return map;
}

/** `name` is canonical. A forwarded content type is ignored: the message has its own content type, without a prefix. */
function isForwarded(name: string): boolean {
  if (hasConfigPrefix(name))
    return name.startsWith('Workflow-', PREFIX_LENGTH) || name.slice(PREFIX_LENGTH) === 'Label';
  return name !== 'Content-Type' && !name.startsWith('Proxy-') && !isConnectionHeader(name.toLowerCase());
}

const PREFIX_LENGTH = 'Upstash-'.length;

/** A library does not read a delivery with one of these headers as a journal (contract W 9.3). */
const MARKS: ReadonlySet<string> = new Set([
  'Workflow-Callback',
  'Workflow-Is-Failure',
  'Workflow-Failure-Callback',
  'Workflow-Unknown-Sdk',
]);

/** Removes `MARKS` from a journal entry. A call keeps all headers that its sender set. */
export function withoutMarks(header: HeaderMap, callType: CallType): HeaderMap {
  if (callType === 'toCallback') return header;
  const map = newHeaderMap();
  for (const [name, values] of Object.entries(header)) {
    if (!hasConfigPrefix(name) || !MARKS.has(name.slice(PREFIX_LENGTH))) map[name] = values;
  }
  return map;
}

const BEYOND_LATIN1 = /[^\0-\xff]/;

/**
 * Encodes a value for HTTP: text from JSON, such as the name of a step, may contain characters above Latin-1, which are
 * sent as UTF-8.
 */
export function encodeWireValue(value: string): string {
  return BEYOND_LATIN1.test(value) ? Buffer.from(value, 'utf8').toString('latin1') : value;
}
