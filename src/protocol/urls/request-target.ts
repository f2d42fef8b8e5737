/** Reads a raw request target byte for byte, and decodes its parts. */
import { Buffer, isUtf8 } from 'node:buffer';
import { ApiError } from '../errors.ts';

/** The raw target in origin-form: path and query. */
export function pathAndQueryOf(rawTarget: string): string {
  return rawTarget.startsWith('/') ? rawTarget : originFormOf(rawTarget);
}

/** `http://host/path` to `/path`. A target in another form (`*`, `host:443`) stays unchanged and matches no route. */
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
  /** `qstash_token`, decoded; `''` when it has no value. Even then it wins over the header. */
  token?: string;
  /** Configuration in order: lower-case header name and decoded value. */
  config: [name: string, value: string][];
  /** The destination's part, byte for byte, without the `?`. */
  rest: string;
}

/** As many as a request may have header lines. Each is read several times. */
const CONFIG_PARAMETERS_MAX = 1_000;

/** The first letter of all names that are not the destination's, or of one that is escaped. */
const MAY_BE_OURS = /^[uwq%]/i;

/**
 * Divides `rawQuery`. Throws `invalid_query` (400) when the value of a config parameter is not decodable, or when there
 * are too many of them.
 */
export function splitQuery(rawQuery: string): SplitQuery {
  if (rawQuery === '') return { config: [], rest: '' };
  const split: SplitQuery = { config: [], rest: '' };
  const rest: string[] = [];
  for (const piece of rawQuery.split('&')) {
    if (!MAY_BE_OURS.test(piece)) {
      rest.push(piece);
      continue;
    }
    const { rawName, rawValue } = halves(piece);
    const name = formDecode(rawName)?.toLowerCase() ?? '';
    if (name === 'qstash_token') {
      // A text that cannot be decoded stays raw. No token looks like it, so it is refused as unknown.
      split.token ??= percentDecode(rawValue) ?? rawValue;
    } else if (name.startsWith('upstash-') || name.startsWith('waypost-')) {
      if (split.config.length === CONFIG_PARAMETERS_MAX) throw tooManyConfigParameters();
      split.config.push([name, decodedValue(name, rawValue)]);
    } else {
      rest.push(piece);
    }
  }
  split.rest = rest.join('&');
  return split;
}

/**
 * The raw values of each parameter, in order, by decoded name. Each piece of the query is read only once, however many
 * parameters there are.
 */
export function queryParameters(rawQuery: string): Map<string, string[]> {
  const parameters = new Map<string, string[]>();
  for (const piece of rawQuery.split('&')) {
    if (piece === '') continue;
    const { rawName, rawValue } = halves(piece);
    const name = formDecode(rawName) ?? rawName;
    const rawValues = parameters.get(name);
    if (rawValues) rawValues.push(rawValue);
    else parameters.set(name, [rawValue]);
  }
  return parameters;
}

/**
 * What commas do in the values of a parameter. `separate`: each separates two values, also as `%2C`. `separateUnlessEscaped`:
 * `%2C` belongs to the value, since an id of a run may contain commas. `belong`: each belongs to the value, as in a URL.
 */
export type CommaRule = 'separate' | 'separateUnlessEscaped' | 'belong';

/**
 * The values of the parameter `name`, given as repeated parameters, separated by commas, or both; empty values are
 * dropped (contract M 1.2.4, W 17.0). Throws `invalid_query` (400) for a value that cannot be decoded.
 */
export function queryValues(name: string, rawValues: readonly string[], commas: CommaRule): string[] {
  const pieces = commas === 'separateUnlessEscaped' ? rawValues.flatMap((raw) => raw.split(',')) : rawValues;
  const values: string[] = [];
  for (const piece of pieces) {
    const value = decodedValue(name, piece);
    for (const element of commas === 'separate' ? value.split(',') : [value]) {
      if (element !== '') values.push(element);
    }
  }
  return values;
}

function halves(piece: string): { rawName: string; rawValue: string } {
  const equals = piece.indexOf('=');
  if (equals < 0) return { rawName: piece, rawValue: '' };
  return { rawName: piece.slice(0, equals), rawValue: piece.slice(equals + 1) };
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
 * Percent-decodes once, as UTF-8; a `+` stays a plus. `undefined` when an escape is malformed or does not make valid
 * UTF-8.
 */
export function percentDecode(text: string): string | undefined {
  if (!text.includes('%')) return textOfWire(text);
  try {
    return decodeURIComponent(textOfWire(text));
  } catch {
    return undefined; // the only error that it throws is URIError
  }
}

/** The same for a value in a query string, where a `+` is a blank. */
export function formDecode(text: string): string | undefined {
  return percentDecode(text.includes('+') ? text.replaceAll('+', ' ') : text);
}

/**
 * The text of a request target or a header value, which hold one character for each byte: UTF-8 where the bytes are
 * valid UTF-8, else Latin-1.
 */
export function textOfWire(latin1: string): string {
  if (!BEYOND_ASCII.test(latin1)) return latin1;
  const bytes = Buffer.from(latin1, 'latin1');
  // A text with letters above Latin-1 was decoded already, and would lose them here.
  return isUtf8(bytes) && bytes.toString('latin1') === latin1 ? bytes.toString('utf8') : latin1;
}
