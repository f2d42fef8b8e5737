/**
 * Which trace does a message belong to (W3C Trace Context, W3C Baggage)? The publisher says so with plain headers, which go
 * on with all that its message leads to. What is not valid is ignored, as these standards ask for: it never makes a
 * publish fail.
 */
import { isHeaderValue, trimBlanks } from './headers.ts';
import type { HeaderMap, TraceContext } from './options/settings.ts';

/** The standard requires to forward at least 512 characters of `tracestate`, and at most 8,192 of `baggage`. */
const LENGTH_MAX = { traceparent: 128, tracestate: 512, baggage: 8_192 };

/**
 * Version, trace id, id of the parent span, flags; a later version may add more. An item of a batch may hold characters
 * that no header can carry.
 */
const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?$/;

/** Which plain headers of a request are forwarded with the messages that it publishes. */
export interface PlainHeaders {
  /** Whether `ce-*` is forwarded as if it had the prefix for that (CloudEvents, binary mode). */
  cloudEvents: boolean;
  /** Whether `baggage` is kept; the delivery decides which destinations get it. */
  baggage: boolean;
  /** The headers of the whole request, for a part of it that names no trace of its own: an item of a batch. */
  ofRequest?: readonly string[];
}

/** The parts of a valid `traceparent`. */
export interface TraceParent {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  isSampled: boolean;
}

/** `undefined` for a value that the standard tells to ignore. */
export function parseTraceParent(value: string): TraceParent | undefined {
  if (value.length > LENGTH_MAX.traceparent) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = PARENT.exec(value) ?? [];
  const isKnown = version !== undefined && version !== 'ff' && (version !== '00' || more === undefined);
  if (!isKnown || isZero(traceId) || isZero(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/**
 * The trace of a message: that of its `forwarded` headers, or of the plain ones of its request. `undefined`: neither
 * names a valid one.
 */
export function readTraceContext(
  forwarded: HeaderMap,
  rawHeaders: readonly string[],
  { baggage, ofRequest = [] }: PlainHeaders,
): TraceContext | undefined {
  // Who forwards a parent says all of the trace with it.
  const plain = forwarded['Traceparent'] ? undefined : (plainContext(rawHeaders) ?? plainContext(ofRequest));
  const {
    parents = [],
    states = [],
    baggages = [],
  } = plain ?? {
    parents: forwarded['Traceparent'] ?? [],
    states: forwarded['Tracestate'] ?? [],
  };
  const [parent = '', second] = parents;
  if (second !== undefined || !parseTraceParent(parent)) return undefined;
  const context: TraceContext = { parent };
  const state = joined(states, LENGTH_MAX.tracestate);
  if (state !== undefined) context.state = state;
  const carried = baggage && !forwarded['Baggage'] ? joined(baggages, LENGTH_MAX.baggage) : undefined;
  if (carried !== undefined) context.baggage = carried;
  return context;
}

interface PlainLines {
  parents: string[];
  states: string[];
  baggages: string[];
}

/** The lines of the headers that tell of a trace; `undefined`: there is no parent among them. */
function plainContext(rawHeaders: readonly string[]): PlainLines | undefined {
  let found: PlainLines | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    // A quick first check, since this runs for each header of each message.
    if (name.length !== 11 && name.length !== 10 && name.length !== 7) continue;
    const value = rawHeaders[at + 1] ?? '';
    const lowerName = name.toLowerCase();
    if (lowerName !== 'traceparent' && lowerName !== 'tracestate' && lowerName !== 'baggage') continue;
    found ??= { parents: [], states: [], baggages: [] };
    if (lowerName === 'traceparent') found.parents.push(trimBlanks(value));
    else if (lowerName === 'tracestate') found.states.push(trimBlanks(value));
    else found.baggages.push(trimBlanks(value));
  }
  return found && found.parents.length > 0 ? found : undefined;
}

/** The lines as one value; `undefined` when they are empty, too long, or nothing that HTTP can carry. */
function joined(lines: readonly string[], lengthMax: number): string | undefined {
  const value = lines.filter((line) => line !== '').join(',');
  return value === '' || value.length > lengthMax || !isHeaderValue(value) ? undefined : value;
}

function isZero(id: string): boolean {
  return /^0+$/.test(id);
}
