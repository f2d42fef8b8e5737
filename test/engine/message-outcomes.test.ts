/** The outcome of each message of a call, by the response of its endpoint (contract K 5). */
import { describe, expect, it } from 'vitest';
import { messageOutcomes } from '../../src/engine/calls/message-outcomes.ts';
import type { Claimed, Outcome } from '../../src/engine/model.ts';
import { END_STEP_BYTES_MAX, mintCheckpointToken } from '../../src/protocol/workflow/checkpoints.ts';
import { entryKeyOfResult } from '../../src/workflow/entry-keys.ts';

/** The body of a response. */
interface ResponseBody {
  step?: string;
  result?: string;
}

function claimed(key: number): Claimed {
  return { message: { key }, claimToken: 100 + key } as Claimed;
}

function answered(status: number, end?: Claimed, { step, result = '' }: ResponseBody = {}): Outcome {
  const claim = { projectId: 1, runKey: 1, key: end?.message.key ?? 0, claimToken: end?.claimToken ?? 0, worker: 0 };
  const header = {
    ...(end && { 'Upstash-Workflow-End': [mintCheckpointToken(claim, 'key')] }),
    ...(step !== undefined && { 'Waypost-Workflow-End-Step': [String(Buffer.byteLength(step))] }),
  };
  return { kind: 'responded', status, header, body: Buffer.from((step ?? '') + result) };
}

const [first, second, third] = [claimed(1), claimed(2), claimed(3)];

describe('the messages of a call', () => {
  it('are delivered by a 200 with the token of one of them, with which the run ends', () => {
    const outcome = answered(200, second);
    expect(messageOutcomes([second, third], first, outcome)).toEqual([
      { claimed: second, outcome, returned: { response: Buffer.from('') } },
      { claimed: third, outcome },
    ]);
  });

  it('are delivered by a 200 whose body has the last step in front of the result', () => {
    const outcome = answered(200, second, { step: '{ "stepId": 3, "out": "\\"ä\\"" }', result: '[1]' });
    const lastStep = {
      body: Buffer.from('{"stepId":3,"out":"\\"ä\\""}'),
      identity: { kind: 'step', entryKey: entryKeyOfResult(3) },
    };
    expect(messageOutcomes([second], first, outcome)).toEqual([
      { claimed: second, outcome, returned: { response: Buffer.from('[1]'), lastStep } },
    ]);
  });

  it.each([
    ['a plan', '{"stepId":0,"targetStep":1}'],
    ['a list', '[1]'],
    ['nothing', 'null'],
    ['cut text', '{"stepId":1'],
    ['a step that is too large', `{"stepId":1,"out":"${'a'.repeat(END_STEP_BYTES_MAX)}"}`],
  ])('fail when a 200 has %s as its last step', (_, step) => {
    expect(messageOutcomes([second], first, answered(200, second, { step, result: '[1]' }))).toEqual([
      { claimed: second, outcome: expect.objectContaining({ kind: 'unreachable', reason: 'malformed' }) },
    ]);
  });

  it.each(['', 'all', '-1', '30'])(
    'fail when a 200 with twenty bytes says that its last step has %j bytes',
    (bytes) => {
      const outcome = answered(200, second, { result: '{"stepId":1} [1,2,3]' }) as Extract<
        Outcome,
        { kind: 'responded' }
      >;
      outcome.header['Upstash-Workflow-End-Step'] = [bytes];
      expect(messageOutcomes([second], first, outcome)).toEqual([
        { claimed: second, outcome: expect.objectContaining({ kind: 'unreachable', reason: 'malformed' }) },
      ]);
    },
  );

  it('are released by a 200 without a token, except the message that the call delivered', () => {
    const outcome = answered(200);
    expect(messageOutcomes([first, second], first, outcome)).toEqual([
      { claimed: first, outcome },
      { claimed: second, outcome: { kind: 'interrupted' } },
    ]);
    expect(messageOutcomes([], first, outcome)).toEqual([]);
  });

  it('fail when a 200 has the token of another message, or a result that is cut', () => {
    const cut = { ...answered(200, second), isCut: true } as Outcome;
    for (const outcome of [answered(200, first), cut]) {
      expect(messageOutcomes([second], first, outcome)).toEqual([
        { claimed: second, outcome: expect.objectContaining({ kind: 'unreachable', reason: 'malformed' }) },
      ]);
    }
  });

  it.each([
    ['a failure', answered(500)],
    ['a failure with the token of one of them', answered(500, second)],
    ['no response', { kind: 'unreachable', reason: 'reset', error: 'closed' } as const],
    ['our own shutdown', { kind: 'interrupted' } as const],
  ])('have the outcome of the request: %s', (_, outcome) => {
    expect(messageOutcomes([second, third], first, outcome)).toEqual([
      { claimed: second, outcome },
      { claimed: third, outcome },
    ]);
  });
});
