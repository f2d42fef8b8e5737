/** The client of a database thread. */
import { beforeEach, expect, it } from 'vitest';
import { DatabaseClient } from '../../src/store/drivers/sqlite/client.ts';
import type { OwnerRequest } from '../../src/store/drivers/sqlite/messages.ts';

let sent: { id: number; kind: string; projectId: number | undefined }[];
let turns: (() => void)[];
let client: DatabaseClient<OwnerRequest>;

beforeEach(() => {
  sent = [];
  turns = [];
  const send = (request: OwnerRequest): void => {
    if (request.kind === 'chunk') throw new Error('no batch has chunks here');
    const { projectId } = (request.kind === 'read' ? request.args : {}) as { projectId?: number };
    sent.push({ id: request.id, kind: request.kind, projectId });
  };
  const endOfTurn = () => new Promise<void>((resolve) => turns.push(resolve));
  client = new DatabaseClient<OwnerRequest>(send, () => {}, endOfTurn);
});

function list(projectId: number): Promise<unknown> {
  return client.read('listMinutes', { projectId, fromMs: 0, toMs: 1, count: 1 });
}

/** Ends the turn of the event loop. */
async function endTurn(): Promise<void> {
  for (const end of turns.splice(0)) end();
  await Promise.resolve();
}

it('has one long read in progress, until the end of the event-loop turn of its result', async () => {
  const [first] = [1, 1].map(list);
  expect(sent).toHaveLength(1);
  client.receive({ kind: 'result', id: 1, result: [] });
  await first;
  expect(sent).toHaveLength(1);
  await endTurn();
  expect(sent).toHaveLength(2);
});

it('sends the long reads of projects in rotation', async () => {
  for (const projectId of [1, 1, 1, 2]) void list(projectId);
  for (const id of [1, 4, 2]) {
    client.receive({ kind: 'result', id, result: [] });
    await endTurn();
  }
  expect(sent.map(({ projectId }) => projectId)).toEqual([1, 2, 1, 1]);
});

it('has 16 short reads in progress', () => {
  for (let nth = 0; nth < 20; nth += 1) void client.read('ping', {});
  expect(sent).toHaveLength(16);
});

it('sends the next read after one that failed', async () => {
  const [refused] = [1, 1].map(list);
  client.receive({ kind: 'failed', id: 1, failure: 'unavailable', reason: 'the database is locked' });
  await expect(refused).rejects.toThrow('the database is locked');
  await endTurn();
  expect(sent).toHaveLength(2);
});

it('ends the connection after the replies to all reads, including those that were not sent yet', async () => {
  for (let nth = 0; nth < 3; nth += 1) void list(1);
  void client.requestLast({ kind: 'close' });
  for (const id of [1, 2, 3]) {
    expect(sent.map(({ kind }) => kind)).not.toContain('close');
    client.receive({ kind: 'result', id, result: [] });
    await endTurn();
  }
  expect(sent.at(-1)?.kind).toBe('close');
});
