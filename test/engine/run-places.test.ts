/** What do messages of runs take of the places for attempts, whose deliveries are the journal and not their own body? */
import { describe, expect, test } from 'vitest';
import type { JournalPlace, Message } from '../../src/engine/model.ts';
import { place, setGoing } from '../../src/engine/placement.ts';
import type { RunPart } from '../../src/protocol/settings.ts';
import { type Bench, bench, to } from './dispatcher-bench.ts';
import { NOW_MS } from './fixtures.ts';

const run: RunPart = {
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

/** Accepts `message`, which goes out at once, and is saved at `journal`. */
function accept({ dispatcher, store }: Bench, message: Message, journal: JournalPlace): void {
  const claimToken = 1_000_000 + message.key;
  const news = place({ message }, claimToken, dispatcher);
  expect(news.standing).toEqual({ kind: 'claimed', claimToken });
  store.add(message, { claimToken });
  setGoing(news, { standing: 'claimed', journal }, dispatcher);
}

describe('P10: what is counted for a message of a run', () => {
  test('is given back whole when its delivery was left to be fetched', async () => {
    const it = bench({ settings: { inFlightBytesMax: 1_000 } });
    accept(it, step(2, 600), { position: 1, bytes: 0 });
    await it.clock.advanceBy(1_000);
    expect(it.sent()).toEqual([2]);
    expect(it.dispatcher.tryReserve('https://b.example', 1)).toBe('reserved');
    expect(it.dispatcher.tryReserve('https://c.example', 900)).toBe('reserved');
  });
});
