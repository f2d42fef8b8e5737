import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { JSON_INLINE_BYTES_MAX } from '../../src/api/requests/json-body.ts';
import { JsonThread } from '../../src/api/requests/json-thread.ts';
import { parseCheckpoint } from '../../src/api/runs/checkpoint-json.ts';
import { systemClock } from '../../src/system/system.ts';

const VALUES_MAX = 1_000;

function bytesOf(value: unknown): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value, null, 1));
}

describe('the JSON of a checkpoint', () => {
  test('is parsed but for its steps, which are texts without white space', () => {
    const step = { stepId: 1, out: [{}, 'ü "'] };
    const wait = { eventId: 'e', step: { stepId: 2 } };
    const { value, steps } = parseCheckpoint(
      bytesOf({ done: ['t'], append: [{ step, delay: '1s' }, { wait }] }),
      VALUES_MAX,
    );
    const text = new TextEncoder().encode(JSON.stringify(step));
    expect(value).toEqual({ done: ['t'], append: [{ step: text, delay: '1s' }, { wait }] });
    expect(steps).toEqual([text]);
    expect(steps[0]?.buffer.byteLength).toBe(text.length);
  });

  test.for([[], 'text', { append: 'text' }, { append: [1, null, [], {}, { step: 'text' }, { step: [1] }] }])(
    'may have any shape: %j',
    (value) => {
      expect(parseCheckpoint(bytesOf(value), VALUES_MAX)).toEqual({ value, steps: [] });
    },
  );

  test('may have few values besides its steps, since those are passed from thread to thread', () => {
    const many = Array.from({ length: VALUES_MAX }, () => 0);
    expect(() => parseCheckpoint(bytesOf({ append: [{ step: { out: many } }] }), VALUES_MAX)).not.toThrow();
    expect(() => parseCheckpoint(bytesOf({ append: [{ call: { headers: many } }] }), VALUES_MAX)).toThrow(
      'at most 1000 JSON values besides steps are accepted',
    );
  });
});

describe('a long checkpoint', () => {
  let thread: JsonThread;
  beforeEach(() => {
    thread = new JsonThread(systemClock);
  });
  afterEach(() => thread.close());

  test('comes back from its thread with the texts of its steps', async () => {
    const checkpoint = {
      done: ['t'],
      append: [{ step: { stepId: 1, out: 'x'.repeat(JSON_INLINE_BYTES_MAX) } }, { step: { stepId: 2, out: [{}, {}] } }],
    };
    expect(await thread.checkpoint(bytesOf(checkpoint), VALUES_MAX)).toEqual(
      parseCheckpoint(bytesOf(checkpoint), VALUES_MAX).value,
    );
  });
});
