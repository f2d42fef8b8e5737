/**
 * Reads the parameters of lists and actions from the query string and, for some routes, from a JSON body
 * (contract M 1.2, 21.3). Each parameter is one row, with which handlers read its values and from which the interface
 * document describes it.
 */
import { type TSchema, Type } from '@sinclair/typebox';
import { ApiError, invalidBody } from '../../protocol/errors.ts';
import { type CommaRule, queryParameters, queryValues } from '../../protocol/urls/request-target.ts';
import { FILTER_VALUES_MAX, IDS_MAX } from '../limits.ts';

/** The values of one parameter of a request. */
export interface ParameterValues {
  /** Never contains `''`: empty elements are removed. */
  values: string[];
  from: 'query' | 'body';
}

export interface Parameter<Member extends string = string, Value = unknown> {
  name: string;
  meaning: string;
  schema: TSchema;
  /** The member that holds the values. The values of parameters with the same member are concatenated. */
  member: Member;
  /** The meaning of commas in the parameter's values. By default, commas separate values. */
  commas?: CommaRule;
  /**
   * For ids only: the items that an empty list selects. `nothingUnlessInBulkQuery`: nothing, but an empty list in the
   * query of a bulk action is rejected.
   */
  emptyIds?: 'everything' | 'nothing' | 'nothingUnlessInBulkQuery';
  /** Returns `undefined` if there is no value. Throws `ApiError` 400 that names the parameter. */
  read: (input: ParameterValues) => Value | undefined;
}

/** The values of `Row`, by member. */
export type Values<Row extends Parameter> = {
  [Of in Row as Of['member']]?: Exclude<ReturnType<Of['read']>, undefined>;
};

export function parameter<const Name extends string, Value>(
  name: Name,
  meaning: string,
  schema: TSchema,
  read: (input: ParameterValues) => Value | undefined,
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

/** Returns `row` for values that may contain commas. A query with several values repeats the name of the parameter. */
export function withCommas<Row extends Parameter>(row: Row): Row {
  return { ...row, commas: 'belong' };
}

/** Returns `row` for values that may contain escaped commas. Unescaped commas separate values. */
export function withEscapedCommas<Row extends Parameter>(row: Row): Row {
  return { ...row, commas: 'separateUnlessEscaped' };
}

/** The only value; `''` if there is none. Throws `ApiError` 400 if there are several. */
export function singleValue(name: string, { values }: ParameterValues): string {
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

/** A parameter with one text. An empty text counts as a value, which most parameters reject. */
export function text<const Name extends string>(name: Name, meaning: string): Parameter<Name, string> {
  return parameter(name, meaning, Type.String(), (input) => singleValue(name, input));
}

/** A parameter with texts. One matching text is sufficient. */
export function texts<const Name extends string>(name: Name, meaning: string): Parameter<Name, string[]> {
  return parameter(name, meaning, several(Type.String()), (input) =>
    input.values.length === 0 ? undefined : distinctValues(name, input, FILTER_VALUES_MAX),
  );
}

export function ids(name: string, meaning: string, emptyIds: Parameter['emptyIds']): Parameter<'ids', string[]> {
  const row = parameter(name, meaning, several(Type.String(), IDS_MAX), (input) =>
    distinctValues(name, input, IDS_MAX),
  );
  return { ...into('ids', row), ...(emptyIds && { emptyIds }) };
}

/** A Unix time in milliseconds. */
export function time<const Name extends string>(name: Name, meaning: string): Parameter<Name, number> {
  return parameter(name, meaning, Type.Integer({ minimum: 0 }), (input) => {
    const value = singleValue(name, input);
    return value === '' ? undefined : wholeNumber(name, value);
  });
}

/** Statuses of responses. */
export function statuses<const Name extends string>(name: Name, meaning: string): Parameter<Name, number[]> {
  return parameter(name, meaning, several(Type.Integer({ minimum: 0 })), (input) =>
    distinctValues(name, input, FILTER_VALUES_MAX).map((value) => wholeNumber(name, value)),
  );
}

/** A parameter that takes words. A word stands for one or more values; an item matches if it matches one word. */
export function words<const Name extends string, Value>(
  name: Name,
  meaning: string,
  known: ReadonlyMap<string, readonly Value[]>,
): Parameter<Name, Value[]> {
  const schema = several(Type.Union([...known.keys()].map((word) => Type.Literal(word))));
  return parameter(name, meaning, schema, ({ values }) => {
    if (values.length === 0) return undefined;
    const matched = values.flatMap((word) => {
      const meant = known.get(word);
      if (!meant) throw invalidParameter(name, `one of ${[...known.keys()].join(', ')} is needed`);
      return meant;
    });
    return [...new Set(matched)];
  });
}

export function flag<const Name extends string>(name: Name, meaning: string, isSet = false): Parameter<Name, boolean> {
  const schema = Type.Union([Type.Literal('true'), Type.Literal('false')], { default: String(isSet) });
  return parameter(name, meaning, schema, (input) => booleanOf(name, singleValue(name, input)));
}

/** A flag in any letter case, since one of the official clients writes `True` (contract M 23). */
export function flagInAnyCase<const Name extends string>(name: Name, meaning: string): Parameter<Name, boolean> {
  return parameter(name, meaning, Type.Boolean(), (input) => booleanOf(name, singleValue(name, input).toLowerCase()));
}

function booleanOf(name: string, value: string): boolean {
  if (value === 'true' || value === 'false') return value === 'true';
  throw invalidParameter(name, 'true or false is needed');
}

/** A number from 1 to `max`. A number above `loweredTo` is reduced to `loweredTo`, which is also the default. */
export function amount<const Name extends string>(
  name: Name,
  meaning: string,
  { max, loweredTo = Number.MAX_SAFE_INTEGER }: { max?: number; loweredTo?: number } = {},
): Parameter<Name, number> {
  const limits = { ...(max && { maximum: max }), ...(loweredTo < Number.MAX_SAFE_INTEGER && { default: loweredTo }) };
  return parameter(name, meaning, Type.Integer({ minimum: 1, ...limits }), (input) => {
    const value = wholeNumber(name, singleValue(name, input));
    if (value >= 1 && value <= (max ?? Number.MAX_SAFE_INTEGER)) return Math.min(value, loweredTo);
    const range = max === undefined ? 'a number of at least 1' : `a number from 1 to ${max}`;
    throw invalidParameter(name, `${range} is needed`);
  });
}

/** Number of entries on a page. */
export function pageCount(countMax: number): Parameter<'count', number> {
  return amount('count', `How many at most. More than ${countMax} is lowered to it.`, { loweredTo: countMax });
}

export const CURSOR = withCommas(text('cursor', 'The end of the previous page; take it from its response.'));

function several(schema: TSchema, maxItems = FILTER_VALUES_MAX): TSchema {
  return Type.Array(schema, { maxItems });
}

/** Removes repeated values. Throws if more than `valuesMax` are left. */
function distinctValues(name: string, { values }: ParameterValues, valuesMax: number): string[] {
  const distinct = [...new Set(values)];
  if (distinct.length > valuesMax)
    throw invalidParameter(name, `at most ${valuesMax} values are possible, got ${distinct.length}`);
  return distinct;
}

/** The values of `rows` in a query; other parameters are ignored, as on all reads. */
export function readQuery<Row extends Parameter>(rawQuery: string, rows: readonly Row[]): Values<Row> {
  return valuesOf(rows, collectValues(rows, rawQuery));
}

export function valuesOf<Row extends Parameter>(
  rows: readonly Row[],
  valuesByName: ReadonlyMap<string, ParameterValues>,
): Values<Row> {
  const values: Record<string, unknown> = {};
  for (const { name, member, read } of rows) {
    const input = valuesByName.get(name);
    const value = input && read(input);
    const before = values[member];
    if (Array.isArray(before) && Array.isArray(value)) values[member] = [...before, ...value];
    else if (value !== undefined) values[member] = value;
  }
  return values as Values<Row>;
}

/**
 * Collects the values for `rows` from query and body; the query takes precedence. Calls `onUnknown` for every other name.
 * Throws `ApiError` 400 for a malformed escape, and for a body of the wrong shape.
 */
export function collectValues(
  rows: readonly Parameter[],
  rawQuery: string,
  body?: unknown,
  onUnknown: (name: string) => void = () => {},
): Map<string, ParameterValues> {
  const byName = new Map(rows.map((row) => [row.name, row]));
  const valuesByName = new Map<string, ParameterValues>();
  for (const [name, rawValues] of queryParameters(rawQuery)) {
    if (name === '' || name.toLowerCase() === 'qstash_token') continue;
    const row = byName.get(name);
    if (!row) onUnknown(name);
    else valuesByName.set(name, { values: queryValues(name, rawValues, row.commas ?? 'separate'), from: 'query' });
  }
  for (const [name, value] of bodyMembers(body)) {
    if (!byName.has(name)) onUnknown(name);
    else if (!valuesByName.has(name)) valuesByName.set(name, { values: memberTexts(name, value), from: 'body' });
  }
  return valuesByName;
}

/** Shortens a name for an error text: names in requests can have any length. */
export function shortened(name: string): string {
  return name.length <= 64 ? name : `${name.slice(0, 64)}…`;
}

function bodyMembers(body: unknown): [string, unknown][] {
  if (body === undefined || body === null) return [];
  if (typeof body !== 'object' || Array.isArray(body)) throw invalidBody('an object of filters is needed');
  return Object.entries(body);
}

/**
 * Reads a text, a number, or an array of texts and numbers. Null counts as an empty array, as Go serializes an empty
 * list. An empty text is rejected, not removed, so that `[""]` never means `[]`.
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
