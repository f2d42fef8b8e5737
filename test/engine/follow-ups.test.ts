/** How the dispatcher handles the messages that follow from an attempt. */
import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/engine/model.ts';
import { keyOfMessageId } from '../../src/protocol/ids.ts';
import type { MessageSettings } from '../../src/protocol/options/settings.ts';
import { type Bench, bench, setReply, to } from './dispatcher-bench.ts';
import { NOW_MS } from './fixtures.ts';

const callback = { url: 'https://b.example/done', method: 'POST' as const, header: {} };
const flowControl = { key: 'k', rate: 1, periodS: 1 };
const failureCallback = { ...callback, url: 'https://c.example/failed' };

/** A message to `a` whose attempts are reported to `b`, and its death to `c`. */
function told(key: number, settings: Partial<MessageSettings> = {}): Message {
  return to('a', key, { settings: { dialect: 'upstash', maxRetries: 0, callback, failureCallback, ...settings } });
}

function attemptsTo({ network }: Bench, letter: string) {
  return network.attempts.filter(({ origin }) => origin === `https://${letter}.example`);
}

/** Takes the available numbers, so that the next one must be fetched. */
async function useUp({ numbers }: Bench): Promise<void> {
  for (;;) {
    const next = numbers.take(1);
    if (typeof next === 'number') continue;
    await expect(next).rejects.toThrow('the disk is full');
    return;
  }
}

/** The states in which the follow-ups were saved. */
function states({ store }: Bench): string[] {
  return store.offered.map(({ message, state }) => `${new URL(message.url).pathname} ${state.kind}`);
}

describe('a message that follows from an attempt', () => {
  test('is saved with the settle, already claimed, and starts without a claim', async () => {
    const it = bench();
    it.store.add(told(1));
    it.dispatcher.wake();
    await it.clock.advanceBy(5);
    const claimsBefore = it.store.claims.length;
    await it.clock.advanceBy(6);
    expect(states(it)).toEqual(['/done claimed']);
    expect(it.store.settlements[0]?.change.follows).toHaveLength(1);
    expect(attemptsTo(it, 'b')).toMatchObject([{ retried: 0, sentAtMs: NOW_MS + 10 }]);
    await it.clock.advanceBy(1_000);
    expect(it.store.claims.length).toBe(claimsBefore);
    expect(it.store.rows.size).toBe(0);
  });

  test('has a unique key, an id that contains it, and a unique claim token', async () => {
    const it = bench();
    setReply(it.network, 'https://a.example', { kind: 'answer', status: 500, afterMs: 10 });
    it.store.add(told(1_000_000));
    it.store.add(told(1_000_001));
    it.dispatcher.wake();
    await it.clock.advanceBy(1_000);
    const numbers = it.store.offered.flatMap(({ message, state }) => {
      expect(keyOfMessageId(message.id)).toBe(message.key);
      return state.kind === 'claimed' ? [message.key, state.claimToken] : [message.key];
    });
    const given = [...numbers, ...it.store.settlements.map(({ claimToken }) => claimToken)];
    expect(numbers).toHaveLength(8);
    expect(given.length - new Set(given).size).toBe(4); // the claims of the follow-ups, which are settled next
  });

  test('takes no numbers and does not change a settle when there is none', async () => {
    const it = bench();
    it.store.add(to('a', 1));
    it.dispatcher.wake();
    await it.clock.advanceBy(1_000);
    expect(it.store.settlements[0]?.change).not.toHaveProperty('follows');
  });

  test('waits in the backlog of its origin when that has its share', async () => {
    const it = bench({ settings: { inFlightPerOriginMax: 1 } });
    setReply(it.network, 'https://b.example', { kind: 'answer', status: 200, afterMs: 1_000 });
    it.store.add(to('b', 1));
    it.store.add(told(2));
    it.dispatcher.wake();
    await it.clock.advanceBy(50);
    expect(states(it)).toEqual(['/done origin']);
    await it.clock.advanceBy(1_000);
    expect(attemptsTo(it, 'b')).toHaveLength(2);
  });

  test('waits in the backlog when its source has the only slot, and starts after it', async () => {
    const it = bench({ settings: { inFlightMax: 1 } });
    it.store.add(told(1));
    it.dispatcher.wake();
    await it.clock.advanceBy(11);
    expect(states(it)).toEqual(['/done origin']);
    await it.clock.advanceBy(1_000);
    expect(attemptsTo(it, 'b')).toHaveLength(1);
    expect(it.store.rows.size).toBe(0);
  });

  test('is saved as waiting by a draining dispatcher, and not sent', async () => {
    const it = bench();
    it.store.add(told(1));
    it.dispatcher.wake();
    await it.clock.advanceBy(5);
    const drained = it.dispatcher.drain(10_000);
    await it.clock.advanceBy(20_000);
    await drained;
    expect(states(it)).toEqual(['/done due']);
    expect(it.store.rows.size).toBe(1);
    expect(attemptsTo(it, 'b')).toEqual([]);
  });
});

describe('a settle that does not save its following messages', () => {
  test('because it is stale, sends nothing and releases the slots', async () => {
    const it = bench({ settings: { inFlightMax: 3 } });
    it.store.add(told(1));
    it.dispatcher.wake();
    await it.clock.advanceBy(5);
    const row = it.store.rows.get(1);
    if (row) row.claimToken = 999_999;
    await it.clock.advanceBy(1_000);
    expect(states(it)).toEqual(['/done claimed']);
    expect(attemptsTo(it, 'b')).toEqual([]);
    await it.dispatcher.drain(0); // ends only when no slot is taken
  });

  test('because a cancel takes effect, sends nothing and releases the slots', async () => {
    const it = bench();
    setReply(it.network, 'https://a.example', { kind: 'answer', status: 500, afterMs: 10 });
    it.store.add(told(1, { maxRetries: 3 }));
    it.store.cancelRequested.add(1);
    it.dispatcher.wake();
    await it.clock.advanceBy(60_000);
    expect(states(it)).toEqual(['/done claimed']);
    expect(it.store.rows.size).toBe(0);
    expect(attemptsTo(it, 'b')).toEqual([]);
    await it.dispatcher.drain(0);
  });

  test('because the store refuses, is repeated with the same messages until it is saved', async () => {
    const it = bench();
    it.store.add(told(1));
    it.dispatcher.wake();
    await it.clock.advanceBy(5);
    it.store.refuses = true;
    await it.clock.advanceBy(60_000);
    expect(attemptsTo(it, 'b')).toEqual([]);
    it.store.refuses = false;
    await it.clock.advanceBy(6_000);
    expect(it.store.offered).toHaveLength(1);
    expect(attemptsTo(it, 'b')).toHaveLength(1);
    expect(it.store.rows.size).toBe(0);
  });

  test.for([
    ['the callback', told(1), 1],
    ['the next of the lane', to('a', 1, { settings: { dialect: 'upstash', maxRetries: 0, flowControl } }), 0],
  ] as const)('because the store has no numbers for %s, is saved later', async ([, message, callbacks]) => {
    const it = bench();
    it.store.add(message);
    it.dispatcher.wake();
    await it.clock.advanceBy(5);
    it.store.refuses = true;
    await useUp(it);
    await it.clock.advanceBy(60_000);
    expect(it.warnings).toContain('settle_failed');
    it.store.refuses = false;
    await it.clock.advanceBy(6_000);
    expect(it.store.rows.size).toBe(0);
    expect(attemptsTo(it, 'b')).toHaveLength(callbacks);
  });

  test.for([
    ['with numbers at hand', false],
    ['without numbers', true],
  ] as const)(
    'because the shutdown’s limit passes first, %s, leaves the source claimed and blocks nothing',
    async ([, hasUsedUp]) => {
      const it = bench();
      it.store.add(told(1));
      it.dispatcher.wake();
      await it.clock.advanceBy(5);
      it.store.refuses = true;
      if (hasUsedUp) await useUp(it);
      await it.clock.advanceBy(1_000);
      const drained = it.dispatcher.drain(1_000);
      await it.clock.advanceBy(60_000);
      await drained;
      expect(it.store.rows.get(1)?.claimToken).toBeDefined();
      expect(attemptsTo(it, 'b')).toEqual([]);
    },
  );
});
