/** One embedded database under several threads: their shared state, and the notifications between them. */

import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { BatchOutcome } from '../../src/store/batches/batch.ts';
import { Batcher, ThreadClient } from '../../src/store/drivers/sqlite/batcher.ts';
import { joinSqliteStore } from '../../src/store/drivers/sqlite/join.ts';
import type { Reply } from '../../src/store/drivers/sqlite/messages.ts';
import { openSqliteStore, type SharedSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import type { WriteCommand } from '../../src/store/operations/all.ts';
import type { Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { testFolder } from '../support/folder.ts';
import { delivered, PROJECT, settlement, T0, World } from './conformance/world.ts';

describe('a database with two more threads', () => {
  let folder: string;
  let owner: SharedSqliteStore;
  let one: World;
  let other: World;
  const fatal: Error[] = [];
  const onFatal = (error: Error): void => {
    fatal.push(error);
  };
  const joined = async (): Promise<Store> => joinSqliteStore(await owner.connect(), { onFatal });

  beforeEach(async () => {
    folder = testFolder();
    owner = await openSqliteStore({ path: join(folder, 'waypost.db'), onFatal });
    one = await World.open(joined);
    other = await World.open(joined);
  });
  afterEach(async () => {
    await one.store.close();
    await other.store.close();
    await owner.close();
    expect(fatal.splice(0)).toEqual([]);
  });

  it('is one database: a message that one thread accepts is claimed once, by the first thread', async () => {
    const messages = await Promise.all(Array.from({ length: 20 }, () => one.accept()));
    const claims = await Promise.all([one.claim({ limit: 20 }), other.claim({ limit: 20 })]);
    const keys = claims.flatMap(({ claimed }) => claimed.map(({ message }) => message.key));
    expect(keys).toEqual(messages.map(({ key }) => key));
  });

  it('lists the changes of each thread to the others', async () => {
    const { message, claimToken } = await one.acceptClaimed();
    await other.store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 });
    expect(await one.statesOf(message)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  });

  it('notifies the other thread of waiting messages, unless it polls by then anyway', async () => {
    const heard: number[] = [];
    other.store.events.onDue = (dueAtMs) => heard.push(dueAtMs);
    await other.claim();
    await one.accept({ state: { kind: 'due', dueAtMs: T0 + 2_000 } });
    await one.accept({ state: { kind: 'due', dueAtMs: T0 + 3_000 } });
    await one.accept({ state: { kind: 'due', dueAtMs: T0 + 1_000 } });
    await other.store.ping(); // earlier notifications arrive before the response
    expect(heard).toEqual([T0 + 2_000, T0 + 1_000]);
    expect((await other.claim({}, T0 + 1_000)).nextDueAtMs).toBe(T0 + 2_000);
    await one.accept({ state: { kind: 'due', dueAtMs: T0 + 1_500 } });
    await other.store.ping();
    expect(heard).toEqual([T0 + 2_000, T0 + 1_000, T0 + 1_500]);
  });

  it('notifies the other thread of backlogs into which one has moved messages, once until they are empty', async () => {
    const heard: string[] = [];
    other.store.events.onWaitingBacklog = (line) => heard.push(line);
    const origin = 'https://busy.example';
    const line = backlogKey(PROJECT, origin);
    const inBacklog = { url: `${origin}/hook`, state: { kind: 'origin', dueAtMs: T0 } } as const;
    await other.claim();
    await one.accept(inBacklog);
    await one.accept(inBacklog);
    await other.store.ping();
    expect(heard).toEqual([line]);
    const { claimed, emptied } = await other.claim({ backlogsToServe: [line] });
    expect([claimed.length, emptied]).toEqual([2, [line]]);
    await one.accept({ url: inBacklog.url });
    await one.claim({ capacityByOrigin: { [origin]: 0 } }); // a thread without capacity leaves it to the others
    await other.store.ping();
    expect(heard).toEqual([line, line]);
  });

  it('notifies the other thread of claims that one has cancelled', async () => {
    const heard: number[] = [];
    other.store.events.onCancelled = (claimTokens) => heard.push(...claimTokens);
    const { message, claimToken } = await other.acceptClaimed();
    await one.store.messages.cancelById({ projectId: PROJECT, ids: [message.id], nowMs: T0 });
    await other.store.ping();
    expect(heard).toEqual([claimToken]);
  });

  it('continues for one thread when the other has closed', async () => {
    await other.store.close();
    await expect(other.accept()).rejects.toThrow(StoreUnavailable);
    expect((await one.claim()).claimed).toEqual([]);
  });

  it('responds to earlier requests before it closes', async () => {
    const { id, projectId } = await one.accept();
    const found = other.store.messages.find({ projectId, id, deliveredSinceMs: T0 });
    await other.store.close();
    expect((await found)?.id).toBe(id);
  });

  it('refuses everything, and reports it once, when the database thread has ended', async () => {
    const short = await openSqliteStore({ path: ':memory:', onFatal });
    const left = joinSqliteStore(await short.connect(), { onFatal });
    await short.close();
    await eventually('it to hear of it', () => fatal.length > 0);
    await expect(left.messages.reserveNumbers({ count: 1 })).rejects.toThrow(StoreUnavailable);
    await left.close();
    expect(fatal.splice(0).map(({ message }) => message)).toEqual(['the database thread has ended']);
  });
});

describe('the batcher of a database thread', () => {
  const runs: number[] = [];
  const replies: string[] = [];
  let arriving: (() => void)[] = [];
  let left: Omit<BatchOutcome, 'results'>;
  let batcher: Batcher;

  beforeEach(() => {
    runs.length = 0;
    replies.length = 0;
    arriving = [];
    left = { dueAtMs: null, othersDueAtMs: null, waitingBacklogs: [], cancelledClaims: [] };
    const runAll = async (commands: readonly WriteCommand[]): Promise<BatchOutcome> => {
      runs.push(commands.length);
      return { results: commands.map((_, index) => ({ kind: 'rejected', reason: String(index) })), ...left };
    };
    const hearAll = () => {
      for (const arrive of arriving.splice(0)) arrive();
    };
    batcher = new Batcher(runAll, hearAll, () => {});
  });

  const small = (count: number): WriteCommand[] =>
    Array.from({ length: count }, () => ({ method: 'reserveNumbers', args: { count: 1 } }));

  /** A thread that has claimed everything, and polls again at `looksAtMs`. */
  function callerNamed(name: string, looksAtMs: number | null = null): ThreadClient {
    const client = new ThreadClient((reply: Reply) => replies.push(`${name} ${described(reply)}`));
    const result = { claimed: [], waitingBacklogs: [], emptied: [], nextDueAtMs: looksAtMs, isLocked: false };
    client.recordClaims([{ method: 'claim' } as WriteCommand], [{ kind: 'result', result }]);
    batcher.join(client);
    return client;
  }

  function described(reply: Reply): string {
    if (reply.kind === 'notice') return `left ${[reply.dueAtMs, ...reply.waitingBacklogs]}`;
    if (reply.kind !== 'outcome') return reply.kind;
    const { results, dueAtMs } = reply.outcome;
    const reasons = results.map((result) => (result.kind === 'rejected' ? result.reason : result.kind));
    return `${reply.id}: ${reasons} due ${dueAtMs}`;
  }

  it('puts the waiting commands of all ports into one transaction, and returns to each port its own results', async () => {
    const [a, b] = [callerNamed('a'), callerNamed('b')];
    arriving.push(() => void batcher.submit({ client: b, id: 7, commands: small(1) }));
    await batcher.submit({ client: a, id: 5, commands: small(2) });
    expect(runs).toEqual([3]);
    expect(replies).toEqual(['a 5: 0,1 due null', 'b 7: 2 due null']);
  });

  it('ends a transaction with the batch that fills it, in order of arrival', async () => {
    const [a, b] = [callerNamed('a'), callerNamed('b')];
    arriving.push(() => {
      void batcher.submit({ client: b, id: 1, commands: small(50) });
      void batcher.submit({ client: b, id: 2, commands: small(1) });
    });
    await batcher.submit({ client: a, id: 1, commands: small(150) });
    expect(runs).toEqual([200, 1]);
  });

  it('notifies those who share a transaction of what it left unclaimed, and everyone else who polls later', async () => {
    const [a, b] = [callerNamed('a'), callerNamed('b'), callerNamed('c'), callerNamed('d', 10)];
    left = { ...left, othersDueAtMs: 20 };
    arriving.push(() => void batcher.submit({ client: b, id: 1, commands: small(1) }));
    await batcher.submit({ client: a, id: 1, commands: small(1) });
    expect(replies).toEqual(['a 1: 0 due null', 'b 1: 1 due null', 'a left 20', 'b left 20', 'c left 20']);
  });

  it('notifies a thread that was alone only of messages that its lanes released: it knows the others', async () => {
    const [a] = [callerNamed('a'), callerNamed('b')];
    left = { ...left, dueAtMs: 30, othersDueAtMs: 20, waitingBacklogs: ['1 https://x.example'] };
    await batcher.submit({ client: a, id: 1, commands: small(1) });
    expect(replies).toEqual(['a 1: 0 due 30', 'b left 20,1 https://x.example']);
  });

  it('forgets which backlogs a thread knows when they are very many, and notifies it of them again', async () => {
    const [a, b] = [callerNamed('a'), callerNamed('b')];
    const line = '1 https://x.example';
    const tellAgain = async () => {
      left = { ...left, waitingBacklogs: [line] };
      await batcher.submit({ client: a, id: 1, commands: small(1) });
      return replies.splice(0).filter((reply) => reply.startsWith('b'));
    };
    b.recordKnown([line]);
    expect(await tellAgain()).toEqual([]);
    for (let nth = 0; nth < 10_000; nth += 1) b.recordKnown([`1 https://${nth}.example`]);
    expect(await tellAgain()).toEqual(['b left ,1 https://x.example']);
    expect(await tellAgain()).toEqual([]);
  });

  it('responds to waiting requests although the maintenance of the database has failed', async () => {
    let upkeeps = 0;
    const shaken = new Batcher(
      async (commands) => ({ results: commands.map(() => ({ kind: 'rejected', reason: '' })), ...left }),
      () => {},
      () => {
        upkeeps += 1;
        throw new StoreUnavailable('the database is locked by another process');
      },
    );
    const a = callerNamed('a');
    const first = shaken.submit({ client: a, id: 1, commands: small(1) });
    void shaken.submit({ client: a, id: 2, commands: small(1) });
    await first;
    expect([upkeeps, replies]).toEqual([2, ['a 1:  due null', 'a 2:  due null']]);
  });
});
