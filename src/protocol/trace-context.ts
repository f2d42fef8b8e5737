/**
 * Reads the trace that a message belongs to (W3C Trace Context, W3C Baggage). The publisher sends the trace in plain
 * headers; all messages that follow from the published message carry the trace too. Invalid values are ignored, as the
 * standards require, and never make a publish fail.
 */
import { isHeaderValue, trimBlanks } from './headers.ts';
import type { HeaderMap, TraceContext } from './options/settings.ts';

/**
 * Maximum lengths in characters. The standards require at least 512 for `tracestate`, and allow a limit of 8,192 for
 * `baggage`.
 */
const LENGTH_MAX = { traceparent: 128, tracestate: 512, baggage: 8_192 };

/**
 * Version, trace id, id of the parent span, flags; a later version may add fields. Characters that no header can carry
 * are rejected, since an item of a batch may contain such characters.
 */
const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?$/;

/** Decides which headers without a config prefix are forwarded with the messages of a publish. */
export interface PlainHeaderPolicy {
  /** Whether `ce-*` is forwarded as if it had the prefix `Upstash-Forward-` (CloudEvents, binary mode). */
  cloudEvents: boolean;
  /** Whether `baggage` is saved; the delivery decides which destinations receive it. */
  baggage: boolean;
  /** For an item of a batch: the headers of the batch request, which apply if the item has no trace of its own. */
  requestHeaders?: readonly string[];
}

/** The parts of a valid `traceparent`. */
export interface TraceParent {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  isSampled: boolean;
}

/** Returns `undefined` for a value that the standard requires receivers to ignore. */
export function parseTraceParent(value: string): TraceParent | undefined {
  if (value.length > LENGTH_MAX.traceparent) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = PARENT.exec(value) ?? [];
  const isKnown = version !== undefined && version !== 'ff' && (version !== '00' || more === undefined);
  if (!isKnown || isZero(traceId) || isZero(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The trace in a message's `forwarded` headers, else in its request's plain headers; `undefined` without a trace. */
export function readTraceContext(
  forwarded: HeaderMap,
  rawHeaders: readonly string[],
  { baggage, requestHeaders = [] }: PlainHeaderPolicy,
): TraceContext | undefined {
  // A forwarded parent replaces the whole trace of the request.
  const plain = forwarded['Traceparent'] ? undefined : (plainContext(rawHeaders) ?? plainContext(requestHeaders));
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

interface TraceHeaderLines {
  parents: string[];
  states: string[];
  baggages: string[];
}

/** The lines of the trace headers; `undefined` without a `traceparent`. */
function plainContext(rawHeaders: readonly string[]): TraceHeaderLines | undefined {
  let found: TraceHeaderLines | undefined;
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

/** The lines as one value; `undefined` if the value is empty, too long, or not a valid header value. */
function joined(lines: readonly string[], lengthMax: number): string | undefined {
  const value = lines.filter((line) => line !== '').join(',');
  return value === '' || value.length > lengthMax || !isHeaderValue(value) ? undefined : value;
}

function isZero(id: string): boolean {
  return /^0+$/.test(id);
}
