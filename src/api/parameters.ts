/** The parameters of a list or an action, from the query string and, for some, from a JSON body (contract M 1.2, 21.3). */
import { ApiError } from '../protocol/errors.ts';
import { queryParameters, queryValues } from '../protocol/request-target.ts';

export interface ParameterValue {
  /** Never contains `''`: empty elements are dropped. */
  values: string[];
  from: 'query' | 'body';
}

export type Parameters = Map<string, ParameterValue>;

/** Filters whose values may contain commas, so that several of them are written by repeating the name. */
const UNSPLIT: ReadonlySet<string> = new Set(['url', 'path', 'endpointName', 'cursor', 'workflowUrl']);

/**
 * The parameters that `isWanted` says yes to, as text; the query wins name by name. `isWanted` may throw to refuse
 * a name. Throws `ApiError` 400 on a malformed escape and on a body of the wrong shape.
 */
export function readParameters(rawQuery: string, body: unknown, isWanted: (name: string) => boolean): Parameters {
  const parameters: Parameters = new Map();
  for (const [name, rawValues] of queryParameters(rawQuery)) {
    if (name === '' || name.toLowerCase() === 'qstash_token' || !isWanted(name)) continue;
    const values = queryValues(name, rawValues, { splitCommas: !UNSPLIT.has(name) });
    parameters.set(name, { values, from: 'query' });
  }
  for (const [name, value] of bodyMembers(body)) {
    if (!isWanted(name) || parameters.has(name)) continue;
    parameters.set(name, { values: memberTexts(name, value), from: 'body' });
  }
  return parameters;
}

/** Its only value; `''` when it has none. Throws `ApiError` 400 when it has several. */
export function singleValue(name: string, { values }: ParameterValue): string {
  const [first = '', second] = values;
  if (second !== undefined) throw invalidParameter(name, 'only one value is possible');
  return first;
}

/** Base-10 without sign. */
export function wholeNumber(name: string, text: string): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw invalidParameter(name, 'a whole number is needed');
  return value;
}

/** The `known` parameters of a query; unknown ones are ignored, as they are on all reads. */
export function readQuery(rawQuery: string, known: readonly { name: string }[]): Parameters {
  return readParameters(rawQuery, undefined, (name) => known.some((parameter) => parameter.name === name));
}

/** `undefined` when it is not there. An empty one is there, and mostly wrong. */
export function textOf(query: Parameters, name: string): string | undefined {
  const given = query.get(name);
  return given && singleValue(name, given);
}

/** From 1 to `max`; `undefined` when it is not there. */
export function countOf(query: Parameters, name: string, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const text = textOf(query, name);
  if (text === undefined) return undefined;
  const count = wholeNumber(name, text);
  if (count >= 1 && count <= max) return count;
  const range = max === Number.MAX_SAFE_INTEGER ? 'a number of at least 1' : `a number from 1 to ${max}`;
  throw invalidParameter(name, `${range} is needed`);
}

/** `invalid query parameter <name>: <reason>` (contract M 25). */
export function invalidParameter(name: string, reason: string): ApiError {
  return new ApiError('invalid_query', `invalid query parameter ${name}: ${reason}`);
}

function bodyMembers(body: unknown): [string, unknown][] {
  if (body === undefined || body === null) return [];
  if (typeof body !== 'object' || Array.isArray(body)) throw invalidBody('an object of filters is needed');
  return Object.entries(body);
}

/**
 * A text, a number, or an array of them; null is an empty array, which is how Go writes one. An empty text is refused
 * and not dropped, so that `[""]` never comes to mean what `[]` means.
 */
function memberTexts(name: string, value: unknown): string[] {
  if (value === null) return [];
  const elements: unknown[] = Array.isArray(value) ? value : [value];
  return elements.map((element) => {
    if (element === '') throw invalidBody(`${name} must not hold an empty text`);
    if (typeof element === 'string') return element;
    if (typeof element === 'number' && Number.isFinite(element)) return String(element);
    throw invalidBody(`${name} must be a text, a number, or an array of them`);
  });
}

function invalidBody(reason: string): ApiError {
  return new ApiError('invalid_body', `invalid request body: ${reason}`);
}
