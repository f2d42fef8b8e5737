/** The rows of a publish. */
import { describe, expect, test } from 'vitest';
import { type AcceptContext, draftOf, notBeforeOf } from '../../src/engine/messages/accept.ts';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import type { PublishOptions } from '../../src/protocol/options/settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { NOW_MS } from './fixtures.ts';

const URL = 'https://a.example/hook';
const CONTEXT: AcceptContext = {
  projectId: 1,
  nowMs: NOW_MS,
  randomness: new SeededRandom(1),
  deduplicationWindowMs: 600_000,
  lazyAboveBytes: 0,
};

interface Changes extends Partial<Pick<PublishOptions, 'deduplication' | 'explicitHeader'>> {
  url?: string;
  body?: string;
  /** The URL group that it is published to. */
  group?: string;
}

function command({ url = URL, body = 'b', group, ...options }: Changes): PublishCommand {
  const settings = { dialect: 'upstash' as const, maxRetries: 0, ...(group !== undefined && { topicName: group }) };
  return {
    url,
    body: Buffer.from(body),
    options: { method: 'POST', header: {}, explicitHeader: {}, settings, ...options },
  };
}

describe('the reservation of a deduplication id', () => {
  const hashOf = (changes: Changes) => draftOf(command(changes), 1, CONTEXT).deduplication?.hash;

  test('is made only on request, and ends with the window', () => {
    expect(draftOf(command({}), 1, CONTEXT)).not.toHaveProperty('deduplication');
    const { deduplication } = draftOf(command({ deduplication: { by: 'content' } }), 1, CONTEXT);
    expect(deduplication?.expiresAtMs).toBe(NOW_MS + 600_000);
  });

  test('uses only the id if there is one', () => {
    const deduplication = { by: 'id', id: 'x' } as const;
    const others = [{ url: `${URL}/2` }, { body: 'c' }, { explicitHeader: { 'X-A': ['1'] } }];
    for (const other of others) expect(hashOf({ deduplication, ...other })).toBe(hashOf({ deduplication }));
    expect(hashOf({ deduplication: { by: 'id', id: 'y' } })).not.toBe(hashOf({ deduplication }));
    expect(hashOf({ deduplication: { by: 'content' } })).not.toBe(hashOf({ deduplication }));
  });

  test('uses destination, body and explicit headers if there is none', () => {
    const deduplication = { by: 'content' } as const;
    const others = [{ url: `${URL}/2` }, { body: 'c' }, { explicitHeader: { 'X-A': ['1'] } }, { group: 'g' }];
    const hashes = [{}, ...others].map((other) => hashOf({ deduplication, ...other }));
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(hashOf({ deduplication })).toBe(hashes[0]);
  });

  test.each([{ by: 'content' }, { by: 'id', id: 'x' }] as const)(
    'is one for each endpoint of a URL group, for each group or, with an id, for any group: %j',
    (deduplication) => {
      const one = { deduplication, group: 'g' };
      expect(hashOf({ ...one, url: `${URL}/2` })).not.toBe(hashOf(one));
      expect(hashOf({ ...one, group: 'h' }) === hashOf(one)).toBe(deduplication.by === 'id');
    },
  );
});

test('a message keeps its sender, if that is known', () => {
  const { message } = draftOf({ ...command({}), callerIp: '192.0.2.1' }, 1, CONTEXT);
  expect(message.callerIp).toBe('192.0.2.1');
  expect(draftOf(command({}), 1, CONTEXT).message).not.toHaveProperty('callerIp');
});

test('a message starts after its delay, or at a time of the wall clock, however far the shared time is ahead of that', () => {
  const context = { nowMs: NOW_MS, leadMs: 1_000 };
  expect(notBeforeOf({}, context)).toBe(NOW_MS);
  expect(notBeforeOf({ delayMs: 50 }, context)).toBe(NOW_MS + 50);
  expect(notBeforeOf({ notBeforeMs: NOW_MS + 7_000 }, context)).toBe(NOW_MS + 8_000);
  expect(notBeforeOf({ notBeforeMs: NOW_MS + 7_000 }, { nowMs: NOW_MS })).toBe(NOW_MS + 7_000);
});
