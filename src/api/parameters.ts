/**
 * The parameters of lists and actions, from the query string and, for some, from a JSON body (contract M 1.2, 21.3).
 * One row per parameter: handlers read it by its row, and the interface document shows the row.
 */
import type { TSchema } from '@sinclair/typebox';
import { ApiError, invalidBody } from '../protocol/errors.ts';
import { type CommaRule, queryParameters, queryValues } from '../protocol/request-target.ts';

/** The values given under one name. */
export interface Given {
  /** Never contains `''`: empty elements are dropped. */
  values: string[];
  from: 'query' | 'body';
}

export interface Parameter<Member extends string = string, Value = unknown> {
  name: string;
  meaning: string;
  schema: TSchema;
  /** Name of its value in the code. When two parameters have the same member, their lists are joined. */
  member: Member;
  /** What commas in its values do. Absent: they separate values. */
  commas?: CommaRule;
  /** A list of ids, for which an empty list has a meaning of its own. */
  isIds?: true;
  /** `undefined` when no value is given. Throws `ApiError` 400 that names the parameter. */
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

/** `row` with its value stored under `member`. */
export function into<const Member extends string, Value>(
  member: Member,
  row: Parameter<string, Value>,
): Parameter<Member, Value> {
  return { ...row, member };
}

/** For values that may contain commas: several values are given by repeating the name. */
export function withCommas<Row extends Parameter>(row: Row): Row {
  return { ...row, commas: 'belong' };
}

/** For values that may contain commas, each of them escaped: any other comma separates values. */
export function withEscapedCommas<Row extends Parameter>(row: Row): Row {
  return { ...row, commas: 'separateUnlessEscaped' };
}

/** The only value; `''` when there is none. Throws `ApiError` 400 when there are several. */
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

/** The values of `rows` in a query; other parameters are ignored, as on all reads. */
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
 * The values given for `rows`; where query and body have the same name, the query wins. `onUnknown` is called for every
 * other name. Throws `ApiError` 400 on a malformed escape and on a body of the wrong shape.
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
    else given.set(name, { values: queryValues(name, rawValues, row.commas ?? 'separate'), from: 'query' });
  }
  for (const [name, value] of bodyMembers(body)) {
    if (!byName.has(name)) onUnknown(name);
    else if (!given.has(name)) given.set(name, { values: memberTexts(name, value), from: 'body' });
  }
  return given;
}

/** A request with filters; `body`: its parsed JSON. */
export interface FilterRequest {
  rawQuery: string;
  body: unknown;
  isBulk: boolean;
}

/**
 * As `givenFor`, for filters. A filter without a value is left out. A bulk action refuses it instead, and refuses
 * unknown names too: leaving a filter out would widen the action. `mayBeEmpty`: whether an empty list of ids has a
 * meaning.
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

/** A given name may be of any length; the error text repeats only its beginning. */
export function shown(name: string): string {
  return name.length <= 64 ? name : `${name.slice(0, 64)}…`;
}

function bodyMembers(body: unknown): [string, unknown][] {
  if (body === undefined || body === null) return [];
  if (typeof body !== 'object' || Array.isArray(body)) throw invalidBody('an object of filters is needed');
  return Object.entries(body);
}

/**
 * Reads a text, a number, or an array of them; null is an empty array, since Go writes one so. An empty text is
 * refused, not dropped, so that `[""]` never has the meaning of `[]`.
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
