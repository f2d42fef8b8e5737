/** Where a new message stands, and what its being saved sets going. */
import { describe, expect, it } from 'vitest';
import { backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { Saved } from '../../src/engine/messages/accepted.ts';
import { type DeliverySlots, dispatchSaved, proposeState } from '../../src/engine/messages/intake.ts';
import type { Claimed, Message, NewMessage } from '../../src/engine/model.ts';
import type { MessageSettings } from '../../src/protocol/options/settings.ts';
import { message, NOW_MS } from './fixtures.ts';

const LINE = backlogKey(1, 'https://a.example');

/** Says what was asked of it, and answers what it is to. */
function slots(room: ReturnType<DeliverySlots['tryReserve']> = 'reserved') {
  const asked: unknown[][] = [];
  const started: Claimed[] = [];
  const note =
    (name: string) =>
    (...args: unknown[]) =>
      void asked.push([name, ...args]);
  const given: DeliverySlots = {
    worker: 'w',
    tryReserve: (...args) => {
      note('tryReserve')(...args);
      return room;
    },
    giveBack: note('giveBack'),
    start: (claimed) => {
      started.push(claimed);
    },
    noteDue: note('noteDue'),
    noteWaitingBacklog: note('noteWaitingBacklog'),
  };
  return { given, asked, started };
}

const BODY = new Uint8Array(3);
const due = (changes: Partial<Message> = {}): Message => message({ body: BODY, ...changes });

describe('a new message', () => {
  it('that is delayed waits for its time, and is given no slot', () => {
    const { given, asked } = slots();
    const { state } = proposeState({ message: due({ notBeforeMs: NOW_MS + 1 }) }, 9, given);
    expect(state).toEqual({ kind: 'due', dueAtMs: NOW_MS + 1 });
    expect(asked).toEqual([]);
  });

  it.each([
    ['reserved', { kind: 'claimed', claimToken: 9, worker: 'w' }],
    ['wait', { kind: 'origin', dueAtMs: NOW_MS }],
    ['none', { kind: 'due', dueAtMs: NOW_MS }],
  ] as const)('that is due stands where there is room for it: %s', (room, state) => {
    const { given, asked } = slots(room);
    expect(proposeState({ message: due() }, 9, given).state).toEqual(state);
    expect(asked).toEqual([['tryReserve', LINE, 3, 9]]);
  });

  it.each(['wait', 'none'] as const)('that was to go out long ago is due since it was accepted: %s', (room) => {
    const { given } = slots(room);
    expect(proposeState({ message: due({ notBeforeMs: 1_000 }) }, 9, given).state).toMatchObject({ dueAtMs: NOW_MS });
  });
});

describe('what was saved', () => {
  const claimed = (changes: Partial<Message> = {}): NewMessage => ({
    message: due(changes),
    state: { kind: 'claimed', claimToken: 9, worker: 'w' },
  });
  const waiting: NewMessage = { ...claimed(), state: { kind: 'due', dueAtMs: NOW_MS + 5 } };

  it('as claimed goes out, alone in the store unless it shares something or follows from what may', () => {
    const { given, asked, started } = slots();
    dispatchSaved(claimed(), { state: 'claimed' }, given);
    const plain = { message: due(), retried: 0, claimToken: 9, claimedAtMs: NOW_MS };
    expect(started).toEqual([{ ...plain, isAlone: true }]);
    expect(asked).toEqual([]);
    dispatchSaved(claimed(), { state: 'claimed' }, given, false);
    expect(started[1]).toEqual(plain);
  });

  it.each<Partial<MessageSettings>>([
    { queueName: 'q' },
    { flowControl: { key: 'k', parallelism: 1, periodS: 1 } },
    { run: { key: 1, id: 'r', createdAtMs: NOW_MS, url: 'https://a.example', callType: 'step', features: [] } },
  ])('as claimed with %j is not alone', (settings) => {
    const { given, started } = slots();
    dispatchSaved(
      claimed({ settings: { dialect: 'upstash', maxRetries: 3, ...settings } }),
      { state: 'claimed' },
      given,
    );
    expect(started[0]).not.toHaveProperty('isAlone');
  });

  it('as claimed takes its place in the journal along, and no body where the endpoint is to fetch that', () => {
    const { given, asked, started } = slots();
    const journal = { position: 2, bytes: 50 };
    dispatchSaved(claimed(), { state: 'claimed', journal } as Saved, given);
    dispatchSaved(claimed(), { state: 'claimed', journal: { ...journal, bytes: 0 } } as Saved, given);
    expect(started.map((each) => [each.journal?.bytes, each.message.body.length])).toEqual([
      [50, 3],
      [0, 0],
    ]);
    expect(asked).toEqual([]);
  });

  it.each([undefined, { state: 'queue' }, { state: 'due' }] as (Saved | undefined)[])(
    'not as claimed, as was proposed, but as %j gives its slot back',
    (saved) => {
      const { given, asked } = slots();
      dispatchSaved(claimed(), saved, given);
      expect(asked).toEqual([['giveBack', 9]]);
    },
  );

  it.each([
    [{ state: 'due' }, [['noteDue', NOW_MS + 5]]],
    [{ state: 'origin' }, [['noteWaitingBacklog', LINE]]],
    [{ state: 'flow' }, []],
    [undefined, []],
  ] as [Saved | undefined, unknown[]][])('as %j is told of to whoever looks for it', (saved, expected) => {
    const { given, asked } = slots();
    dispatchSaved(waiting, saved, given);
    expect(asked).toEqual(expected);
  });
});
