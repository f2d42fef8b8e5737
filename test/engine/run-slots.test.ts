/** The capacity that messages of runs use, whose deliveries are the journal and not their own body. */
import { describe, expect, test } from 'vitest';
import { dispatchSaved, proposeState } from '../../src/engine/messages/intake.ts';
import type { Message } from '../../src/engine/model.ts';
import type { RunSettings } from '../../src/protocol/options/settings.ts';
import { type Bench, bench, to } from './dispatcher-bench.ts';
import { NOW_MS } from './fixtures.ts';

const run: RunSettings = {
  key: 1,
  id: 'wfr_a',
  createdAtMs: NOW_MS,
  url: 'https://a.example/wf',
  callType: 'step',
  features: ['LazyFetch'],
};

/** The result of a step with a body of `bytes`. */
function step(key: number, bytes: number): Message {
  return to('a', key, { body: new Uint8Array(bytes), settings: { dialect: 'upstash', maxRetries: 0, run } });
}

/** Accepts the messages of one publish, which start at once; `bytes` returns the size of each delivery. */
function accept({ dispatcher, store }: Bench, messages: Message[], bytes: number): void {
  const newMessages = messages.map((message) => proposeState({ message }, 1_000_000 + message.key, dispatcher));
  for (const [index, entry] of newMessages.entries()) {
    const { message, state } = entry;
    if (state.kind !== 'claimed') throw new Error(`there was no slot for ${message.key}`);
    store.add(message, state);
    dispatchSaved(entry, { state: 'claimed', journal: { position: 1 + index, bytes } }, dispatcher);
  }
}

describe('P10: the bytes counted for a message of a run', () => {
  test('are released when its delivery is fetched by the endpoint', async () => {
    const it = bench({ settings: { inFlightBytesMax: 1_000 } });
    accept(it, [step(2, 600)], 0);
    await it.clock.advanceBy(1_000);
    expect(it.sent()).toEqual([2]);
    expect(it.dispatcher.tryReserve('1 https://b.example', 1, 1)).toBe('reserved');
    expect(it.dispatcher.tryReserve('1 https://c.example', 900, 1)).toBe('reserved');
  });

  test('are those of its delivery: a journal without capacity waits, uncounted, until there is some', async () => {
    const it = bench({ settings: { inFlightBytesMax: 1_000 } });
    accept(it, [step(2, 10), step(3, 10)], 600);
    await it.clock.advanceBy(5);
    expect(it.sent()).toEqual([2]);
    expect(it.store.released).toEqual([3]);
    it.dispatcher.noteDue(NOW_MS); // like the store after a release
    await it.clock.advanceBy(1_000);
    expect(it.network.attempts).toMatchObject([{ retried: 0 }, { retried: 0, sentAtMs: NOW_MS + 10 }]);
    expect(it.store.rows.size).toBe(0);
    await it.dispatcher.drain(0); // ends only when no slot is taken
  });

  test('do not keep a journal from being sent that is larger than the whole capacity', async () => {
    const it = bench({ settings: { inFlightBytesMax: 1_000 } });
    accept(it, [step(2, 10)], 5_000);
    await it.clock.advanceBy(1_000);
    expect(it.sent()).toEqual([2]);
    expect(it.store.released).toEqual([]);
  });
});
