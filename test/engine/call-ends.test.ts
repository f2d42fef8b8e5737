/** What becomes of the messages that a call holds, by the answer of its endpoint (contract K 5)? */
import { describe, expect, it } from 'vitest';
import { endsOf } from '../../src/engine/calls/ends.ts';
import type { Claimed, Outcome } from '../../src/engine/model.ts';
import { END_STEP_BYTES_MAX, mintCheckpointToken } from '../../src/protocol/workflow/checkpoints.ts';
import { entryKeyOfResult } from '../../src/workflow/entry-keys.ts';

/** What an answer has in its body. */
interface Bringing {
  step?: string;
  result?: string;
}

function claimed(key: number): Claimed {
  return { message: { key }, claimToken: 100 + key } as Claimed;
}

function answered(status: number, end?: Claimed, { step, result = '' }: Bringing = {}): Outcome {
  const claim = { projectId: 1, runKey: 1, key: end?.message.key ?? 0, claimToken: end?.claimToken ?? 0, worker: 0 };
  const header = {
    ...(end && { 'Upstash-Workflow-End': [mintCheckpointToken(claim, 'key')] }),
    ...(step !== undefined && { 'Waypost-Workflow-End-Step': [String(Buffer.byteLength(step))] }),
  };
  return { kind: 'answered', status, header, body: Buffer.from((step ?? '') + result) };
}

const [first, second, third] = [claimed(1), claimed(2), claimed(3)];

describe('the messages of a call that was answered', () => {
  it('200 with a held token are delivered, and the run ends with that one', () => {
    const outcome = answered(200, second);
    expect(endsOf([second, third], first, outcome)).toEqual([
      { claimed: second, outcome, returned: { response: Buffer.from('') } },
      { claimed: third, outcome },
    ]);
  });

  it('200 may bring the last step in front of the result', () => {
    const outcome = answered(200, second, { step: '{ "stepId": 3, "out": "\\"ä\\"" }', result: '[1]' });
    const lastStep = {
      body: Buffer.from('{"stepId":3,"out":"\\"ä\\""}'),
      place: { kind: 'step', entryKey: entryKeyOfResult(3) },
    };
    expect(endsOf([second], first, outcome)).toEqual([
      { claimed: second, outcome, returned: { response: Buffer.from('[1]'), lastStep } },
    ]);
  });

  it.each([
    ['a plan', '{"stepId":0,"targetStep":1}'],
    ['a list', '[1]'],
    ['nothing', 'null'],
    ['cut text', '{"stepId":1'],
    ['a step that is too large', `{"stepId":1,"out":"${'a'.repeat(END_STEP_BYTES_MAX)}"}`],
  ])('200 with %s as last step have failed', (_, step) => {
    expect(endsOf([second], first, answered(200, second, { step, result: '[1]' }))).toEqual([
      { claimed: second, outcome: expect.objectContaining({ kind: 'unreachable', reason: 'malformed' }) },
    ]);
  });

  it.each(['', 'all', '-1', '30'])('200 whose last step has %j bytes, of twenty, have failed', (bytes) => {
    const outcome = answered(200, second, { result: '{"stepId":1} [1,2,3]' }) as Extract<Outcome, { kind: 'answered' }>;
    outcome.header['Upstash-Workflow-End-Step'] = [bytes];
    expect(endsOf([second], first, outcome)).toEqual([
      { claimed: second, outcome: expect.objectContaining({ kind: 'unreachable', reason: 'malformed' }) },
    ]);
  });

  it('200 without one are given back, except the one that it delivered', () => {
    const outcome = answered(200);
    expect(endsOf([first, second], first, outcome)).toEqual([
      { claimed: first, outcome },
      { claimed: second, outcome: { kind: 'interrupted' } },
    ]);
    expect(endsOf([], first, outcome)).toEqual([]);
  });

  it('200 with a token that is not held, or a result that is cut, have failed', () => {
    const cut = { ...answered(200, second), isCut: true } as Outcome;
    for (const outcome of [answered(200, first), cut]) {
      expect(endsOf([second], first, outcome)).toEqual([
        { claimed: second, outcome: expect.objectContaining({ kind: 'unreachable', reason: 'malformed' }) },
      ]);
    }
  });

  it.each([
    ['a failure', answered(500)],
    ['a failure that names a held token', answered(500, second)],
    ['nothing', { kind: 'unreachable', reason: 'reset', error: 'closed' } as const],
    ['our own shutdown', { kind: 'interrupted' } as const],
  ])('%s have that outcome', (_, outcome) => {
    expect(endsOf([second, third], first, outcome)).toEqual([
      { claimed: second, outcome },
      { claimed: third, outcome },
    ]);
  });
});
