/**
 * The parameters of lists and actions, from the query string and, for some, from a JSON body (contract M 1.2, 21.3). Each is one
 * row, which reads it, and which the interface document shows.
 */
import type { TSchema } from '@sinclair/typebox';
import { ApiError } from '../protocol/errors.ts';
import { queryParameters, queryValues } from '../protocol/request-target.ts';

/** What came under one name. */
export interface Given {
  /** Never contains `''`: empty elements are dropped. */
  values: string[];
  from: 'query' | 'body';
}

export interface Parameter<Member extends string = string, Value = unknown> {
  name: string;
  meaning: string;
  schema: TSchema;
  /** What its value is called where it is used. Of two names for the same, the lists are joined. */
  member: Member;
  /** Its values may contain commas, so that several of them are written by repeating the name. */
  keepsCommas?: true;
  /** An empty list of ids means something of its own. */
  isIds?: true;
  /** `undefined` when it says nothing. Throws `ApiError` 400 that names it. */
  read: (given: Given) => Value | undefined;
}

/** The values of `Row`, by member. */
export type Values<Row extends Parameter> = {
  [Of in Row as Of['member']]?: Exclude<ReturnType<Of['read']>, undefined>;
};

export function parameter<const Name extends string, Value>(
  name: Name,
  meaning: string,
  schema: TSchema,
  read: (given: Given) => Value | undefined,
): Parameter<Name, Value> {
  return { name, meaning, schema, member: name, read };
}

/** `row`, its value called `member`. */
export function into<const Member extends string, Value>(
  member: Member,
  row: Parameter<string, Value>,
): Parameter<Member, Value> {
  return { ...row, member };
}

export function withCommas<Row extends Parameter>(row: Row): Row {
  return { ...row, keepsCommas: true };
}

/** Its only value; `''` when it has none. Throws `ApiError` 400 when it has several. */
export function singleValue(name: string, { values }: Given): string {
  const [first = '', second] = values;
  if (second !== undefined) throw invalidParameter(name, 'only one value is possible');
  return first;
}

/** Base-10 without sign. */
export function wholeNumber(name: string, digits: string): number {
  const value = /^\d{1,16}$/.test(digits) ? Number(digits) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw invalidParameter(name, 'a whole number is needed');
  return value;
}

/** `invalid query parameter <name>: <reason>` (contract M 25). */
export function invalidParameter(name: string, reason: string): ApiError {
  return new ApiError('invalid_query', `invalid query parameter ${name}: ${reason}`);
}

/** The values of `rows` in a query; what else it holds is ignored, as it is on all reads. */
export function readQuery<Row extends Parameter>(rawQuery: string, rows: readonly Row[]): Values<Row> {
  return valuesOf(rows, givenFor(rows, rawQuery));
}

export function valuesOf<Row extends Parameter>(rows: readonly Row[], given: ReadonlyMap<string, Given>): Values<Row> {
  const values: Record<string, unknown> = {};
  for (const { name, member, read } of rows) {
    const found = given.get(name);
    const value = found && read(found);
    const before = values[member];
    if (Array.isArray(before) && Array.isArray(value)) values[member] = [...before, ...value];
    else if (value !== undefined) values[member] = value;
  }
  return values as Values<Row>;
}

/**
 * What came for `rows`; the query wins name by name. `onUnknown` is called for what else there is. Throws `ApiError` 400 on a
 * malformed escape and on a body of the wrong shape.
 */
export function givenFor(
  rows: readonly Parameter[],
  rawQuery: string,
  body?: unknown,
  onUnknown: (name: string) => void = () => {},
): Map<string, Given> {
  const byName = new Map(rows.map((row) => [row.name, row]));
  const given = new Map<string, Given>();
  for (const [name, rawValues] of queryParameters(rawQuery)) {
    if (name === '' || name.toLowerCase() === 'qstash_token') continue;
    const row = byName.get(name);
    if (!row) onUnknown(name);
    else given.set(name, { values: queryValues(name, rawValues, { splitCommas: !row.keepsCommas }), from: 'query' });
  }
  for (const [name, value] of bodyMembers(body)) {
    if (!byName.has(name)) onUnknown(name);
    else if (!given.has(name)) given.set(name, { values: memberTexts(name, value), from: 'body' });
  }
  return given;
}

/** A request that filters; `body`: its parsed JSON. */
export interface FilterRequest {
  rawQuery: string;
  body: unknown;
  isBulk: boolean;
}

/**
 * The same of filters, where one without a value is none. A bulk action refuses that, and what it does not know: leaving a filter
 * out would widen the action. `mayBeEmpty`: whether an empty list of ids means something.
 */
export function filtersFor(
  rows: readonly Parameter[],
  { rawQuery, body, isBulk }: FilterRequest,
  mayBeEmpty: (ids: Given) => boolean,
): Map<string, Given> {
  const given = givenFor(rows, rawQuery, body, (name) => {
    if (isBulk) throw new ApiError('invalid_query', `unknown query parameter ${shown(name)}`);
  });
  const idNames = new Set(rows.flatMap(({ name, isIds }) => (isIds ? name : [])));
  for (const [name, value] of given) {
    if (value.values.length > 0 || (idNames.has(name) && mayBeEmpty(value))) continue;
    if (isBulk) throw invalidParameter(name, 'it has no value, and leaving it out would widen the action');
    given.delete(name);
  }
  return given;
}

/** A name as it came may be of any length; the error text repeats no more than helps. */
export function shown(name: string): string {
  return name.length <= 64 ? name : `${name.slice(0, 64)}…`;
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
