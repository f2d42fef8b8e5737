/** P14: for each message that is not finished there is one sentence that says why it waits. */
import { expect, test } from 'vitest';
import { explain } from '../../src/engine/explain.ts';
import type { LiveMessage } from '../../src/engine/stores.ts';
import { message, NOW_MS } from './fixtures.ts';

const SOON_MS = NOW_MS + 60_000;

test.for([
  ['project', 'project_busy', 'its project has its share'],
  ['unproven', 'endpoint_unproven', 'has not answered lately'],
  ['origin', 'endpoint_busy', 'one of its attempts in flight ends'],
] as const)('one in the line of its origin, which the share of its %s holds, is explained', ([held, reason, part]) => {
  const standing = { kind: 'parked', dueAtMs: NOW_MS } as const;
  const live: LiveMessage = { message: message(), retried: 1, cancelRequested: false, standing };
  const explanation = explain(live, NOW_MS, held);
  expect(explanation).toMatchObject({ reason, dueAtMs: NOW_MS, retried: 1 });
  expect(explanation.sentence).toContain(part);
  expect(explanation.sentence).toContain('https://a.example');
});

test.for([
  ['a delayed message', { standing: { kind: 'waiting', dueAtMs: SOON_MS } }, 'delayed', '2026-01-01T00:01:00.000Z'],
  ['a planned retry', { standing: { kind: 'waiting', dueAtMs: SOON_MS }, retried: 2 }, 'retrying', 'retry 2'],
  ['a message that is due', { standing: { kind: 'waiting', dueAtMs: NOW_MS } }, 'due', 'a worker has room'],
  ['one in the line of its origin', { standing: { kind: 'parked', dueAtMs: NOW_MS } }, 'endpoint_busy', 'a.example'],
  ['a running attempt', { standing: { kind: 'claimed', claimedAtMs: NOW_MS } }, 'attempting', 'T00:00:00.000Z'],
  [
    'a cancel during an attempt',
    { standing: { kind: 'claimed', claimedAtMs: NOW_MS }, cancelRequested: true },
    'cancelling',
    'will not be retried',
  ],
] as const)('%s is explained', ([, changes, reason, part]) => {
  const live: LiveMessage = { message: message(), retried: 0, cancelRequested: false, ...changes };
  const explanation = explain(live, NOW_MS);
  expect(explanation.reason).toBe(reason);
  expect(explanation.sentence).toContain(part);
  expect(explanation.sentence).toMatch(/^[A-Z].*\.$/);
});
