/** What becomes of the messages that a call holds, by the answer of its endpoint (contract K 5)? */
import { describe, expect, it } from 'vitest';
import { endsOf } from '../../src/engine/calls/ends.ts';
import type { Claimed, Outcome } from '../../src/engine/model.ts';
import { mintCheckpointToken } from '../../src/protocol/workflow/checkpoints.ts';

function claimed(key: number): Claimed {
  return { message: { key }, claimToken: 100 + key } as Claimed;
}

function answered(status: number, end?: Claimed): Outcome {
  const claim = { projectId: 1, runKey: 1, key: end?.message.key ?? 0, claimToken: end?.claimToken ?? 0, worker: 0 };
  const header = end ? { 'Upstash-Workflow-End': [mintCheckpointToken(claim, 'key')] } : {};
  return { kind: 'answered', status, header, body: new Uint8Array(0) };
}

const [first, second, third] = [claimed(1), claimed(2), claimed(3)];

describe('the messages of a call that was answered', () => {
  it('200 with a held token are delivered, and the run ends with that one', () => {
    const outcome = answered(200, second);
    expect(endsOf([second, third], first, outcome)).toEqual([
      { claimed: second, outcome, endsRun: true },
      { claimed: third, outcome },
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
