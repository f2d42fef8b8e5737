/** Reading some members of an object agrees with `JSON.parse`, and skips all others. */

import { describe, expect, test } from 'vitest';
import { memberJson, scalarMembers } from '../../src/workflow/scalar-members.ts';
import { fc } from '../support/fast-check.ts';

const NAMES = new Set(['a', 'b', 'stepId']);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function isScalar(value: unknown): boolean {
  return value === null || typeof value !== 'object';
}

test('agrees with JSON.parse about every object', () => {
  const json = fc.dictionary(fc.oneof(fc.constantFrom('a', 'b', 'stepId'), fc.string()), fc.jsonValue(), {
    maxKeys: 6,
  });
  fc.assert(
    fc.property(json, fc.constantFrom(0, 2), (object, indent) => {
      const text = JSON.stringify(object, null, indent);
      const parsed = JSON.parse(text) as Record<string, unknown>;
      const expected = Object.fromEntries(
        [...NAMES].flatMap((name) =>
          Object.hasOwn(parsed, name) && isScalar(parsed[name]) ? [[name, parsed[name]]] : [],
        ),
      );
      const found = scalarMembers(bytes(text), NAMES);
      const scalars = Object.entries(found ?? {}).filter(([, value]) => value !== undefined);
      expect(Object.fromEntries(scalars)).toEqual(expected);
    }),
    { seed: 7, numRuns: 500 },
  );
});

test('never throws and never hangs, whatever the bytes', () => {
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 60 }), fc.string({ maxLength: 60 }).map(bytes)), (body) => {
      scalarMembers(body, NAMES);
      scalarMembers(Uint8Array.from([...bytes('{"a":'), ...body]), NAMES);
    }),
    { seed: 7, numRuns: 2_000 },
  );
});

describe('a text that is not an object', () => {
  test.for(['', '[]', '"a"', '{', '{"a"', '{"a":1', '{"a":1}x', '{"a" 1}', 'null'])('%j has no members', (text) => {
    expect(scalarMembers(bytes(text), NAMES)).toBeUndefined();
  });
});

test('the last member of a repeated name counts', () => {
  expect({ ...scalarMembers(bytes('{"a":1,"a":2}'), NAMES) }).toEqual({ a: 2 });
});

test('escapes in names and values are read', () => {
  expect({ ...scalarMembers(bytes('{"\\u0061":"\\"}\\\\"}'), NAMES) }).toEqual({ a: '"}\\' });
});

test('the JSON of a member is returned unchanged, whatever its shape', () => {
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  for (const json of ['"a,\\"}b"', '{ "x": [1, 2] }', '[]', 'null', '1e3', deep]) {
    expect(new TextDecoder().decode(memberJson(bytes(`{"a":1, "b" : ${json} }`), 'b'))).toBe(json);
  }
  expect(memberJson(bytes('{"a":1}'), 'b')).toBeUndefined();
  expect(memberJson(bytes('["b"]'), 'b')).toBeUndefined();
});
