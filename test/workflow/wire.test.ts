/** The encoding of journals and results, and the responses of endpoints that do not speak the protocol. */
import { describe, expect, test } from 'vitest';
import type { CallType, HeaderMap, RunSettings } from '../../src/protocol/options/settings.ts';
import { detectionError, hasNoFailureFunction } from '../../src/workflow/detection.ts';
import { encodeEntry, entryBytesOf, joinEntries } from '../../src/workflow/journal.ts';
import { invokeResult } from '../../src/workflow/results.ts';

const ID = `msg_${'1'.repeat(32)}`;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('a journal', () => {
  test('is an array of ids, bodies in base64 and call types', () => {
    const entries = [
      encodeEntry({ messageId: ID, body: bytes('{"a":"ü"}'), callType: 'step' }),
      encodeEntry({ messageId: ID, body: new Uint8Array(0), callType: 'toCallback' }),
    ];
    expect(JSON.parse(joinEntries(entries).toString())).toEqual([
      { messageId: ID, body: Buffer.from('{"a":"ü"}').toString('base64'), callType: 'step' },
      { messageId: ID, body: '', callType: 'toCallback' },
    ]);
  });

  test.for<[number, CallType]>([
    [0, 'step'],
    [1, 'step'],
    [2, 'fromCallback'],
    [3, 'toCallback'],
    [1000, 'stepConfig'],
  ])('with an entry of %d bytes has the computed length', ([length, callType]) => {
    const encoded = encodeEntry({ messageId: ID, body: new Uint8Array(length), callType });
    expect(encoded.length + ','.length).toBe(entryBytesOf(length, callType));
  });
});

describe('the result of an invocation', () => {
  const step = bytes('{"stepId":7,"stepName":"i","stepType":"Invoke","concurrent":1,"odd":null}');

  test.for([
    [
      'that succeeded has what it returned',
      'RUN_SUCCESS',
      '{"x":1}',
      '{"body":"{\\"x\\":1}","isCanceled":false,"isFailed":false}',
    ],
    ['that returned nothing has no body', 'RUN_SUCCESS', '', '{"isCanceled":false,"isFailed":false}'],
    ['that failed says so', 'RUN_FAILED', undefined, '{"isCanceled":false,"isFailed":true}'],
    ['that was cancelled says so', 'RUN_CANCELED', undefined, '{"isCanceled":true,"isFailed":false}'],
  ] as const)('%s', ([, state, response, out]) => {
    const body = invokeResult(step, state, response === undefined ? undefined : bytes(response));
    expect(JSON.parse(new TextDecoder().decode(body))).toEqual({
      stepId: 7,
      stepName: 'i',
      stepType: 'Invoke',
      concurrent: 1,
      odd: null,
      out,
    });
  });
});

describe('a response to the first message of a run', () => {
  const part: RunSettings = {
    key: 1,
    id: 'wfr_a',
    createdAtMs: 1,
    url: 'https://app.example',
    callType: 'step',
    init: 'known',
    features: ['WF_DetectTrigger'],
  };
  const VERSION: HeaderMap = { 'Upstash-Workflow-Sdk-Version': ['1'] };
  const { init: _init, ...later } = part;

  test.for<[string, RunSettings, HeaderMap, RegExp | undefined]>([
    ['with the library version is one of a workflow', part, VERSION, undefined],
    ['in the other dialect is one as well', part, { 'Waypost-Workflow-Sdk-Version': ['1'] }, undefined],
    ['without it is not', part, {}, /^detected a non-workflow destination/],
    ['is not looked at when the run does not ask for it', { ...part, features: [] }, {}, undefined],
    ['is not looked at for later messages', later, {}, undefined],
    ['to a REST trigger needs a library', { ...part, isRest: true }, {}, /^trigger rest api is only usable/],
    [
      'to a REST trigger may name its library',
      { ...part, isRest: true },
      { 'Upstash-Workflow-Sdk': ['v1.3.3'] },
      undefined,
    ],
    ['to a REST trigger is not one with the version alone', { ...part, isRest: true }, VERSION, /^trigger rest api/],
    [
      'to a REST trigger may name its library in the other dialect',
      { ...part, isRest: true },
      { 'Waypost-Workflow-Sdk': ['v1'] },
      undefined,
    ],
  ])('%s', ([, run, header, error]) => {
    const found = detectionError(run, header);
    if (error) expect(found).toMatch(error);
    else expect(found).toBeUndefined();
  });
});

test('a workflow reports a missing failure function in a header of either dialect', () => {
  expect(hasNoFailureFunction({ 'Upstash-Workflow-Failure-Callback-Notfound': ['true'] })).toBe(true);
  expect(hasNoFailureFunction({ 'Waypost-Workflow-Failure-Callback-Notfound': ['true'] })).toBe(true);
  expect(hasNoFailureFunction({})).toBe(false);
});
