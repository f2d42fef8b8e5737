/** A large batch is sent to the database thread in small chunks, and is still one transaction. */
import { describe, expect, it } from 'vitest';
import { costOf, costOfMessages } from '../../src/store/batches/batch-queue.ts';
import { CHUNK_COST_MAX, joinChunks, type MessageChunk } from '../../src/store/drivers/sqlite/batch-chunks.ts';
import { DatabaseClient } from '../../src/store/drivers/sqlite/client.ts';
import type { Request } from '../../src/store/drivers/sqlite/messages.ts';
import { openSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import type { WriteCommand } from '../../src/store/operations/all.ts';
import type { StoredNewMessage } from '../../src/store/operations/messages/rows.ts';
import { endOfTurn } from '../../src/system/system.ts';
import { PROJECT, T0, World } from './conformance/world.ts';

const SMALL: WriteCommand = { method: 'reserveNumbers', args: { count: 1 } };

function acceptOf(count: number, bodyBytes: number, name: string): WriteCommand {
  const messages = Array.from(
    { length: count },
    (_, nth) =>
      ({ message: [`${name}${nth}`], content: [new Uint8Array(bodyBytes)], events: [] }) as unknown as StoredNewMessage,
  );
  return { method: 'accept', args: { messages, nowMs: T0 } };
}

/** A comparison byte by byte would take minutes. */
function shapeOf(commands: readonly WriteCommand[]): unknown {
  return commands.map(({ method, args }) => [
    method,
    'messages' in args &&
      args.messages.map(({ message, content }) => [message, (content as unknown as Uint8Array[])[0]?.length]),
  ]);
}

describe('a batch on its way to the thread', () => {
  it.each([
    ['many messages', () => [SMALL, acceptOf(1_000, 10, 'a'), SMALL, acceptOf(150, 10, 'b')]],
    ['large ones', () => [acceptOf(9, 3_000_000, 'a')]],
    ['messages of every size', () => [acceptOf(300, 20_000, 'a'), acceptOf(1, 9_000_000, 'b'), acceptOf(1, 1, 'c')]],
  ])('is sent in chunks of bounded size with a pause after each, and is complete there: %s', async (_, commandsOf) => {
    const commands = commandsOf();
    const sent: Request[] = [];
    const turns: (() => void)[] = [];
    const requests = new DatabaseClient<Request>(
      (request, handedOver = []) => sent.push(structuredClone(request, { transfer: [...handedOver] })),
      () => {},
      () => new Promise((resolve) => turns.push(resolve)),
    );
    const done = requests.run(commands);
    let sentBefore = 0;
    while (turns.length > 0) {
      expect(sent.length - sentBefore).toBeLessThanOrEqual(1);
      sentBefore = sent.length;
      turns.shift()?.();
      await Promise.resolve();
    }
    const pieces = sent.filter((request): request is MessageChunk => request.kind === 'chunk');
    const batch = sent.at(-1);
    if (batch?.kind !== 'batch') throw new Error('the last to go is the batch');
    for (const { messages } of pieces) {
      expect(messages.length === 1 || costOfMessages(messages) <= CHUNK_COST_MAX).toBe(true);
    }
    expect(batch.commands.reduce((sum, command) => sum + costOf(command), 0)).toBeLessThanOrEqual(
      commands.length * CHUNK_COST_MAX,
    );
    expect(pieces.length).toBeGreaterThan(1);
    expect(shapeOf(joinChunks(batch.commands, pieces))).toEqual(shapeOf(commands));
    requests.receive({
      kind: 'outcome',
      id: batch.id,
      outcome: { results: [], dueAtMs: null, othersDueAtMs: null, waitingBacklogs: [], cancelledClaims: [] },
    });
    await done;
  });

  it('is sent at once when it is small', () => {
    const sent: Request[] = [];
    const requests = new DatabaseClient<Request>(
      (request) => sent.push(request),
      () => {},
      endOfTurn,
    );
    void requests.run([SMALL, acceptOf(20, 1_000, 'a')]);
    expect(sent.map(({ kind }) => kind)).toEqual(['batch']);
  });
});

it('saves large batches of several callers in one transaction each, and returns to each its own results', async () => {
  const store = await openSqliteStore({
    path: ':memory:',
    onFatal: (error) => {
      throw error;
    },
    batch: { endOfTurn },
  });
  const world = await World.open(async () => store);
  const before = store.stats().batches;
  const newMessages = Array.from({ length: 3 }, () => Array.from({ length: 1_000 }, () => world.message()));
  const accepted = await Promise.all(newMessages.map((messages) => store.messages.accept({ messages, nowMs: T0 })));
  expect(store.stats().batches - before).toBe(3);
  expect(accepted.map((results) => results.filter(({ kind }) => kind === 'accepted').length)).toEqual([
    1_000, 1_000, 1_000,
  ]);
  for (const messages of newMessages) {
    const last = messages.at(-1)?.message;
    expect((last && (await world.find(last)))?.id).toBe(last?.id);
  }
  await store.close();
});

it('encodes the messages of a large batch, and decodes the rows of a page, with pauses', async () => {
  let turns = 0;
  const store = await openSqliteStore({
    path: ':memory:',
    onFatal: (error) => {
      throw error;
    },
    batch: {
      endOfTurn: () => {
        turns += 1;
        return endOfTurn();
      },
    },
  });
  const world = await World.open(async () => store);
  turns = 0;
  await store.messages.accept({ messages: Array.from({ length: 320 }, () => world.message()), nowMs: T0 });
  // One for each 32 messages, one for each of four chunks, and the one with which any batch starts.
  expect(turns).toBe(10 + 4 + 1);
  turns = 0;
  const page = await store.logs.listLogs({
    projectId: PROJECT,
    filter: {},
    page: { count: 320, order: 'latestFirst' },
  });
  // One for each 32 messages, and one after the result of any read.
  expect([page.items.length, turns]).toEqual([320, 10 + 1]);
  await store.close();
});
