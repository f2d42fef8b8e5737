/** The asking end of a database thread. */
import { expect, it } from 'vitest';
import { DatabaseClient } from '../../src/store/drivers/sqlite/client.ts';
import type { Request } from '../../src/store/drivers/sqlite/messages.ts';

it('passes on one read answer in each turn of the event loop, however many arrive together', async () => {
  const turns: (() => void)[] = [];
  const ids: number[] = [];
  const client = new DatabaseClient<Request>({
    send: (request) => {
      if ('id' in request) ids.push(request.id);
    },
    onFatal: () => {},
    endOfTurn: () => new Promise<void>((resolve) => turns.push(resolve)),
  });
  const answered: number[] = [];
  const reads = [0, 1, 2].map((nth) => client.read('ping', {}).then(() => answered.push(nth)));
  for (const id of ids) client.receive({ kind: 'answer', id, answer: undefined });
  for (const [nth, read] of reads.entries()) {
    await read;
    expect(answered).toHaveLength(nth + 1);
    turns.shift()?.();
  }
  expect(answered).toEqual([0, 1, 2]);
});
