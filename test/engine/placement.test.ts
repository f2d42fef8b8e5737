/** The initial state of a new message, and what follows once it is saved. */
import { describe, expect, it } from 'vitest';
import { backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { Saved } from '../../src/engine/messages/accepted.ts';
import { type DeliverySlots, dispatchSaved, proposeState } from '../../src/engine/messages/intake.ts';
import type { Claimed, Message, NewMessage } from '../../src/engine/model.ts';
import type { MessageSettings } from '../../src/protocol/options/settings.ts';
import { message, NOW_MS } from './fixtures.ts';

const LINE = backlogKey(1, 'https://a.example');

/** Records the calls, and returns the configured results. */
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
  it('that is delayed waits for its due time, without a slot', () => {
    const { given, asked } = slots();
    const { state } = proposeState({ message: due({ notBeforeMs: NOW_MS + 1 }) }, 9, given);
    expect(state).toEqual({ kind: 'due', dueAtMs: NOW_MS + 1 });
    expect(asked).toEqual([]);
  });

  it.each([
    ['reserved', { kind: 'claimed', claimToken: 9, worker: 'w' }],
    ['wait', { kind: 'origin', dueAtMs: NOW_MS }],
    ['none', { kind: 'due', dueAtMs: NOW_MS }],
  ] as const)('that is due gets a slot or a backlog: %s', (room, state) => {
    const { given, asked } = slots(room);
    expect(proposeState({ message: due() }, 9, given).state).toEqual(state);
    expect(asked).toEqual([['tryReserve', LINE, 3, 9]]);
  });

  it.each(['wait', 'none'] as const)('with a past due time is due from its acceptance: %s', (room) => {
    const { given } = slots(room);
    expect(proposeState({ message: due({ notBeforeMs: 1_000 }) }, 9, given).state).toMatchObject({ dueAtMs: NOW_MS });
  });
});

describe('a saved message', () => {
  const claimed = (changes: Partial<Message> = {}): NewMessage => ({
    message: due(changes),
    state: { kind: 'claimed', claimToken: 9, worker: 'w' },
  });
  const waiting: NewMessage = { ...claimed(), state: { kind: 'due', dueAtMs: NOW_MS + 5 } };

  it('that is claimed starts, marked as alone unless it has shared state or follows from a message that may', () => {
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
  ])('that is claimed with %j is not alone', (settings) => {
    const { given, started } = slots();
    dispatchSaved(
      claimed({ settings: { dialect: 'upstash', maxRetries: 3, ...settings } }),
      { state: 'claimed' },
      given,
    );
    expect(started[0]).not.toHaveProperty('isAlone');
  });

  it('that is claimed has its position in the journal, and no body if the endpoint fetches that', () => {
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
    'that was proposed as claimed but saved as %j releases its slot',
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
  ] as [Saved | undefined, unknown[]][])('as %j notifies the loop that looks for it', (saved, expected) => {
    const { given, asked } = slots();
    dispatchSaved(waiting, saved, given);
    expect(asked).toEqual(expected);
  });
});
