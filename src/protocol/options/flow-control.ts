/** Parses and writes the flow-control headers. */
import { ApiError, invalidHeader } from '../errors.ts';
import { quoted, trimBlanks } from '../headers.ts';
import { checkNewName } from '../names.ts';
import { parseDurationMs } from '../times/durations.ts';
import type { FlowControl } from './settings.ts';

const PERIOD_DEFAULT_S = 1;
/** The longest period of a rate (contract M 16.2). */
export const PERIOD_MAX_S = 7 * 86_400;

/**
 * Reads `Upstash-Flow-Control-Key` and `-Value`. `valueHeader` and `keyHeader` are the names that the client used.
 * Throws 400: the documented text for a malformed value, otherwise a text that names the header.
 */
export function parseFlowControl(
  key: string,
  value: string,
  valueHeader = 'Upstash-Flow-Control-Value',
  keyHeader = 'Upstash-Flow-Control-Key',
): FlowControl {
  checkNewName('flow control key', key, keyHeader);
  const items = readItems(value, valueHeader);
  const flowControl: FlowControl = { key, periodS: periodOf(items.get('period'), valueHeader) };
  const parallelism = items.get('parallelism');
  const rate = items.get('rate');
  if (parallelism === undefined && rate === undefined) throw wrongShape(valueHeader);
  if (parallelism !== undefined) flowControl.parallelism = countOf('parallelism', parallelism, valueHeader);
  if (rate !== undefined) flowControl.rate = countOf('rate', rate, valueHeader);
  return flowControl;
}

/** Writes `Upstash-Flow-Control-Value` for a delivery; the period is in seconds. */
export function flowControlValueOf({ parallelism, rate, periodS }: FlowControl): string {
  const items: string[] = [];
  if (parallelism !== undefined) items.push(`parallelism=${parallelism}`);
  if (rate !== undefined) items.push(`rate=${rate}`);
  return [...items, `period=${periodS}`].join(',');
}

function readItems(value: string, header: string): Map<string, string> {
  const items = new Map<string, string>();
  for (const item of value.split(',')) {
    const equals = item.indexOf('=');
    const name = trimBlanks(item.slice(0, Math.max(0, equals)));
    if ((name !== 'parallelism' && name !== 'rate' && name !== 'period') || items.has(name)) throw wrongShape(header);
    items.set(name, trimBlanks(item.slice(equals + 1)));
  }
  return items;
}

function wrongShape(header: string): ApiError {
  return new ApiError(
    'invalid_header',
    `${header} should be either rate=X or parallelism=Y, or both as comma-separated values`,
  );
}

function countOf(name: string, text: string, header: string): number {
  const count = /^\d+$/.test(text) ? Number(text) : 0;
  if (count >= 1 && Number.isSafeInteger(count)) return count;
  throw invalidHeader(header, `${name} must be a whole number of at least 1, not ${quoted(text)}`);
}

function periodOf(text: string | undefined, header: string): number {
  if (text === undefined) return PERIOD_DEFAULT_S;
  const periodMs = parseDurationMs(text);
  const periodS = periodMs === undefined ? 0 : Math.ceil(periodMs / 1000);
  if (periodS >= 1 && periodS <= PERIOD_MAX_S) return periodS;
  throw invalidHeader(header, `period must be a duration from 1s to 7d, not ${quoted(text)}`);
}
