/** The entry keys of messages in the journal (P8). */
import { describe, expect, test } from 'vitest';
import { entryIdentityOf, readStep, stepIdOfCall } from '../../src/workflow/steps.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function entryKeyOfBody(body: string, url = 'https://app.example/wf'): string {
  return entryIdentityOf({ callType: 'step', url, header: {}, body: bytes(body) }).entryKey;
}

describe('reading a step', () => {
  test('keeps only the members that the server uses', () => {
    const body = bytes('{"stepId":3,"stepName":"pay","stepType":"Run","out":"1","concurrent":2,"extra":null}');
    expect(readStep(body)).toEqual({ stepId: 3, stepName: 'pay', stepType: 'Run', concurrent: 2 });
  });

  test.for([
    ['nothing', ''],
    ['text', 'hello'],
    ['an array', '[{"stepId":1}]'],
    ['null', 'null'],
    ['a step without an id', '{"stepName":"pay"}'],
    ['an id that is a text', '{"stepId":"1"}'],
    ['an id that is a fraction', '{"stepId":1.5}'],
    ['a negative id', '{"stepId":-1}'],
    ['bytes that are no text', '\u0000\u00ff'],
  ])('%s holds none', ([, body]) => {
    expect(readStep(bytes(body as string))).toBeUndefined();
  });

  test('members of an unexpected type are omitted', () => {
    expect(readStep(bytes('{"stepId":1,"stepName":7,"concurrent":"2","targetStep":{}}'))).toEqual({ stepId: 1 });
  });
});

test.for([
  [1730000000, 1730000000000],
  [1730000000.123, 1730000000123],
  [1730000000.1234, 1730000000124],
  [1e300, undefined],
  ['1730000000', undefined],
])('a sleep until %s is over at %s ms', ([sleepUntil, ms]) => {
  expect(readStep(bytes(JSON.stringify({ stepId: 1, sleepUntil })))?.sleepUntilMs).toBe(ms);
});

describe('the entry key of a message', () => {
  test('is that of the step, regardless of its result', () => {
    expect(entryKeyOfBody('{"stepId":4,"out":"1"}')).toBe('s4');
    expect(entryKeyOfBody('{"out":"2","stepId":4}')).toBe('s4');
  });

  test('differs between the plan of a step and its result', () => {
    const plan = entryIdentityOf({ callType: 'step', url: '', header: {}, body: bytes('{"stepId":0,"targetStep":4}') });
    expect(plan).toEqual({ kind: 'plan', entryKey: 'p4' });
  });

  test('of a call is that of the step that its result will name', () => {
    const callbackHeader = { 'Upstash-Workflow-Stepid': ['5'] };
    const call = entryIdentityOf({
      callType: 'toCallback',
      url: 'https://b.example',
      header: {},
      body: bytes('x'),
      callbackHeader,
    });
    expect(call).toEqual({ kind: 'toCallback', entryKey: 'c5' });
  });

  test('is a hash of everything published if no step is named', () => {
    const entryKey = entryKeyOfBody('hello');
    expect(entryKey).toMatch(/^h/);
    expect(entryKeyOfBody('hello')).toBe(entryKey);
    expect(entryKeyOfBody('hello!')).not.toBe(entryKey);
    expect(entryKeyOfBody('hello', 'https://app.example/other')).not.toBe(entryKey);
  });

  test('is that of the result if both ids are given', () => {
    const body = bytes('{"stepId":6,"targetStep":6,"stepType":"Wait"}');
    expect(entryIdentityOf({ callType: 'step', url: '', header: {}, body })).toEqual({ kind: 'step', entryKey: 's6' });
  });
});

test.for([
  ['no header', {}, undefined],
  ['one', { 'Upstash-Workflow-Stepid': ['12'] }, 12],
  ['one in the other dialect', { 'Waypost-Workflow-Stepid': ['12'] }, 12],
  ['one that is no number', { 'Upstash-Workflow-Stepid': ['a'] }, undefined],
  ['an empty one', { 'Upstash-Workflow-Stepid': [''] }, undefined],
] as const)('the step of a call is read from %s', ([, header, stepId]) => {
  expect(stepIdOfCall(header as unknown as Record<string, string[]>)).toBe(stepId);
});
