/** Splits a raw request target without changing its bytes, and decodes its parts. */
import { Buffer, isUtf8 } from 'node:buffer';
import { ApiError } from '../errors.ts';

/** The raw target in origin-form, which is the path and the query. */
export function pathAndQueryOf(rawTarget: string): string {
  return rawTarget.startsWith('/') ? rawTarget : originFormOf(rawTarget);
}

/**
 * Converts `http://host/path` to `/path`. A target in another form (`*`, `host:443`) stays unchanged and matches no
 * route.
 */
function originFormOf(target: string): string {
  const scheme = /^https?:\/\//i.exec(target);
  if (scheme === null) return target;
  const authority = target.slice(scheme[0].length);
  const pathStart = authority.search(/[/?]/);
  if (pathStart < 0) return '/';
  return authority[pathStart] === '?' ? `/${authority.slice(pathStart)}` : authority.slice(pathStart);
}

/** A query string divided between the server and the destination (contract M 4.3, 2.1). */
export interface SplitQuery {
  /** `qstash_token`, decoded; `''` if it has no value. Even an empty token takes precedence over the header. */
  token?: string;
  /** Configuration in order: lower-case header name and decoded value. */
  config: [name: string, value: string][];
  /** The destination's part, byte for byte, without the `?`. */
  rest: string;
}

/** The same number as the limit of header lines. Each parameter is read several times, so the number must be limited. */
const CONFIG_PARAMETERS_MAX = 1_000;

/** The first letters of our parameters: `upstash-`, `waypost-`, `qstash_token`. An escaped name begins with `%`. */
const MAY_BE_OURS = /^[uwq%]/i;

/**
 * Divides `rawQuery`. Throws `invalid_query` (400) when the value of a config parameter is not decodable, or when there
 * are too many config parameters.
 */
export function splitQuery(rawQuery: string): SplitQuery {
  if (rawQuery === '') return { config: [], rest: '' };
  const split: SplitQuery = { config: [], rest: '' };
  const rest: string[] = [];
  for (const parameter of rawQuery.split('&')) {
    if (!MAY_BE_OURS.test(parameter)) {
      rest.push(parameter);
      continue;
    }
    const { rawName, rawValue } = splitParameter(parameter);
    const name = formDecode(rawName)?.toLowerCase() ?? '';
    if (name === 'qstash_token') {
      // A text that cannot be decoded stays raw. Such a text is never a valid token, so it is rejected as unknown.
      split.token ??= percentDecode(rawValue) ?? rawValue;
    } else if (name.startsWith('upstash-') || name.startsWith('waypost-')) {
      if (split.config.length === CONFIG_PARAMETERS_MAX) throw tooManyConfigParameters();
      split.config.push([name, decodedValue(name, rawValue)]);
    } else {
      rest.push(parameter);
    }
  }
  split.rest = rest.join('&');
  return split;
}

/**
 * The raw values of all parameters, in order, by decoded name. The CPU time is linear in the length of the query.
 */
export function queryParameters(rawQuery: string): Map<string, string[]> {
  const parameters = new Map<string, string[]>();
  for (const parameter of rawQuery.split('&')) {
    if (parameter === '') continue;
    const { rawName, rawValue } = splitParameter(parameter);
    const name = formDecode(rawName) ?? rawName;
    const rawValues = parameters.get(name);
    if (rawValues) rawValues.push(rawValue);
    else parameters.set(name, [rawValue]);
  }
  return parameters;
}

/**
 * The meaning of commas in a parameter. `separate`: every comma separates values, also as `%2C`. `separateUnlessEscaped`:
 * `%2C` is part of a value, since run ids may contain commas. `belong`: every comma is part of the value, as in a URL.
 */
export type CommaRule = 'separate' | 'separateUnlessEscaped' | 'belong';

/**
 * The values of the parameter `name`, given as repeated parameters, separated by commas, or both; empty values are
 * dropped (contract M 1.2.4, W 17.0). Throws `invalid_query` (400) for a value that cannot be decoded.
 */
export function queryValues(name: string, rawValues: readonly string[], commas: CommaRule): string[] {
  const escaped = commas === 'separateUnlessEscaped' ? rawValues.flatMap((raw) => raw.split(',')) : rawValues;
  const values: string[] = [];
  for (const rawValue of escaped) {
    const value = decodedValue(name, rawValue);
    for (const element of commas === 'separate' ? value.split(',') : [value]) {
      if (element !== '') values.push(element);
    }
  }
  return values;
}

function splitParameter(parameter: string): { rawName: string; rawValue: string } {
  const equals = parameter.indexOf('=');
  if (equals < 0) return { rawName: parameter, rawValue: '' };
  return { rawName: parameter.slice(0, equals), rawValue: parameter.slice(equals + 1) };
}

function tooManyConfigParameters(): ApiError {
  return new ApiError('invalid_query', `invalid query: at most ${CONFIG_PARAMETERS_MAX} Upstash- parameters`);
}

function decodedValue(name: string, rawValue: string): string {
  const value = formDecode(rawValue);
  if (value === undefined) throw new ApiError('invalid_query', `invalid query parameter ${name}: malformed escape`);
  return value;
}

const BEYOND_ASCII = /[\x80-\xff]/;

/**
 * Percent-decodes once, as UTF-8; a `+` remains a plus. `undefined` if an escape is malformed or the result is not valid
 * UTF-8.
 */
export function percentDecode(text: string): string | undefined {
  if (!text.includes('%')) return decodeWireText(text);
  try {
    return decodeURIComponent(decodeWireText(text));
  } catch {
    return undefined; // `decodeURIComponent` throws only URIError.
  }
}

/** `percentDecode` for a query string, in which a `+` is a blank. */
export function formDecode(text: string): string | undefined {
  return percentDecode(text.includes('+') ? text.replaceAll('+', ' ') : text);
}

/**
 * The text of a request target or a header value, in which Node represents each byte as one character: decoded as UTF-8
 * if the bytes are valid UTF-8, otherwise unchanged.
 */
export function decodeWireText(latin1: string): string {
  if (!BEYOND_ASCII.test(latin1)) return latin1;
  const bytes = Buffer.from(latin1, 'latin1');
  // A text with characters above Latin-1 was already decoded, and would lose them here.
  return isUtf8(bytes) && bytes.toString('latin1') === latin1 ? bytes.toString('utf8') : latin1;
}
