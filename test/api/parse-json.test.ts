import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { JSON_INLINE_BYTES_MAX, JSON_LEVELS_MAX, parseJson } from '../../src/api/requests/json-body.ts';
import { JsonThread } from '../../src/api/requests/json-thread.ts';
import { systemClock } from '../../src/system/system.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const VALUES_MAX = 10_000;

/** A text within arrays that are within each other. */
function nested(levels: number, text = '[{['): Uint8Array {
  return Buffer.from(`${'['.repeat(levels)}${JSON.stringify(text)}${']'.repeat(levels)}`);
}

describe('JSON', () => {
  test('may be nested as deep as the limit, and can be written again', () => {
    const json = nested(JSON_LEVELS_MAX);
    expect(JSON.stringify(parseJson(json, VALUES_MAX))).toBe(json.toString());
  });

  test.for(['[', '{"a":', '[{"a":'])('that goes deeper with %j is refused, whether or not it ends', (opening) => {
    const open = opening.repeat(JSON_LEVELS_MAX + 1);
    const closing = opening.includes('[') ? ']' : '}';
    for (const json of [open, `${open}1${closing.repeat(JSON_LEVELS_MAX + 1)}`]) {
      expect(() => parseJson(Buffer.from(json), VALUES_MAX)).toThrow(
        'invalid request body: at most 500 levels of JSON are accepted',
      );
    }
  });

  test('with fewer bytes than it may hold values is refused for its levels all the same', () => {
    expect(() => parseJson(nested(JSON_LEVELS_MAX + 1), 1_000_000)).toThrow('levels of JSON');
  });

  test('may have many objects and arrays beside each other', () => {
    const json = JSON.stringify(Array.from({ length: 2 * JSON_LEVELS_MAX }, () => ({ a: [] })));
    expect(parseJson(Buffer.from(json), VALUES_MAX)).toEqual(JSON.parse(json));
  });

  test('may have brackets in its texts', () => {
    const text = '\\"[{'.repeat(JSON_LEVELS_MAX);
    expect(parseJson(Buffer.from(JSON.stringify([text])), VALUES_MAX)).toEqual([text]);
  });
});

describe('large JSON', () => {
  let thread: JsonThread;
  beforeEach(() => {
    thread = new JsonThread(systemClock);
  });
  afterEach(() => thread.close());

  const large = 'x'.repeat(JSON_INLINE_BYTES_MAX);

  test('comes back as deep as the limit', async () => {
    const json = nested(JSON_LEVELS_MAX, large);
    expect(JSON.stringify(await thread.value(json, VALUES_MAX))).toBe(json.toString());
  });

  test('that is deeper is refused, and the next is parsed', async () => {
    await expect(thread.value(nested(JSON_LEVELS_MAX + 1, large), VALUES_MAX)).rejects.toMatchObject({
      name: 'ApiError',
      message: 'invalid request body: at most 500 levels of JSON are accepted',
    });
    expect(await thread.value(Buffer.from('[1]'), VALUES_MAX)).toEqual([1]);
  });

  test('that is being parsed when the server ends is refused, and leaves no timer behind', async () => {
    const clock = new SimulatedClock();
    const closing = new JsonThread(clock);
    await closing.value(Buffer.from('[1]'), VALUES_MAX);
    const parsed = closing.value(nested(JSON_LEVELS_MAX, large), VALUES_MAX);
    await Promise.all([expect(parsed).rejects.toMatchObject({ code: 'unavailable' }), closing.close()]);
    expect(clock.nextTimerAtMs).toBeUndefined();
  });
});
