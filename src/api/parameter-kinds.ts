/** The kinds of parameters: how each is read, and how the interface document describes its values. */
import { type TSchema, Type } from '@sinclair/typebox';
import { FILTER_VALUES_MAX, IDS_MAX } from './limits.ts';
import {
  type Given,
  into,
  invalidParameter,
  type Parameter,
  parameter,
  singleValue,
  wholeNumber,
  withCommas,
} from './parameters.ts';

/** One text. An empty text counts as given, and most parameters refuse it. */
export function text<const Name extends string>(name: Name, meaning: string): Parameter<Name, string> {
  return parameter(name, meaning, Type.String(), (given) => singleValue(name, given));
}

/** Texts of which any one may match. */
export function texts<const Name extends string>(name: Name, meaning: string): Parameter<Name, string[]> {
  return parameter(name, meaning, several(Type.String()), (given) =>
    given.values.length === 0 ? undefined : different(name, given, FILTER_VALUES_MAX),
  );
}

export function ids<const Name extends string>(name: Name, meaning: string): Parameter<'ids', string[]> {
  const schema = several(Type.String(), IDS_MAX);
  return {
    ...into(
      'ids',
      parameter(name, meaning, schema, (given) => different(name, given, IDS_MAX)),
    ),
    isIds: true,
  };
}

/** A Unix time in milliseconds. */
export function time<const Name extends string>(name: Name, meaning: string): Parameter<Name, number> {
  return parameter(name, meaning, Type.Integer({ minimum: 0 }), (given) => {
    const value = singleValue(name, given);
    return value === '' ? undefined : wholeNumber(name, value);
  });
}

/** Statuses of answers. */
export function statuses<const Name extends string>(name: Name, meaning: string): Parameter<Name, number[]> {
  return parameter(name, meaning, several(Type.Integer({ minimum: 0 })), (given) =>
    different(name, given, FILTER_VALUES_MAX).map((value) => wholeNumber(name, value)),
  );
}

/** Words of which any one may match, each with all values that it stands for. */
export function words<const Name extends string, Value>(
  name: Name,
  meaning: string,
  known: ReadonlyMap<string, readonly Value[]>,
): Parameter<Name, Value[]> {
  const schema = several(Type.Union([...known.keys()].map((word) => Type.Literal(word))));
  return parameter(name, meaning, schema, ({ values }) => {
    if (values.length === 0) return undefined;
    const meant = values.flatMap((word) => {
      const found = known.get(word);
      if (!found) throw invalidParameter(name, `one of ${[...known.keys()].join(', ')} is needed`);
      return found;
    });
    return [...new Set(meant)];
  });
}

export function flag<const Name extends string>(name: Name, meaning: string, isSet = false): Parameter<Name, boolean> {
  const schema = Type.Union([Type.Literal('true'), Type.Literal('false')], { default: String(isSet) });
  return parameter(name, meaning, schema, (given) => booleanOf(name, singleValue(name, given)));
}

/** In any letter case, since one of the official clients writes `True` (contract M 23). */
export function flagInAnyCase<const Name extends string>(name: Name, meaning: string): Parameter<Name, boolean> {
  return parameter(name, meaning, Type.Boolean(), (given) => booleanOf(name, singleValue(name, given).toLowerCase()));
}

function booleanOf(name: string, value: string): boolean {
  if (value === 'true' || value === 'false') return value === 'true';
  throw invalidParameter(name, 'true or false is needed');
}

/** A number from 1 to `max`. A number above `loweredTo` is lowered to it; `loweredTo` is also the default. */
export function amount<const Name extends string>(
  name: Name,
  meaning: string,
  { max, loweredTo = Number.MAX_SAFE_INTEGER }: { max?: number; loweredTo?: number } = {},
): Parameter<Name, number> {
  const limits = { ...(max && { maximum: max }), ...(loweredTo < Number.MAX_SAFE_INTEGER && { default: loweredTo }) };
  return parameter(name, meaning, Type.Integer({ minimum: 1, ...limits }), (given) => {
    const value = wholeNumber(name, singleValue(name, given));
    if (value >= 1 && value <= (max ?? Number.MAX_SAFE_INTEGER)) return Math.min(value, loweredTo);
    const range = max === undefined ? 'a number of at least 1' : `a number from 1 to ${max}`;
    throw invalidParameter(name, `${range} is needed`);
  });
}

/** Number of entries on a page. */
export function pageCount(countMax: number): Parameter<'count', number> {
  return amount('count', `How many at most. More than ${countMax} is lowered to it.`, { loweredTo: countMax });
}

export const CURSOR = withCommas(text('cursor', 'Where the page before ended; take it from its answer.'));

function several(schema: TSchema, maxItems = FILTER_VALUES_MAX): TSchema {
  return Type.Array(schema, { maxItems });
}

/** Removes repeated values. Throws when more than `valuesMax` are left. */
function different(name: string, { values }: Given, valuesMax: number): string[] {
  const once = [...new Set(values)];
  if (once.length > valuesMax)
    throw invalidParameter(name, `at most ${valuesMax} values are possible, got ${once.length}`);
  return once;
}
