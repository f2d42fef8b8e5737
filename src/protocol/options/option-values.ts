/**
 * Parses the values of options by the rules of contract M 4.2. Each function accepts `undefined` for an absent option, and
 * throws `invalid_header` (400) that names the header.
 */
import { ApiError, invalidHeader } from '../errors.ts';
import { isHeaderValue, quoted, trimBlanks, UNSENDABLE_VALUE } from '../headers.ts';
import { checkName, checkNewName, isDotSegment, type NameKind } from '../names.ts';
import { DelayExpressionError, parseDelayExpression } from '../times/delay-expression.ts';
import { parseDurationMs } from '../times/durations.ts';
import { parseUrl, withoutFragment } from '../urls/destination.ts';
import { decodeWireText } from '../urls/request-target.ts';
import type { RawOption } from './config-scopes.ts';
import type { HttpMethod } from './settings.ts';

export const METHODS: readonly HttpMethod[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const DIGITS = /^\d+$/;
const DEDUPLICATION_ID_LENGTH_MAX = 255;
/** Maximum length of a run id. Each delivery contains the id, which may contain a URL or a key. */
export const RUN_ID_LENGTH_MAX = 1_024;

export function methodOf(raw: RawOption | undefined): HttpMethod {
  if (raw === undefined) return 'POST';
  const method = METHODS.find((name) => name === raw.value.toUpperCase());
  if (method !== undefined) return method;
  throw invalidHeader(raw.header, `must be GET, POST, PUT, PATCH or DELETE, not ${quoted(raw.value)}`);
}

export function booleanOf(raw: RawOption | undefined): boolean {
  if (raw === undefined) return false;
  const value = raw.value.toLowerCase();
  if (value !== 'true' && value !== 'false') {
    throw invalidHeader(raw.header, `must be true or false, not ${quoted(raw.value)}`);
  }
  return value === 'true';
}

/** A duration in milliseconds, more than 0. */
export function timeoutOf(raw: RawOption | undefined): number | undefined {
  const timeoutMs = durationOf(raw);
  if (raw !== undefined && timeoutMs === 0) throw invalidHeader(raw.header, 'a timeout must be longer than 0');
  return timeoutMs;
}

/** A duration in milliseconds, 0 or more. */
export function durationOf(raw: RawOption | undefined): number | undefined {
  if (raw === undefined) return undefined;
  const durationMs = parseDurationMs(raw.value);
  if (durationMs !== undefined) return durationMs;
  throw invalidHeader(raw.header, `must be a duration such as 30s or 1d10h30m, not ${quoted(raw.value)}`);
}

/** A whole number, 0 or more. A number above the safe integers becomes Infinity, which the caller rejects. */
export function wholeNumberOf(raw: RawOption | undefined): number | undefined {
  if (raw === undefined) return undefined;
  if (!DIGITS.test(raw.value)) {
    throw invalidHeader(raw.header, `must be a whole number of at least 0, not ${quoted(raw.value)}`);
  }
  const number = Number(raw.value);
  return Number.isSafeInteger(number) ? number : Number.POSITIVE_INFINITY;
}

/** A Unix time in seconds, converted to milliseconds; Infinity if it is too large. */
export function notBeforeOf(raw: RawOption | undefined): number | undefined {
  if (raw === undefined) return undefined;
  if (!DIGITS.test(raw.value)) {
    throw invalidHeader(raw.header, `must be a Unix time in whole seconds, not ${quoted(raw.value)}`);
  }
  const timeMs = Number(raw.value) * 1000;
  return Number.isSafeInteger(timeMs) ? timeMs : Number.POSITIVE_INFINITY;
}

/** The text of a valid expression. */
export function delayExpressionOf(raw: RawOption | undefined): string | undefined {
  if (raw === undefined) return undefined;
  try {
    return parseDelayExpression(raw.value).text;
  } catch (error) {
    if (error instanceof DelayExpressionError) throw invalidHeader(raw.header, error.message);
    throw error;
  }
}

export function deduplicationIdOf(raw: RawOption | undefined): string | undefined {
  if (raw === undefined) return undefined;
  if (raw.value.includes(':')) throw new ApiError('invalid_header', "DeduplicationId cannot contain ':'");
  if (raw.value.length <= DEDUPLICATION_ID_LENGTH_MAX) return raw.value;
  throw invalidHeader(raw.header, `longer than ${DEDUPLICATION_ID_LENGTH_MAX} characters`);
}

/** One of `words`, in any letter case. */
export function wordOf<Word extends string>(raw: RawOption | undefined, words: readonly Word[]): Word | undefined {
  if (raw === undefined) return undefined;
  const word = words.find((each) => each.toLowerCase() === raw.value.toLowerCase());
  if (word !== undefined) return word;
  const choice = `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`.toLowerCase();
  throw invalidHeader(raw.header, `must be ${choice}, not ${quoted(raw.value)}`);
}

/** The URL of a callback, checked by the rules of a destination. The name of a URL group is rejected. */
export function callbackUrlOf(raw: RawOption | undefined): string | undefined {
  if (raw === undefined) return undefined;
  const url = withoutFragment(decodeWireText(raw.value));
  const parsed = parseUrl(url);
  if (typeof parsed === 'string') throw invalidHeader(raw.header, parsed);
  return url;
}

export function newNameOf(raw: RawOption | undefined, kind: Exclude<NameKind, 'label'>): string | undefined {
  if (raw !== undefined) checkNewName(kind, raw.value, raw.header);
  return raw?.value;
}

/** The id verbatim. Each delivery contains the id, so HTTP must be able to carry it. */
export function runIdOf(raw: RawOption | undefined): string | undefined {
  if (raw === undefined) return undefined;
  const { value, header } = raw;
  if (!isHeaderValue(value)) throw invalidHeader(header, UNSENDABLE_VALUE);
  if (value.length > RUN_ID_LENGTH_MAX) throw invalidHeader(header, `longer than ${RUN_ID_LENGTH_MAX} characters`);
  return value;
}

/** Characters that change the meaning of a path when they are written into it unescaped. */
const CHANGED_IN_PATH = /[?#/\\\t]|%[0-9a-f]{2}/i;

/**
 * Like `runIdOf`, for a new run. Libraries write the id into paths unescaped: a request to end a run whose id changes the
 * path would end another run, or none (contract W 2).
 */
export function newRunIdOf(raw: RawOption | undefined): string | undefined {
  const runId = runIdOf(raw);
  if (raw === undefined || runId === undefined) return runId;
  if (!CHANGED_IN_PATH.test(runId) && !isDotSegment(runId)) return runId;
  throw invalidHeader(
    raw.header,
    'the id of a run must not contain ?, #, /, \\, a tab, or % before two hexadecimal digits, and must not be . or ..',
  );
}

/**
 * The labels of a comma-separated list: blanks trimmed, empty and repeated elements dropped, order kept
 * (contract M 4.2). Throws `invalid_name` (400), naming `header`, for a label that is not a valid name.
 */
export function parseLabels(text: string, header: string): string[] {
  const labels = new Set<string>();
  for (const element of text.split(',')) {
    const label = trimBlanks(element);
    if (label === '') continue;
    checkName('label', label, header);
    labels.add(label);
  }
  return [...labels];
}
