import { describe, expect, it } from 'vitest';
import type { FailureCallbackState, Message, NewMessage, NewRecord } from '../../../src/engine/model.ts';
import type {
  ActiveRunFilter,
  DeadRunFilter,
  RetriedEntry,
  RunRetry,
} from '../../../src/engine/runs/dead/dead-run-store.ts';
import type { MessageSettings, RunSettings } from '../../../src/protocol/options/settings.ts';
import type { RunConfig } from '../../../src/workflow/model.ts';
import {
  bytes,
  delivered,
  eachWorld,
  lastFailure,
  type OpenStore,
  OTHER_PROJECT,
  PROJECT,
  settlement,
  T0,
} from './world.ts';

const URL = 'https://app.example/wf';

interface BeginOptions {
  url?: string;
  projectId?: number;
  createdAtMs?: number;
  settings?: Partial<MessageSettings>;
}

/** The entries of a journal and the DLQ of the runs that they belong to. */
export function deadRunsConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const store = () => world().store;

  const repeatCallback = (dlqId: string, message: NewMessage) =>
    store().deadRuns.repeatFailureCallback({ projectId: PROJECT, dlqId, message, nowMs: T0 });

  const configOf = (changes: Partial<RunConfig> = {}): RunConfig => ({
    ...{
      dialect: 'upstash',
      features: [],
      isKept: true,
      isRest: false,
      isUnknownSdk: false,
      header: {},
      maxRetries: 0,
    },
    ...changes,
  });

  /** The first message of a run, on its way into the store as claimed. */
  function first(id: string, options: BeginOptions = {}): { newMessages: NewMessage; claimToken: number } {
    const { url = URL, projectId = PROJECT, createdAtMs = T0, settings = {} } = options;
    const key = world().number();
    const claimToken = world().number();
    const run: RunSettings = { key, id, createdAtMs, url, callType: 'step', init: 'known', features: [] };
    const newMessages = world().message({
      ...{ key, url, projectId, createdAtMs, body: bytes(`payload of ${id}`) },
      settings: { run, ...settings },
      state: { kind: 'claimed', claimToken, worker: 'w1' },
    });
    newMessages.entry = { runKey: key, kind: 'initial', entryKey: '0', bytes: 100 };
    newMessages.run = { id, url, createdAtMs, config: configOf() };
    return { newMessages, claimToken };
  }

  async function begin(id: string, options?: BeginOptions): Promise<{ message: Message; claimToken: number }> {
    const { newMessages, claimToken } = first(id, options);
    expect(
      await store().messages.accept({ messages: [newMessages], nowMs: newMessages.message.createdAtMs }),
    ).toMatchObject([{ kind: 'accepted' }]);
    return { message: newMessages.message, claimToken };
  }

  function partOf({ settings: { run } }: Message): RunSettings {
    if (!run) throw new Error('not of a run');
    return run;
  }

  async function append(of: Message, entryKey: string): Promise<Message> {
    const newMessages = world().message({ url: URL, body: bytes(entryKey), settings: { run: partOf(of) } });
    newMessages.entry = { runKey: of.key, kind: 'step', entryKey, bytes: 50 };
    expect(await store().messages.accept({ messages: [newMessages], nowMs: T0 })).toMatchObject([{ kind: 'accepted' }]);
    return newMessages.message;
  }

  interface Failed {
    dlqId: string;
    message: Message;
    /** The failure callback. */
    told: { message: Message; claimToken: number };
  }

  /** Starts a run whose first message dies. */
  async function fail(id: string, failedAtMs = T0, options?: BeginOptions): Promise<Failed> {
    const { message, claimToken } = await begin(id, { createdAtMs: failedAtMs, ...options });
    const tellToken = world().number();
    const told = world().message({
      projectId: message.projectId,
      createdAtMs: failedAtMs,
      settings: { run: { ...partOf(message), callType: 'failureCall' } },
      state: { kind: 'claimed', claimToken: tellToken, worker: 'w1' },
    });
    const { key: runKey } = message;
    const failureCallbackKey = told.message.key;
    const ending = {
      projectId: PROJECT,
      runKey,
      runVersion: 1,
      state: 'RUN_FAILED',
      atMs: failedAtMs,
      failureCallbackKey,
    } as const;
    const change = { ...lastFailure(failedAtMs), ending, follows: [told] };
    expect(
      await store().messages.settle({ settlement: settlement(message, claimToken, change), nowMs: failedAtMs }),
    ).toMatchObject({
      kind: 'saved',
    });
    const dlqId = `${failedAtMs}-${message.key}`;
    return { dlqId, message, told: { message: told.message, claimToken: tellToken } };
  }

  async function tell({ told }: Failed, failureCallback: FailureCallbackState): Promise<void> {
    const response = { status: 200, header: { 'X-Said': ['yes'] }, body: bytes('said') };
    const change = {
      ...delivered(),
      events: [{ atMs: T0, state: 'DELIVERED', detail: { response } }] as const,
      failureCallback,
    };
    const result = await store().messages.settle({
      settlement: settlement(told.message, told.claimToken, { ...change, events: [...change.events] }),
      nowMs: T0,
    });
    expect(result).toMatchObject({ kind: 'saved' });
  }

  async function list(filter: DeadRunFilter = {}): Promise<string[]> {
    const page = await store().deadRuns.listDeadRuns({
      projectId: PROJECT,
      filter,
      page: { count: 100, order: 'latestFirst' },
    });
    return page.items.map(({ dlqId }) => dlqId);
  }

  describe('the DLQ', () => {
    it('has the payload of a failed run, the failed message without its body, and the last response', async () => {
      const failed = await fail('a');
      await tell(failed, 'success');
      const [dead] = await store().deadRuns.findDeadRuns({ projectId: PROJECT, dlqIds: [failed.dlqId] });
      expect(dead).toMatchObject({
        dlqId: failed.dlqId,
        run: { key: failed.message.key, projectId: PROJECT, id: 'a', url: URL, createdAtMs: T0, config: configOf() },
        message: { id: failed.message.id, body: new Uint8Array(0) },
        deadLetter: { failedAtMs: T0, responseStatus: 500 },
        payload: bytes('payload of a'),
        failureCallback: {
          state: 'success',
          response: { status: 200, header: { 'X-Said': ['yes'] }, body: bytes('said') },
        },
      });
    });

    it('is listed by failure time, filtered by the message that triggered the run, and by project', async () => {
      const a = await fail('a', T0 + 1, { settings: { labels: ['x'] } });
      const b = await fail('b', T0 + 2, { url: `${URL}/b` });
      await fail('c', T0 + 3, { projectId: OTHER_PROJECT });
      await world().acceptDead(T0 + 4);
      expect(await list()).toEqual([b.dlqId, a.dlqId]);
      expect(await list({ label: ['x'] })).toEqual([a.dlqId]);
      expect(await list({ url: [URL] })).toEqual([a.dlqId]);
      expect(await list({ runId: 'b', responseStatus: [500] })).toEqual([b.dlqId]);
      expect(await list({ runCreatedAtMs: T0 + 1 })).toEqual([a.dlqId]);
      expect(await list({ fromMs: T0 + 2 })).toEqual([b.dlqId]);
      expect(await list({ toMs: T0 + 1, responseStatus: [404] })).toEqual([]);
    });

    it('is listed apart from failed messages', async () => {
      await fail('a', T0 + 1);
      await world().acceptDead(T0 + 2);
      const { messages, runs, causes } = await world().store.backlog.readFailures({ projectId: PROJECT });
      expect([messages.count, runs.count]).toEqual([1, 1]);
      expect(causes).toEqual([{ responseStatus: 500, count: 2, runs: 1, lastAtMs: T0 + 2 }]);
    });

    it('is filtered by the state of the failure callback', async () => {
      const [a, b, c] = [await fail('a', T0 + 1), await fail('b', T0 + 2), await fail('c', T0 + 3)];
      await tell(a, 'success');
      await tell(b, 'fail');
      expect(await list({ failureCallback: ['inProgress'] })).toEqual([c.dlqId]);
      expect(await list({ failureCallback: ['success', 'fail'] })).toEqual([b.dlqId, a.dlqId]);
    });

    it('pages without skipping or repeating', async () => {
      const ids: string[] = [];
      for (const name of ['a', 'b', 'c']) ids.push((await fail(name, T0 + ids.length)).dlqId);
      const page = await store().deadRuns.listDeadRuns({
        projectId: PROJECT,
        filter: {},
        page: { count: 2, order: 'latestFirst' },
      });
      expect(page.items.map(({ dlqId }) => dlqId)).toEqual([ids[2], ids[1]]);
      const next = { count: 2, order: 'latestFirst', cursor: page.cursor ?? '' } as const;
      const rest = await store().deadRuns.listDeadRuns({ projectId: PROJECT, filter: {}, page: next });
      expect([rest.items.map(({ dlqId }) => dlqId), rest.cursor]).toEqual([[ids[0]], undefined]);
    });

    it('deletes entries of runs, but none of messages or of another project', async () => {
      const a = await fail('a');
      const other = await fail('b', T0, { projectId: OTHER_PROJECT });
      const { dlqId } = await world().acceptDead(T0);
      expect(
        await store().deadRuns.deleteDeadRuns({ projectId: PROJECT, dlqIds: [a.dlqId, other.dlqId, dlqId, 'x'] }),
      ).toBe(1);
      expect(await store().dead.deleteDead({ projectId: PROJECT, dlqIds: [other.dlqId] })).toBe(0);
      expect(await list()).toEqual([]);
      expect(await store().deadRuns.findDeadRuns({ projectId: OTHER_PROJECT, dlqIds: [other.dlqId] })).toHaveLength(1);
      expect(await store().dead.findDead({ projectId: PROJECT, dlqId })).toBeDefined();
    });
  });

  describe('active runs', () => {
    it('are found oldest first by the message that triggered them, including a prefix of their URL', async () => {
      const keys: number[] = [];
      for (const url of ['https://a.example/x', 'https://a.example/xy', 'https://b.example/']) {
        keys.push((await begin(url, { url, createdAtMs: T0 + keys.length })).message.key);
      }
      await begin('other', { projectId: OTHER_PROJECT });
      await fail('over');
      const find = async (filter: ActiveRunFilter, limit = 10, afterKey = -1) =>
        (await store().deadRuns.activeRunKeys({ projectId: PROJECT, filter, afterKey, limit })).keys;
      expect(await find({})).toEqual(keys);
      expect(await find({}, 2)).toEqual(keys.slice(0, 2));
      expect(await find({}, 10, keys[0])).toEqual(keys.slice(1));
      expect(await find({ urlPrefix: ['https://a.example/x'] })).toEqual(keys.slice(0, 2));
      expect(await find({ urlPrefix: ['https://A.example', 'https://b.'] })).toEqual(keys.slice(2));
      expect(await find({ url: ['https://a.example/x'] })).toEqual(keys.slice(0, 1));
      expect(await find({ host: ['a.example'], path: ['/xy'] })).toEqual(keys.slice(1, 2));
      expect(await find({ fromMs: T0 + 1, toMs: T0 + 1 })).toEqual(keys.slice(1, 2));
      expect(await find({ label: ['x'] })).toEqual([]);
    });
  });

  describe('a revived run', () => {
    /** A run whose first entry is a record, which shares the entries `shares` and has one message. */
    function revivalOf(failed: Failed, id: string, shares: Message[] = []): { revival: RunRetry; sent: NewMessage } {
      const { newMessages } = first(id);
      const { run, entry, message } = newMessages;
      if (!run || !entry) throw new Error('a first message begins a run');
      const begun: RetriedEntry = { kind: 'record', record: { message, entry } };
      const shared = shares.map((each, index): RetriedEntry => {
        return {
          kind: 'shared',
          key: each.key,
          entry: { runKey: message.key, kind: 'step', entryKey: `s${index}`, bytes: 50 },
        };
      });
      const sent = world().message({ url: URL, body: bytes('sent'), settings: { run: partOf(message) } });
      sent.entry = { runKey: message.key, kind: 'step', entryKey: 'sent', bytes: 40 };
      const journal: RetriedEntry[] = [begun, ...shared, { kind: 'message', message: sent }];
      const revival: RunRetry = {
        ...{ projectId: PROJECT, dlqId: failed.dlqId, run, runKey: message.key, journal },
        ...{ isFirst: true, isLast: true, waiters: [], invocations: [], children: [] },
      };
      return { revival, sent };
    }

    it('replaces the entry in the DLQ, and has the given journal', async () => {
      const { message, claimToken } = await begin('a');
      const step = await append(message, 's0');
      const ending = { projectId: PROJECT, runKey: message.key, runVersion: 1, state: 'RUN_FAILED', atMs: T0 } as const;
      await store().messages.settle({
        settlement: settlement(message, claimToken, { ...lastFailure(T0), ending }),
        nowMs: T0,
      });
      const failed = { dlqId: `${T0}-${message.key}`, message, told: { message, claimToken } };
      const { revival, sent } = revivalOf(failed, 'b', [step]);
      const result = await store().deadRuns.retryRun({ ...revival, nowMs: T0 });
      expect(result).toEqual({
        kind: 'retried',
        messages: [{ state: 'due', journal: { position: 2, bytes: 190 } }],
        children: [],
      });
      expect(await list()).toEqual([]);
      const successor = { id: 'b', createdAtMs: revival.run.createdAtMs };
      expect(await store().runs.findRun({ projectId: PROJECT, key: message.key })).toMatchObject({
        state: 'RUN_FAILED',
        config: { successor },
      });
      const run = await store().runs.findActiveRun({ projectId: PROJECT, id: 'b' });
      expect(run).toMatchObject({ state: 'RUN_STARTED', entries: 3 });
      expect(
        (await store().runs.readJournal({ projectId: 1, runKey: run?.key ?? 0 })).map(({ messageId }) => messageId),
      ).toEqual([expect.any(String), step.id, sent.message.id]);
      expect(await store().deadRuns.outlineJournal({ projectId: 1, runKey: run?.key ?? 0 })).toMatchObject([
        { position: 0, kind: 'initial', entryKey: '0' },
        { position: 1, kind: 'step', entryKey: 's0', key: step.key, bodyBytes: 2 },
        { position: 2, kind: 'step', entryKey: 'sent', key: sent.message.key },
      ]);
      const { claimed } = await world().claim();
      expect(claimed.map(({ message: { id }, journal }) => [id, journal])).toEqual([
        [sent.message.id, { position: 2, bytes: 190 }],
      ]);
    });

    it('waits for events and for the ends of runs that it invokes', async () => {
      const failed = await fail('a');
      const { revival } = revivalOf(failed, 'b');
      const { runKey } = revival;
      const record = (kind: 'wait' | 'invoke', entryKey: string): NewRecord => ({
        message: world().message({ url: URL, settings: { run: { ...partOf(failed.message), key: runKey } } }).message,
        entry: { runKey, kind, entryKey, bytes: 0 },
      });
      const child = first('child').newMessages;
      const wait = record('wait', 'w1');
      const invoke = record('invoke', 'i2');
      revival.journal.push(
        { kind: 'record', record: wait, event: 'WAITER_ADDED' },
        { kind: 'record', record: invoke, event: 'INVOKED' },
      );
      revival.waiters.push({ key: wait.message.key, eventId: 'e', deadlineMs: T0 + 5 });
      revival.invocations.push({ key: invoke.message.key, childKey: child.message.key });
      revival.children.push(child);
      expect(await store().deadRuns.retryRun({ ...revival, nowMs: T0 })).toMatchObject({
        kind: 'retried',
        children: [{ state: 'claimed' }],
      });
      expect((await store().runs.findRun({ projectId: PROJECT, key: child.message.key }))?.invokers).toEqual([
        invoke.message.key,
      ]);
      const { due } = await store().waiters.dueWaiters({ nowMs: T0 + 5, limit: 5 });
      expect(due).toMatchObject([{ eventId: 'e', deadlineMs: T0 + 5, record: { key: wait.message.key } }]);
    });

    it('is not created twice from one entry, nor while a run with its id is active', async () => {
      const failed = await fail('a');
      await begin('taken');
      expect(await store().deadRuns.retryRun({ ...revivalOf(failed, 'taken').revival, nowMs: T0 })).toEqual({
        kind: 'idTaken',
      });
      expect(await list()).toEqual([failed.dlqId]);
      expect(await store().deadRuns.retryRun({ ...revivalOf(failed, 'b').revival, nowMs: T0 })).toMatchObject({
        kind: 'retried',
      });
      expect(await store().deadRuns.retryRun({ ...revivalOf(failed, 'c').revival, nowMs: T0 })).toEqual({
        kind: 'missing',
      });
      expect(await store().runs.findActiveRun({ projectId: PROJECT, id: 'c' })).toBeUndefined();
    });

    it('keeps shared contents when everything else of the failed run is dropped', async () => {
      const { message, claimToken } = await begin('a');
      const step = await append(message, 's0');
      const ending = { projectId: PROJECT, runKey: message.key, runVersion: 1, state: 'RUN_FAILED', atMs: T0 } as const;
      await store().messages.settle({
        settlement: settlement(message, claimToken, { ...lastFailure(T0), ending }),
        nowMs: T0,
      });
      const { revival } = revivalOf({ dlqId: `${T0}-${message.key}`, message, told: { message, claimToken } }, 'b', [
        step,
      ]);
      await store().deadRuns.retryRun({ ...revival, nowMs: T0 });
      const afterMs = T0 + 1;
      const bounds = {
        logsBeforeMs: afterMs,
        deadBeforeMs: afterMs,
        minutesBeforeMs: 0,
        keysUsedBeforeMs: afterMs,
        nowMs: afterMs,
      };
      while (await store().retention.dropExpired({ ...bounds, rowsMax: 1_000 }));
      expect(await store().runs.findRun({ projectId: PROJECT, key: message.key })).toBeUndefined();
      const run = await store().runs.findActiveRun({ projectId: PROJECT, id: 'b' });
      expect(
        (await store().runs.readJournal({ projectId: 1, runKey: run?.key ?? 0 })).map(({ body }) =>
          Buffer.from(body).toString(),
        ),
      ).toEqual(['payload of b', 's0', 'sent']);
    });
  });

  describe('a run that is revived in chunks', () => {
    const SENT = 5;

    /** The chunks of a run: its first entry with the first messages, then one message each. */
    function piecesFor({ dlqId, message: of }: Failed, id = 'b', options: BeginOptions = {}): RunRetry[] {
      const { newMessages } = first(id);
      const { run, entry, message } = newMessages;
      if (!run || !entry) throw new Error('a first message begins a run');
      const { key: runKey } = message;
      const sent = Array.from({ length: SENT }, (_, index): RetriedEntry => {
        const { settings } = options;
        const step = world().message({ url: URL, settings: { run: { ...partOf(of), key: runKey, id }, ...settings } });
        step.entry = { runKey, kind: 'plan', entryKey: `p${index}`, bytes: 40 };
        return { kind: 'message', message: step };
      });
      const begun: RetriedEntry = { kind: 'record', record: { message, entry } };
      return [[begun, ...sent.slice(0, 2)], ...sent.slice(2).map((each) => [each])].map((journal, index, all) => ({
        ...{ projectId: PROJECT, dlqId, run, runKey, journal, isFirst: index === 0, isLast: index === all.length - 1 },
        ...{ waiters: [], invocations: [], children: [] },
      }));
    }

    const save = (piece: RunRetry | undefined, nowMs = T0) => {
      if (!piece) throw new Error('there is no such piece');
      return store().deadRuns.retryRun({ ...piece, nowMs });
    };

    async function saveAll(pieces: readonly RunRetry[], nowMs = T0): Promise<string> {
      for (const piece of pieces) {
        const { kind } = await save(piece, nowMs);
        if (kind !== 'retried') return kind;
      }
      return 'retried';
    }

    const listRuns = async () => {
      const page = { count: 10, order: 'latestFirst' } as const;
      const { items } = await store().runLogs.listRunHistories({ projectId: PROJECT, filter: {}, page });
      return items.map(({ run: { id, state } }) => `${id} ${state}`).toSorted();
    };

    async function cancelRest(nowMs: number): Promise<void> {
      while ((await store().runs.cancelRemaining({ nowMs })) === 'more');
    }

    const keysSent = (pieces: readonly RunRetry[]) =>
      pieces.flatMap(({ journal }) =>
        journal.flatMap((entry) => (entry.kind === 'message' ? [entry.message.message.key] : [])),
      );

    const claimedKeys = async () => (await world().claim()).claimed.map(({ message: { key } }) => key).toSorted();

    it('replaces the failed run with the last chunk, and has the journal of all chunks', async () => {
      const failed = await fail('a');
      const pieces = piecesFor(failed);
      expect(await saveAll(pieces.slice(0, -1))).toBe('retried');
      expect(await list()).toEqual([failed.dlqId]);
      expect(await store().runs.findActiveRun({ projectId: PROJECT, id: 'b' })).toBeUndefined();
      expect(await listRuns()).toEqual(['a RUN_FAILED']);
      expect(await save(pieces.at(-1))).toEqual({
        ...{ kind: 'retried', children: [] },
        messages: [{ state: 'due', journal: { position: SENT, bytes: 100 + SENT * 40 } }],
      });
      expect(await list()).toEqual([]);
      expect(await store().runs.findActiveRun({ projectId: PROJECT, id: 'b' })).toMatchObject({
        state: 'RUN_STARTED',
        entries: 1 + SENT,
      });
      expect(await listRuns()).toEqual(['a RUN_FAILED', 'b RUN_STARTED']);
      const outline = await store().deadRuns.outlineJournal({ projectId: 1, runKey: pieces[0]?.runKey ?? 0 });
      expect(outline.map(({ position, entryKey }) => `${position} ${entryKey}`)).toEqual([
        '0 0',
        '1 p0',
        '2 p1',
        '3 p2',
        '4 p3',
        '5 p4',
      ]);
    });

    it.each([
      ['due', {}],
      ['of a flow-control key', { settings: { flowControl: { key: 'k', parallelism: 9, periodS: 1 } } }],
      ['of a queue', { settings: { queueName: 'q' } }],
    ])('has none of its messages claimed before the last chunk: %s', async (_where, options: BeginOptions) => {
      await store().queues.saveQueue({ projectId: PROJECT, name: 'q', parallelism: 9, isPaused: false, nowMs: T0 });
      const pieces = piecesFor(await fail('a'), 'b', options);
      for (const piece of pieces) {
        expect(await claimedKeys()).toEqual([]);
        await save(piece);
      }
      expect(await claimedKeys()).toEqual(keysSent(pieces).toSorted());
    });

    it('is kept while the next chunk may arrive', async () => {
      const pieces = piecesFor(await fail('a'));
      await save(pieces[0]);
      const untilMs = await store().runs.cancelRemaining({ nowMs: T0 + 1 });
      if (untilMs === 'more') throw new Error('it was given up');
      await save(pieces[1], untilMs - 1);
      expect(await store().runs.cancelRemaining({ nowMs: untilMs })).toBe(untilMs - 1 + (untilMs - T0));
      expect(await saveAll(pieces.slice(2), untilMs)).toBe('retried');
      expect(await store().runs.cancelRemaining({ nowMs: untilMs + 3_600_000 })).toBe(Infinity);
      expect(await claimedKeys()).toEqual(keysSent(pieces).toSorted());
    });

    it.each([1, 2, 3])(
      'is cancelled when no chunk arrives after %i, and the failed run can be revived again',
      async (count) => {
        const failed = await fail('a');
        const pieces = piecesFor(failed);
        await saveAll(pieces.slice(0, count));
        const untilMs = await store().runs.cancelRemaining({ nowMs: T0 });
        if (untilMs === 'more') throw new Error('it was given up');
        await cancelRest(untilMs);
        expect(await save(pieces[count], untilMs)).toEqual({ kind: 'lost' });
        expect(await listRuns()).toEqual(['a RUN_FAILED', 'b RUN_CANCELED']);
        const again = piecesFor(failed, 'c');
        expect(await saveAll(again, untilMs)).toBe('retried');
        expect(await claimedKeys()).toEqual(keysSent(again).toSorted());
        expect(await store().runs.cancelRemaining({ nowMs: untilMs })).toBe(Infinity);
      },
    );

    it('is cancelled at once when the clock was set back so far that its time is out of range', async () => {
      const pieces = piecesFor(await fail('a'));
      await save(pieces[0]);
      await cancelRest(T0 - 3_600_000);
      expect(await save(pieces[1])).toEqual({ kind: 'lost' });
    });

    it('is created once by two concurrent commands, and the other one leaves nothing', async () => {
      const failed = await fail('a');
      const [one, other] = [piecesFor(failed, 'b'), piecesFor(failed, 'c')];
      await save(one[0]);
      await save(other[0]);
      expect(await saveAll(other.slice(1))).toBe('retried');
      expect(await saveAll(one.slice(1))).toBe('missing');
      await cancelRest(T0);
      expect(await listRuns()).toEqual(['a RUN_FAILED', 'b RUN_CANCELED', 'c RUN_STARTED']);
      expect(await claimedKeys()).toEqual(keysSent(other).toSorted());
    });

    it('is cancelled when a run with its id starts in between', async () => {
      const failed = await fail('a');
      const pieces = piecesFor(failed);
      await save(pieces[0]);
      const { message } = await begin('b', { createdAtMs: T0 + 1 });
      expect(await saveAll(pieces.slice(1))).toBe('idTaken');
      await cancelRest(T0);
      expect(await list()).toEqual([failed.dlqId]);
      expect(await store().runs.findActiveRun({ projectId: PROJECT, id: 'b' })).toMatchObject({ key: message.key });
      expect(await claimedKeys()).toEqual([]);
    });

    it('leaves nothing for longer than other cancelled runs when it is cancelled', async () => {
      const failed = await fail('a');
      await saveAll(piecesFor(failed).slice(0, 2));
      const untilMs = await store().runs.cancelRemaining({ nowMs: T0 });
      if (untilMs === 'more') throw new Error('it was given up');
      await cancelRest(untilMs);
      const bounds = { logsBeforeMs: untilMs + 1, deadBeforeMs: T0, minutesBeforeMs: 0, keysUsedBeforeMs: 0 };
      while (await store().retention.dropExpired({ ...bounds, nowMs: untilMs + 1, rowsMax: 1_000 }));
      expect(await listRuns()).toEqual(['a RUN_FAILED']);
    });
  });

  describe('a failure callback', () => {
    it('can be resent once it has failed, and is in progress from then on', async () => {
      const failed = await fail('a');
      const again = world().message({ settings: failed.told.message.settings });
      const repeat = () => repeatCallback(failed.dlqId, again);
      expect(await repeat()).toBe('notFailed');
      await tell(failed, 'fail');
      expect((await store().deadRuns.findFailureCallback({ projectId: PROJECT, dlqId: failed.dlqId }))?.id).toBe(
        failed.told.message.id,
      );
      expect(await repeat()).toEqual({ state: 'due' });
      expect((await store().deadRuns.findFailureCallback({ projectId: PROJECT, dlqId: failed.dlqId }))?.id).toBe(
        again.message.id,
      );
      expect(await list({ failureCallback: ['inProgress'] })).toEqual([failed.dlqId]);
      expect(
        await store().deadRuns.repeatFailureCallback({
          projectId: OTHER_PROJECT,
          dlqId: failed.dlqId,
          message: again,
          nowMs: T0,
        }),
      ).toBe('missing');
    });

    it('is cancelled while it is in progress: a waiting one at once, one in flight with its attempt', async () => {
      const failed = await fail('a');
      const cancel = () =>
        store().deadRuns.cancelFailureCallback({ projectId: PROJECT, dlqId: failed.dlqId, nowMs: T0 });
      expect(
        await store().deadRuns.cancelFailureCallback({ projectId: OTHER_PROJECT, dlqId: failed.dlqId, nowMs: T0 }),
      ).toBe('missing');
      expect(await cancel()).toBe('canceled');
      expect(await cancel()).toBe('notInProgress');
      expect(await list({ failureCallback: ['canceled'] })).toEqual([failed.dlqId]);
      await tell(failed, 'fail');
      const again = world().message({ settings: failed.told.message.settings });
      await repeatCallback(failed.dlqId, again);
      expect(await cancel()).toBe('canceled');
      expect((await world().claim()).claimed).toEqual([]);
    });
  });
}
