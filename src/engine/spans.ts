/**
 * The trace spans of messages, attempts, waits and runs. Span ids are derived from the ids of messages and runs. So each
 * worker can compute span ids, even after a crash, and no span id is stored (docs/decisions/031).
 */
import { hash } from 'node:crypto';
import { memo } from '../protocol/memo.ts';
import type { MessageSettings, RunSettings, TraceContext } from '../protocol/options/settings.ts';
import { parseTraceParent } from '../protocol/trace-context.ts';
import type { Claimed, Message } from './model.ts';

/** The ids of a span, of its trace and of its parent, in hexadecimal digits. */
export interface SpanIds {
  traceId: string;
  spanId: string;
  /** Absent if the span is the first of its trace, or if the parent is not known. */
  parentId?: string;
}

/** Identifies a run by its id and its creation time, because successive runs may have the same id. */
type RunIdentity = Pick<RunSettings, 'id' | 'createdAtMs'>;

/**
 * The span of a message, which covers its publish or, in a run, its step. A message without a trace starts a trace.
 * Returns undefined if the publisher does not record the trace: the server does not record it either.
 */
export function spanOfMessage({ id, settings }: Pick<Message, 'id' | 'settings'>): SpanIds | undefined {
  const parent = parentOf(settings);
  if (parent === 'not recorded') return undefined;
  const { traceId, spanId } = idsOf(id);
  return parent ? { traceId: parent.traceId, spanId, parentId: parent.spanId } : { traceId, spanId };
}

/**
 * The span of the attempt under this claim. A message that is sent again after a crash has another claim, and so another
 * span.
 */
export function spanOfAttempt(claimed: Pick<Claimed, 'message' | 'claimToken'>): SpanIds | undefined {
  return spanWithinMessage(claimed.message, claimed.claimToken, 0);
}

/** The span of the wait before the attempt under this claim, or of the wait after this attempt, before a retry. */
export function spanOfWait(
  claimed: Pick<Claimed, 'message' | 'claimToken'>,
  which: 'before' | 'after',
): SpanIds | undefined {
  return spanWithinMessage(claimed.message, claimed.claimToken, which === 'before' ? 1 : 2);
}

/** The span of a run. `trace`: the trace of the run or of any of its messages, if there is one. */
export function spanOfRun(run: RunIdentity, trace: TraceContext | undefined): SpanIds | undefined {
  const { traceId, spanId } = idsOf(`${run.id} ${run.createdAtMs}`);
  const parent = trace && readParent(trace.parent);
  if (!parent) return { traceId, spanId };
  if (!parent.isSampled) return undefined;
  // If the run itself started the trace, its messages name the span of the run as their parent, and so does `trace`. The
  // span of such a run has no parent.
  return parent.spanId === spanId
    ? { traceId: parent.traceId, spanId }
    : { traceId: parent.traceId, spanId, parentId: parent.spanId };
}

/** `trace` with `span` as the parent for the receiver; unchanged if the span is not recorded. */
export function traceWithin(span: SpanIds | undefined, trace: TraceContext | undefined): TraceContext | undefined {
  return span ? { ...trace, parent: `00-${span.traceId}-${span.spanId}-01` } : trace;
}

interface Parent {
  traceId: string;
  spanId: string;
}

function parentOf({ run, trace }: MessageSettings): Parent | 'not recorded' | undefined {
  if (run) return spanOfRun(run, trace) ?? 'not recorded';
  const parent = trace && readParent(trace.parent);
  if (parent && !parent.isSampled) return 'not recorded';
  return parent;
}

function spanWithinMessage(message: Message, claimToken: number, part: number): SpanIds | undefined {
  const messageSpan = spanOfMessage(message);
  if (!messageSpan) return undefined;
  const { high, low } = idsOf(message.id);
  // A claim token has 53 bits, so the two highest bits are free for `part`.
  const first = high ^ Math.floor(claimToken / 2 ** 32) ^ (part << 30);
  const spanId = digitsOf(first) + digitsOf(low ^ (claimToken % 2 ** 32));
  return { traceId: messageSpan.traceId, spanId, parentId: messageSpan.spanId };
}

/** 32 bits as eight hexadecimal digits. */
function digitsOf(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0');
}

const readParent = memo(parseTraceParent);

/** A hash that is the same on every worker: the ids of a trace and a span, and two words from which further ids are derived. */
const idsOf = memo((id) => {
  const digits = hash('sha256', id, 'hex');
  return {
    traceId: digits.slice(0, 32),
    spanId: digits.slice(32, 48),
    high: Number.parseInt(digits.slice(48, 56), 16),
    low: Number.parseInt(digits.slice(56, 64), 16),
  };
});
