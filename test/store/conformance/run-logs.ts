import { expect, it } from 'vitest';
import type { Change, LogEvent, Message, NewMessage, NewRecord } from '../../../src/engine/model.ts';
import type { RunEvent, RunEventFilter, RunFilter } from '../../../src/engine/runs/logs/log-store.ts';
import type { MessageSettings, RunSettings } from '../../../src/protocol/options/settings.ts';
import type { RunHistory } from '../../../src/workflow/history.ts';
import type { EndState, EntryKind, RunConfig } from '../../../src/workflow/model.ts';
import {
  bytes,
  delivered,
  eachWorld,
  lastFailure,
  type MessageOptions,
  type OpenStore,
  OTHER_PROJECT,
  PROJECT,
  retrying,
  settlement,
  T0,
} from './world.ts';

const WORKFLOW_URL = 'https://app.example/wf';
const OTHER_URL = 'https://app.example/other';
const MIB = 1024 * 1024;

interface BeginOptions extends MessageOptions {
  config?: Partial<RunConfig>;
  invoker?: NewRecord;
}

export function runLogsConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const store = () => world().store;

  /** A run that is to start, and its first message. */
  function beginning(id: string, { config, invoker, ...options }: BeginOptions = {}): NewMessage {
    const key = options.key ?? world().number();
    const { url = WORKFLOW_URL, createdAtMs = T0 } = options;
    const run: RunSettings = { key, id, createdAtMs, url, callType: 'step', init: 'known', features: [] };
    const newMessages = world().message({
      body: bytes('payload'),
      createdAtMs,
      ...{ ...options, key, url, settings: { run, ...options.settings } },
    });
    newMessages.entry = { runKey: key, kind: 'initial', entryKey: '0', bytes: newMessages.message.body.length };
    const fixed: RunConfig = {
      ...{
        dialect: 'upstash',
        features: [],
        isKept: true,
        isRest: false,
        isUnknownSdk: false,
        header: {},
        maxRetries: 3,
      },
      ...config,
    };
    newMessages.run = { id, url, createdAtMs, config: fixed, ...(invoker && { invoker }) };
    return newMessages;
  }

  async function begin(id: string, options: BeginOptions = {}): Promise<Message> {
    return accept(beginning(id, options));
  }

  async function accept(newMessages: NewMessage): Promise<Message> {
    expect(
      await store().messages.accept({ messages: [newMessages], nowMs: newMessages.message.createdAtMs }),
    ).toMatchObject([{ kind: 'accepted' }]);
    return newMessages.message;
  }

  function partOf({ settings: { run } }: Message): RunSettings {
    if (!run) throw new Error('not of a run');
    const { init: _init, ...part } = run;
    return part;
  }

  async function append(
    of: Message,
    kind: EntryKind,
    entryKey: string,
    body: Uint8Array | Record<string, unknown>,
    options: MessageOptions = {},
  ): Promise<Message> {
    const content = body instanceof Uint8Array ? body : bytes(JSON.stringify(body));
    const newMessages = world().message({ url: of.url, body: content, ...options, settings: { run: partOf(of) } });
    newMessages.entry = { runKey: of.key, kind, entryKey, bytes: content.length };
    return accept(newMessages);
  }

  /** An invocation in the journal of `of`, to be saved with the run of the key `childKey` that it starts. */
  function invocation(of: Message, stepId: number, childKey: number, childId: string): NewRecord {
    const result = { url: of.url, header: {}, settings: { dialect: 'upstash', maxRetries: 3 } as const };
    const settings: Partial<MessageSettings> = {
      run: partOf(of),
      invoke: { runKey: childKey, runId: childId, url: WORKFLOW_URL, createdAtMs: T0, result },
    };
    const body = bytes(JSON.stringify({ stepId, stepName: 'i', stepType: 'Invoke', concurrent: 1 }));
    const { message } = world().message({ url: of.url, body, settings });
    return { message, entry: { runKey: of.key, kind: 'invoke', entryKey: `i${stepId}`, bytes: 0 } };
  }

  async function end(of: Message, state: EndState, atMs: number, response?: Uint8Array): Promise<void> {
    const run = await store().runs.findRun({ projectId: of.projectId, key: of.key });
    const ending = {
      projectId: of.projectId,
      runKey: of.key,
      runVersion: run?.version ?? 0,
      state,
      atMs,
      ...(response && { response }),
    };
    expect(await store().runs.endRuns({ endings: [{ ending, follows: [] }], nowMs: atMs })).toMatchObject([
      { kind: 'ended' },
    ]);
  }

  const latestFirst = { count: 1000, order: 'latestFirst' } as const;
  const nameOf = ({ state, message }: RunEvent) => (message ? `${state} ${message.key}` : state);

  async function eventsOf(filter: RunEventFilter, projectId = PROJECT): Promise<RunEvent[]> {
    return (await store().runLogs.listRunEvents({ projectId, filter, page: latestFirst })).items;
  }

  async function namesOf(filter: RunEventFilter): Promise<string[]> {
    return (await eventsOf(filter)).map(nameOf);
  }

  async function keysOf(filter: RunFilter, projectId = PROJECT): Promise<number[]> {
    const { items } = await store().runLogs.listRunHistories({ projectId, filter, page: latestFirst });
    return items.map(({ run }) => run.key);
  }

  async function historyOf({ key }: Message, bodyBytesMax?: number): Promise<RunHistory> {
    const { items } = await store().runLogs.listRunHistories({
      projectId: PROJECT,
      filter: {},
      page: latestFirst,
      bodyBytesMax,
    });
    const history = items.find(({ run }) => run.key === key);
    if (!history) throw new Error(`run ${key} was not found`);
    return history;
  }

  it('lists events of runs and of their messages, newest first, without plain messages', async () => {
    const first = await begin('a', { callerIp: '1.2.3.4' });
    await world().accept({ createdAtMs: T0 + 1 });
    await end(first, 'RUN_CANCELED', T0 + 2);
    expect(await namesOf({})).toEqual([
      ...[`CANCELED ${first.key}`, `CANCEL_REQUESTED ${first.key}`, 'RUN_CANCELED', `CREATED ${first.key}`],
      'RUN_STARTED',
    ]);
    const events = await eventsOf({});
    expect(events.at(-1)?.run).toMatchObject({ id: 'a', url: WORKFLOW_URL, createdAtMs: T0, callerIp: '1.2.3.4' });
    expect(events.at(0)?.run).not.toHaveProperty('callerIp');
    expect(await eventsOf({}, OTHER_PROJECT)).toEqual([]);
  });

  it('finds events by every filter', async () => {
    const flowControl = { key: 'k', periodS: 1 };
    const a = await begin('a', { callerIp: '1.1.1.1', settings: { labels: ['x', 'y'] } });
    await end(a, 'RUN_SUCCESS', T0 + 1);
    const b = await begin('a', { createdAtMs: T0 + 9, url: OTHER_URL });
    const own = ['RUN_STARTED'];
    const onlyStarts: RunEventFilter = { state: ['RUN_STARTED'] };
    const starts = async (filter: RunEventFilter) => {
      const found = await eventsOf({ ...filter, ...onlyStarts });
      expect(found.map(({ state }) => state)).toEqual(found.flatMap(() => own));
      return found.map(({ run }) => run.createdAtMs);
    };
    expect(await starts({})).toEqual([T0 + 9, T0]);
    expect(await starts({ runId: ['a'] })).toEqual([T0 + 9, T0]);
    expect(await starts({ runId: ['a'], runCreatedAtMs: T0 })).toEqual([T0]);
    expect(await starts({ runCreatedAtMs: T0 + 9 })).toEqual([T0 + 9]);
    expect(await starts({ runUrl: [OTHER_URL] })).toEqual([T0 + 9]);
    expect(await starts({ path: ['/other'], host: ['app.example'] })).toEqual([T0 + 9]);
    expect(await starts({ label: ['y'] })).toEqual([T0]);
    expect(await starts({ callerIp: ['1.1.1.1'] })).toEqual([T0]);
    expect(await starts({ flowControlKey: ['k'] })).toEqual([]);
    expect(await starts({ fromMs: T0 + 2, toMs: T0 + 9 })).toEqual([T0 + 9]);
    expect(await starts({ runId: ['unknown'] })).toEqual([]);
    const c = await begin('c', { settings: { flowControl }, createdAtMs: T0 + 20 });
    expect(await starts({ flowControlKey: ['k'] })).toEqual([T0 + 20]);
    // Events of the run name its first message, but are not events of that message.
    expect(await namesOf({ messageId: [b.id] })).toEqual([`CREATED ${b.key}`]);
    expect(await namesOf({ messageId: [b.id], runId: ['c'] })).toEqual([]);
    expect(await namesOf({ state: ['CREATED'], runId: ['c'] })).toEqual([`CREATED ${c.key}`]);
  });

  it('returns every event once, whatever is written in between', async () => {
    for (let index = 0; index < 5; index++) await begin(`r${index}`, { createdAtMs: T0 + Math.floor(index / 2) });
    const before = await namesOf({});
    const walked: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store().runLogs.listRunEvents({
        projectId: PROJECT,
        filter: {},
        page: { ...latestFirst, count: 3, ...(cursor && { cursor }) },
      });
      walked.push(...page.items.map(nameOf));
      cursor = page.cursor;
      await begin(`late${walked.length}`, { createdAtMs: T0 + 50 });
    } while (cursor !== undefined);
    expect(walked).toEqual(before);
  });

  it('shows an invocation in both runs, and its result with the invoked run', async () => {
    const parent = await begin('parent');
    const childKey = world().number();
    const record = invocation(parent, 1, childKey, 'child');
    const child = await begin('child', { key: childKey, invoker: record, body: bytes('for the child') });
    await append(parent, 'step', 's1', { stepId: 1, stepType: 'Invoke', out: '{}' });
    const events = await eventsOf({});
    const started = events.find(({ state, run }) => state === 'RUN_STARTED' && run.id === 'child');
    expect(started?.run.invoker).toEqual({ id: 'parent', url: WORKFLOW_URL, createdAtMs: T0 });
    expect(events.find(({ state }) => state === 'INVOKED')?.run).toMatchObject({ id: 'parent' });
    const result = events.find(({ record: each }) => each !== undefined);
    expect(result).toMatchObject({ state: 'CREATED', record: { id: record.message.id } });
    expect(Buffer.from(result?.child?.body ?? []).toString()).toBe('for the child');
    const { entries } = await historyOf(parent);
    const invoked = entries.find(({ kind }) => kind === 'invoke');
    expect(Buffer.from(invoked?.child?.body ?? []).toString()).toBe('for the child');
    expect((await historyOf(child)).run.invoker).toMatchObject({ id: 'parent' });
    expect((await historyOf(parent)).run).not.toHaveProperty('invoker');
  });

  it('shows the end of a run with its result', async () => {
    const run = await begin('a');
    await end(run, 'RUN_SUCCESS', T0 + 5, bytes('"done"'));
    const [, ended, ...others] = await eventsOf({ state: ['RUN_SUCCESS', 'RUN_STARTED', 'CANCELED'] });
    expect([ended?.state, Buffer.from(ended?.run.response ?? []).toString()]).toEqual(['RUN_SUCCESS', '"done"']);
    for (const { run: other } of others) expect(other).not.toHaveProperty('response');
    expect((await historyOf(run)).run).toMatchObject({ state: 'RUN_SUCCESS', completedAtMs: T0 + 5 });
  });

  it('shows a failed run with its DLQ entry, and with the outcome of its failure function', async () => {
    const claimToken = world().number();
    const run = await accept(beginning('a', { state: { kind: 'claimed', claimToken, worker: 'w1' } }));
    const tells = world().message({
      createdAtMs: T0 + 1,
      state: { kind: 'claimed', claimToken: claimToken + 1000, worker: 'w1' },
      settings: { run: { ...partOf(run), callType: 'failureCall' } },
    });
    const ending = { projectId: PROJECT, runKey: run.key, runVersion: 1, state: 'RUN_FAILED', atMs: T0 + 1 } as const;
    const failed = {
      ...lastFailure(T0 + 1),
      ending: { ...ending, failureCallbackKey: tells.message.key },
      follows: [tells],
    };
    expect(
      await store().messages.settle({ settlement: settlement(run, claimToken, failed), nowMs: T0 + 1 }),
    ).toMatchObject({ kind: 'saved' });
    const dlqId = `${T0 + 1}-${run.key}`;
    expect((await eventsOf({ state: ['RUN_FAILED'] }))[0]?.run.dlqId).toBe(dlqId);
    const before = await historyOf(run);
    expect(before.run).toMatchObject({ state: 'RUN_FAILED', dlqId });
    expect(before.entries[0]).toMatchObject({ end: 'failed', failures: [{ error: 'status 500' }] });
    expect(before.failureFunction).toMatchObject({ state: 'inProgress', pending: { isInFlight: true } });
    const response = { status: 200, header: {}, body: bytes('noted') };
    const told = {
      ...delivered(T0 + 2),
      events: [{ atMs: T0 + 2, state: 'DELIVERED', detail: { response } } as const],
      failureCallback: 'success' as const,
    };
    await store().messages.settle({ settlement: settlement(tells.message, claimToken + 1000, told), nowMs: T0 + 2 });
    const { failureFunction } = await historyOf(run);
    expect(failureFunction).toMatchObject({ state: 'success', end: 'delivered', message: { key: tells.message.key } });
    expect(failureFunction?.response).toMatchObject({ status: 200, body: response.body });
    expect(failureFunction).not.toHaveProperty('pending');
    expect(await keysOf({ messageId: [tells.message.id] })).toEqual([run.key]);
  });

  it('lists runs by creation, newest first, page by page', async () => {
    const runs: number[] = [];
    for (let index = 0; index < 5; index++) runs.unshift((await begin(`r${index}`, { createdAtMs: T0 + index })).key);
    const first = await store().runLogs.listRunHistories({
      projectId: PROJECT,
      filter: {},
      page: { ...latestFirst, count: 2 },
    });
    expect(first.items.map(({ run }) => run.key)).toEqual(runs.slice(0, 2));
    const late = await begin('late', { createdAtMs: T0 + 100 });
    const rest = await store().runLogs.listRunHistories({
      projectId: PROJECT,
      filter: {},
      page: { ...latestFirst, cursor: first.cursor ?? '' },
    });
    expect(rest.items.map(({ run }) => run.key)).toEqual(runs.slice(2));
    expect(rest).not.toHaveProperty('cursor');
    expect(await keysOf({})).toEqual([late.key, ...runs]);
    expect(await keysOf({}, OTHER_PROJECT)).toEqual([]);
  });

  it('finds runs by every filter', async () => {
    const flowControl = { key: 'k', periodS: 1 };
    const { key: a, ...first } = await begin('a', { settings: { labels: ['x', 'y'], flowControl } });
    const step = await append({ key: a, ...first }, 'step', 's1', { stepId: 1 });
    await end({ key: a, ...first }, 'RUN_CANCELED', T0 + 1);
    const { key: b } = await begin('a', { createdAtMs: T0 + 9 });
    const { key: c } = await begin('c', { url: OTHER_URL, callerIp: '1.1.1.1', createdAtMs: T0 + 3 });
    expect(await keysOf({ runId: ['a'] })).toEqual([b, a]);
    expect(await keysOf({ runId: ['a'], state: ['RUN_STARTED'] })).toEqual([b]);
    expect(await keysOf({ state: ['RUN_CANCELED', 'RUN_FAILED'] })).toEqual([a]);
    const named = [
      { id: 'a', createdAtMs: T0 + 9 },
      { id: 'c', createdAtMs: T0 },
    ];
    expect(await keysOf({ runs: named })).toEqual([b]);
    expect(await keysOf({ runs: [] })).toEqual([]);
    expect(await keysOf({ runCreatedAtMs: T0 + 3 })).toEqual([c]);
    expect(await keysOf({ runUrl: [WORKFLOW_URL] })).toEqual([b, a]);
    expect(await keysOf({ path: ['/other'] })).toEqual([c]);
    expect(await keysOf({ label: ['y', 'z'] })).toEqual([a]);
    expect(await keysOf({ flowControlKey: ['k'] })).toEqual([a]);
    expect(await keysOf({ callerIp: ['1.1.1.1'] })).toEqual([c]);
    expect(await keysOf({ fromMs: T0 + 3, toMs: T0 + 8 })).toEqual([c]);
    expect(await keysOf({ messageId: [step.id] })).toEqual([a]);
    expect(await keysOf({ messageId: [step.id], runId: ['c'] })).toEqual([]);
    expect(await keysOf({ messageId: [step.id] }, OTHER_PROJECT)).toEqual([]);
    expect(await keysOf({ messageId: ['msg_unknown'] })).toEqual([]);
  });

  it('shows the journal of a run, and the outcome of each message', async () => {
    const claimToken = world().number();
    const run = await accept(beginning('a', { state: { kind: 'claimed', claimToken, worker: 'w1' } }));
    const sleeps = await append(run, 'step', 's1', { stepId: 1 }, { notBeforeMs: T0 + 60_000 });
    await store().messages.settle({
      settlement: settlement(run, claimToken, retrying(T0 + 1, T0 + 13, 1)),
      nowMs: T0 + 1,
    });
    const waiting = await historyOf(run);
    expect(waiting.entries.map(({ key, kind, entryKey, position }) => [key, kind, entryKey, position])).toEqual([
      [run.key, 'initial', '0', 0],
      [sleeps.key, 'step', 's1', 1],
    ]);
    expect(waiting.entries).toMatchObject([
      { pending: { dueAtMs: T0 + 13, isInFlight: false }, failures: [{ atMs: T0 + 1, error: 'connection refused' }] },
      { pending: { dueAtMs: T0 + 60_000, isInFlight: false }, failures: [] },
    ]);
    const { claimed } = await world().claim({}, T0 + 13);
    await store().messages.settle({
      settlement: settlement(run, claimed[0]?.claimToken ?? 0, delivered(T0 + 14)),
      nowMs: T0 + 14,
    });
    await end(run, 'RUN_CANCELED', T0 + 20);
    expect((await historyOf(run)).entries).toMatchObject([{ end: 'delivered' }, { end: 'canceled', failures: [] }]);
  });

  it('cuts bodies on request, but not those of steps, nor redacted ones', async () => {
    const long = 'x'.repeat(100);
    const shown = await begin('a', { body: bytes(long) });
    await append(shown, 'step', 's1', { stepId: 1, out: long });
    const hidden = await begin('b', { body: bytes(long), config: { redact: { body: true, headers: [] } } });
    const lengthsOf = ({ entries }: RunHistory) => entries.map(({ message }) => message.body.length);
    expect(lengthsOf(await historyOf(shown))[0]).toBe(100);
    const [payload, step] = lengthsOf(await historyOf(shown, 10));
    expect(payload).toBe(11);
    expect(step).toBeGreaterThan(100);
    expect(lengthsOf(await historyOf(hidden, 10))).toEqual([100]);
  });

  it('ends a page of runs early when it has many bytes, and never omits a step', async () => {
    const keys: number[] = [];
    for (let index = 0; index < 4; index++) {
      const run = await begin(`r${index}`, { createdAtMs: T0 + index });
      await append(run, 'step', 's1', new Uint8Array(6 * MIB));
      keys.unshift(run.key);
    }
    const page = await store().runLogs.listRunHistories({ projectId: PROJECT, filter: {}, page: latestFirst });
    expect(page.items.map(({ run, entries }) => [run.key, entries.length])).toEqual([
      [keys[0], 2],
      [keys[1], 2],
    ]);
    const { cursor = '' } = page;
    const rest = await store().runLogs.listRunHistories({
      projectId: PROJECT,
      filter: {},
      page: { ...latestFirst, cursor },
    });
    expect(rest.items.map(({ run }) => run.key)).toEqual(keys.slice(2));
  });

  it('shows the start of a failing response that is too long for a page', async () => {
    const run = await begin('r');
    const { claimed } = await world().claim({}, T0 + 10);
    const response = { status: 500, header: {}, body: new Uint8Array(17 * MIB) };
    const events: LogEvent[] = [{ atMs: T0 + 11, state: 'ERROR', detail: { error: 'failed', response } }];
    const change: Change = { next: { kind: 'waiting', dueAtMs: T0 + 99, retried: 1 }, events };
    await store().messages.settle({ settlement: settlement(run, claimed[0]?.claimToken ?? 0, change), nowMs: T0 + 11 });
    const shownBytes = async (bodyBytesMax?: number) =>
      (await historyOf(run, bodyBytesMax)).entries[0]?.failures[0]?.response?.body.length;
    expect(await shownBytes()).toBe(0);
    expect(await shownBytes(10)).toBe(11);
  });

  it('ends a page of events early when it has many bytes', async () => {
    for (let index = 0; index < 4; index++) await begin(`r${index}`, { body: new Uint8Array(6 * MIB) });
    const page = await store().runLogs.listRunEvents({
      projectId: PROJECT,
      filter: { state: ['CREATED'] },
      page: latestFirst,
    });
    expect(page.items).toHaveLength(2);
    expect(page.cursor).toBeDefined();
  });
}
