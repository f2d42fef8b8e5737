/** New messages on their way into the store: the reservations for them, and their results. */
import { expect, test } from 'vitest';
import type { Saved } from '../../src/engine/messages/accepted.ts';
import { type DeliverySlots, FROM_CLIENT, Intake } from '../../src/engine/messages/intake.ts';
import type { Message, NewMessage } from '../../src/engine/model.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { Numbers } from '../../src/engine/workers/numbers.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { message, NOW_MS } from './fixtures.ts';

/** Has capacity for everything. `trace`: the uses of slots, in order; `reported`: the keys reported as saved. */
function bench(reserveNumbers: () => Promise<number> = async () => 100) {
  const trace: string[] = [];
  const slots: DeliverySlots = {
    worker: 'w',
    tryReserve: (_line, _bytes, claimToken) => {
      trace.push(`reserve ${claimToken}`);
      return 'reserved';
    },
    giveBack: (claimToken) => trace.push(`give back ${claimToken}`),
    start: ({ claimToken, isAlone = false }) => trace.push(`start ${claimToken}${isAlone ? ' alone' : ''}`),
    noteDue: () => trace.push('due'),
    noteWaitingBacklog: () => trace.push('wait'),
  };
  const numbers = new Numbers({ messages: { reserveNumbers } });
  const services = { numbers, clock: new SimulatedClock(NOW_MS), randomness: new SeededRandom(1) };
  const reported: number[] = [];
  const reports = { accepted: ({ message: { key } }: NewMessage) => reported.push(key) };
  return { intake: new Intake({ ...services, reports, settings: ENGINE_SETTINGS }, slots), trace, reported };
}

const drafts = [{ message: message({ key: 1 }) }, { message: message({ key: 2 }) }];
const asTheyCome = (saved: readonly (Saved | undefined)[]) => saved;

test('messages saved as claimed start, and the slots of the others are free again', async () => {
  const { intake, trace } = bench();
  const answer: (Saved | undefined)[] = [undefined, { state: 'claimed' }];
  const save = async () => {
    trace.push('save');
    return answer;
  };
  expect(await intake.save(drafts, save, asTheyCome)).toBe(answer);
  expect(trace).toEqual(['reserve 100', 'reserve 101', 'save', 'give back 100', 'start 101 alone']);
});

test('saved messages are reported, but not those that were refused or too late for their run', async () => {
  const { intake, reported } = bench();
  const three = [...drafts, { message: message({ key: 3 }) }];
  const saved: (Saved | undefined)[] = [undefined, { state: 'due' }, { state: 'dropped' }];
  await intake.save(three, async () => saved, asTheyCome);
  expect(reported).toEqual([2]);
});

test('all slots are free again when nothing was saved', async () => {
  const { intake, trace, reported } = bench();
  const save = () => Promise.reject(new StoreUnavailable('the disk is full'));
  await expect(intake.save(drafts, save, asTheyCome)).rejects.toThrow('the disk is full');
  expect(trace.slice(2)).toEqual(['give back 100', 'give back 101']);
  expect(reported).toEqual([]);
});

test('no slot is taken while the store assigns no numbers', async () => {
  const { intake, trace } = bench(() => Promise.reject(new StoreUnavailable('the disk is full')));
  await expect(intake.save(drafts, async () => [], asTheyCome)).rejects.toThrow(StoreUnavailable);
  expect(trace).toEqual([]);
});

test('commands without messages are saved without numbers', async () => {
  let questions = 0;
  const { intake, trace } = bench(() => {
    questions += 1;
    return Promise.reject(new StoreUnavailable('the disk is full'));
  });
  expect(
    await intake.save(
      [],
      async (newMessages) => newMessages,
      () => [],
    ),
  ).toEqual([]);
  expect([questions, trace]).toEqual([0, []]);
});

test('a message that follows from one with shared state is not marked as alone', async () => {
  const { intake, trace } = bench();
  const claimed: Saved = { state: 'claimed' };
  await intake.save(drafts, async () => [claimed, claimed], asTheyCome, { mayBeAlone: false });
  expect(trace.slice(2)).toEqual(['start 100', 'start 101']);
});

test('once it is closed, clients are refused and leave no slot taken; messages of the server itself are saved', async () => {
  const { intake, trace } = bench();
  const save = async (): Promise<Saved[]> => [{ state: 'claimed' }, { state: 'claimed' }];
  await intake.save(drafts, save, asTheyCome, FROM_CLIENT);
  expect(trace.splice(0).slice(2)).toEqual(['start 100 alone', 'start 101 alone']);
  intake.close();
  await expect(intake.save(drafts, save, asTheyCome, FROM_CLIENT)).rejects.toMatchObject({ status: 503 });
  expect(trace.splice(0).slice(2)).toEqual(['give back 102', 'give back 103']);
  await intake.save(drafts, save, asTheyCome);
  expect(trace.slice(2)).toEqual(['start 104 alone', 'start 105 alone']);
});

test('following messages become separate messages, each with a key and an id', async () => {
  const { intake } = bench();
  const { key: _key, id: _id, ...followUp } = message();
  const made = await intake.draftsOf([followUp, { ...followUp, body: new Uint8Array(3) }]);
  expect(made.map((draft): Partial<Message> => ({ ...draft.message, id: '' }))).toEqual([
    { ...followUp, key: 100, id: '' },
    { ...followUp, key: 101, id: '', body: new Uint8Array(3) },
  ]);
  expect(new Set(made.map((draft) => draft.message.id)).size).toBe(2);
});
