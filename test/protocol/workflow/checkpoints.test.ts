import { describe, expect, it } from 'vitest';
import {
  decodeCheckpointClaim,
  endTokenOf,
  isEndHeader,
  mintCheckpointToken,
  readCheckpointToken,
  takesCheckpoints,
} from '../../../src/protocol/workflow/checkpoints.ts';

const CLAIM = { projectId: 1, runKey: 2 ** 40, key: Number.MAX_SAFE_INTEGER, claimToken: 7, worker: 2 ** 24 - 1 };
const KEYS = ['sig_current', 'sig_next'];

const TOKENS = [
  ['of this process', mintCheckpointToken(CLAIM, 'sig_current')],
  ['of another process', 'P_AAAAAAAABCcAAAAAAAAEM_________QBwAAAAAAAD___8kBtzpKkbKS7iCZgMUnrA9'],
] as const;

describe.each(TOKENS)('a token %s', (_, token) => {
  it('is verified with the current or the next signing key', () => {
    expect(token).toMatch(/^[A-Za-z0-9_-]{68}$/);
    expect(readCheckpointToken(token, () => KEYS)).toEqual(CLAIM);
    expect(readCheckpointToken(token, () => KEYS.toReversed())).toEqual(CLAIM);
    expect(decodeCheckpointClaim(token)).toEqual(CLAIM);
  });

  it('is rejected with other keys, and for a project without keys', () => {
    expect(readCheckpointToken(token, () => ['sig_other'])).toBeUndefined();
    expect(readCheckpointToken(token, () => [])).toBeUndefined();
    expect(readCheckpointToken(token, (projectId) => (projectId === 1 ? [] : KEYS))).toBeUndefined();
  });

  it('is rejected if any byte is changed', () => {
    const bytes = Buffer.from(token, 'base64url');
    for (const [at, byte] of bytes.entries()) {
      const altered = Buffer.from(bytes);
      altered[at] = byte ^ 1;
      expect(
        readCheckpointToken(altered.toString('base64url'), () => KEYS),
        `byte ${at}`,
      ).toBeUndefined();
    }
  });

  it.each(['', 'x', token.slice(1), `${token}A`, `${token.slice(1)}.`])('is not %j', (text) => {
    expect(readCheckpointToken(text, () => KEYS)).toBeUndefined();
    expect(decodeCheckpointClaim(text)).toBeUndefined();
  });
});

it('is sent with deliveries that a library reads as a journal', () => {
  const run = { key: 1, id: 'r', createdAtMs: 0, url: 'https://app.example', features: [] };
  expect(takesCheckpoints({ ...run, callType: 'step' })).toBe(true);
  expect(takesCheckpoints({ ...run, callType: 'step', init: 'known' })).toBe(true);
  expect(takesCheckpoints({ ...run, callType: 'fromCallback' })).toBe(true);
  expect(takesCheckpoints({ ...run, callType: 'step', init: 'unknown' })).toBe(false);
  for (const callType of ['toCallback', 'failureCall', 'stepConfig'] as const) {
    expect(takesCheckpoints({ ...run, callType })).toBe(false);
  }
});

it('is read from the end of a run with either prefix, in any letter case', () => {
  expect(endTokenOf({ 'Upstash-Workflow-End': [' t '] })).toBe('t');
  expect(endTokenOf({ 'Waypost-Workflow-End': ['t'] })).toBe('t');
  expect(endTokenOf({})).toBeUndefined();
  expect(['Upstash-Workflow-End', 'WAYPOST-workflow-end', 'Upstash-Workflow-Url'].map(isEndHeader)).toEqual([
    true,
    true,
    false,
  ]);
});
