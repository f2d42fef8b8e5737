/** What the logs of runs are read from (workflow.md 17.3, 18): the rows themselves, whoever wrote them. */
import { Buffer } from 'node:buffer';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LogState, Message, RunLogState } from '../../src/engine/model.ts';
import type { RunEventFilter, RunFilter } from '../../src/engine/run-log-store.ts';
import { mintMessageId } from '../../src/protocol/ids.ts';
import type { MessageSettings, RunPart } from '../../src/protocol/settings.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { runRead } from '../../src/store/reads.ts';
import { CONTENT_COLUMNS, codeOfLogState, encodeNewMessage } from '../../src/store/sql/rows.ts';
import { ENTRY_KIND, RUN_STATE } from '../../src/store/sql/runs/run-rows.ts';
import { type Connection, SqlStore } from '../../src/store/store.ts';
import type { RunHistory } from '../../src/workflow/history.ts';
import type { EntryKind, RunConfig, RunState } from '../../src/workflow/model.ts';

const T0 = 1_800_000_000_000;
const PROJECT = 1;
const WORKFLOW_URL = 'https://app.example/wf';

let driver: SqliteDriver;
let store: SqlStore;
let seq = 0;

beforeEach(async () => {
  driver = new SqliteDriver({ path: ':memory:' });
  await migrate(driver);
  const connection: Pick<Connection, 'read'> = { read: (method, args) => runRead(driver, method, args) };
  store = new SqlStore(connection as Connection);
  seq = 0;
});

afterEach(() => driver.close());

interface RunOptions extends Partial<Pick<Message, 'projectId' | 'callerIp' | 'body' | 'url'>> {
  id?: string;
  createdAtMs?: number;
  state?: RunState;
  config?: Partial<RunConfig>;
  settings?: Partial<MessageSettings>;
}

async function insert(table: string, row: Record<string, string | number | Uint8Array | null>): Promise<void> {
  await driver.transaction((tx) => tx.insertMany(table, Object.keys(row), [Object.values(row)]));
}

/** Saves a run of the key `key` with its first message. */
async function begin(key: number, options: RunOptions = {}): Promise<RunPart> {
  const {
    id = `wfr_${key}`,
    createdAtMs = T0 + key,
    state = 'RUN_STARTED',
    url = WORKFLOW_URL,
    projectId = PROJECT,
  } = options;
  const part: RunPart = { key, id, createdAtMs, url, callType: 'step', features: [] };
  const config: RunConfig = {
    ...{
      dialect: 'upstash',
      features: [],
      isKept: true,
      isRest: false,
      isUnknownSdk: false,
      header: {},
      maxRetries: 3,
    },
    ...options.config,
  };
  await insert('runs', {
    ...{ key, project_id: projectId, id, url, created_at_ms: createdAtMs, state: RUN_STATE[state] },
    ...{ version: 1, config: JSON.stringify(config), entries: 0, journal_bytes: 100 },
    ...{ completed_at_ms: state === 'RUN_STARTED' ? null : createdAtMs + 1000 },
  });
  await append(part, key, 'initial', '0', options.body ?? 'payload', {
    ...options,
    settings: { run: { ...part, init: 'known' }, ...options.settings },
  });
  return part;
}

/** Saves an entry of a journal, a record or a message. */
async function append(
  run: RunPart,
  key: number,
  kind: EntryKind,
  slot: string,
  body: unknown,
  options: RunOptions = {},
): Promise<void> {
  await save(run, key, body, options);
  const [row] = await driver.read((queries) =>
    queries.query<{ n: number }>('select count(*) as n from journal where run_key = ?', [run.key]),
  );
  await insert('journal', {
    ...{ run_key: run.key, position: row?.n ?? 0, kind: ENTRY_KIND[kind], key, slot, at_ms: T0 },
  });
}

async function save(run: RunPart, key: number, body: unknown, options: RunOptions): Promise<void> {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const message: Message = {
    key,
    id: idOf(key),
    projectId: options.projectId ?? PROJECT,
    url: run.url,
    origin: 'https://app.example',
    method: 'POST',
    header: {},
    body: bytes,
    createdAtMs: T0,
    notBeforeMs: T0,
    ...(options.callerIp !== undefined && { callerIp: options.callerIp }),
    settings: { dialect: 'upstash', maxRetries: 3, run, ...options.settings },
  };
  const { content } = encodeNewMessage({ message, standing: { kind: 'waiting', dueAtMs: T0 }, events: [] });
  await driver.transaction((tx) => tx.insertMany('contents', CONTENT_COLUMNS, [content]));
}

function idOf(key: number): string {
  return mintMessageId(key, (count) => new Uint8Array(count).fill(key));
}

async function log(
  runKey: number | null,
  key: number,
  state: LogState | RunLogState,
  atMs = T0,
  detail?: Record<string, string | number | Uint8Array>,
): Promise<void> {
  seq += 1;
  const code = codeOfLogState(state);
  await insert('logs', { project_id: PROJECT, at_ms: atMs, seq, message_key: key, state: code, run_key: runKey });
  if (detail) await insert('log_details', { seq, ...detail });
}

const latestFirst = { count: 1000, order: 'latestFirst' } as const;

async function eventsOf(filter: RunEventFilter): Promise<string[]> {
  const { items } = await store.listRunEvents(PROJECT, filter, latestFirst);
  return items.map(({ state, message }) => (message ? `${state} ${message.key}` : state));
}

async function runsOf(filter: RunFilter, projectId = PROJECT): Promise<number[]> {
  const { items } = await store.listRunHistories(projectId, filter, latestFirst);
  return items.map(({ run }) => run.key);
}

async function historyOf(key: number, bodyBytesMax?: number): Promise<RunHistory> {
  const { items } = await store.listRunHistories(PROJECT, { runId: [`wfr_${key}`] }, latestFirst, bodyBytesMax);
  const history = items.find(({ run }) => run.key === key);
  if (!history) throw new Error(`run ${key} was not found`);
  return history;
}

test('lists events of runs and of their messages, newest first, and none of plain messages', async () => {
  await begin(1, { callerIp: '1.2.3.4' });
  await log(1, 1, 'RUN_STARTED');
  await log(1, 1, 'CREATED');
  await log(null, 50, 'CREATED');
  await log(1, 1, 'ERROR', T0 + 5, { error: 'refused' });
  const { items } = await store.listRunEvents(PROJECT, {}, latestFirst);
  expect(items.map(({ state, message, run }) => [state, message?.key, run.callerIp])).toEqual([
    ['ERROR', 1, undefined],
    ['CREATED', 1, undefined],
    ['RUN_STARTED', undefined, '1.2.3.4'],
  ]);
  expect(items[0]).toMatchObject({
    run: { id: 'wfr_1', url: WORKFLOW_URL, createdAtMs: T0 + 1 },
    detail: { error: 'refused' },
  });
});

test('events are found by all that workflow.md 17.3 names', async () => {
  await begin(1, {
    state: 'RUN_SUCCESS',
    settings: { labels: ['a'], flowControl: { key: 'k', periodS: 1 } },
    callerIp: '1.1.1.1',
  });
  await begin(2, { id: 'wfr_1', createdAtMs: T0 + 9, url: 'https://app.example/other' });
  await log(1, 1, 'RUN_STARTED', T0);
  await log(1, 1, 'CREATED', T0 + 1);
  await log(2, 2, 'RUN_STARTED', T0 + 2);
  await log(2, 2, 'CREATED', T0 + 3);
  const second = ['CREATED 2', 'RUN_STARTED'];
  const first = ['CREATED 1', 'RUN_STARTED'];
  expect(await eventsOf({ runId: ['wfr_1'] })).toEqual([...second, ...first]);
  expect(await eventsOf({ runId: ['wfr_1'], runCreatedAtMs: T0 + 9 })).toEqual(second);
  expect(await eventsOf({ runCreatedAtMs: T0 + 9 })).toEqual(second);
  expect(await eventsOf({ runUrl: [WORKFLOW_URL] })).toEqual(first);
  expect(await eventsOf({ path: ['/other'] })).toEqual(second);
  expect(await eventsOf({ host: ['app.example'] })).toEqual([...second, ...first]);
  expect(await eventsOf({ label: ['a'] })).toEqual(first);
  expect(await eventsOf({ flowControlKey: ['k'], callerIp: ['1.1.1.1'] })).toEqual(first);
  expect(await eventsOf({ state: ['RUN_STARTED'], runUrl: [WORKFLOW_URL] })).toEqual(['RUN_STARTED']);
  expect(await eventsOf({ state: ['CREATED'] })).toEqual(['CREATED 2', 'CREATED 1']);
  // Events of the run name its first message, and are none of that message.
  expect(await eventsOf({ messageId: [idOf(1)] })).toEqual(['CREATED 1']);
  expect(await eventsOf({ messageId: [idOf(1)], runUrl: ['https://app.example/other'] })).toEqual([]);
  expect(await eventsOf({ fromMs: T0 + 1, toMs: T0 + 2 })).toEqual(['RUN_STARTED', 'CREATED 1']);
  expect(await eventsOf({ runId: ['wfr_unknown'] })).toEqual([]);
});

test('a cursor visits every event once, and is absent at the end', async () => {
  await begin(1);
  for (let index = 0; index < 7; index++) await log(1, 1, 'ACTIVE', T0 + Math.floor(index / 3));
  const seen: number[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.listRunEvents(PROJECT, {}, { count: 2, order: 'latestFirst', ...(cursor && { cursor }) });
    seen.push(...page.items.map(({ atMs }) => atMs - T0));
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect(seen).toEqual([2, 1, 1, 1, 0, 0, 0]);
});

test('the result of an invocation is shown with the run that was invoked, that of a wait with its time', async () => {
  const parent = await begin(1);
  const child = await begin(2, { body: Buffer.from('for the child') });
  const result = { url: WORKFLOW_URL, header: {}, settings: { dialect: 'upstash', maxRetries: 3 } as const };
  const invoke = { runKey: 2, runId: child.id, url: WORKFLOW_URL, createdAtMs: child.createdAtMs, result };
  await append(parent, 3, 'invoke', 'i1', { stepId: 1, stepType: 'Invoke' }, { settings: { invoke } });
  await append(parent, 4, 'step', 's1', { stepId: 1, stepType: 'Invoke', out: '{}' });
  await insert('invocations', { run_key: 2, key: 3, parent_key: 1 });
  await log(1, 1, 'INVOKED');
  await log(2, 2, 'RUN_STARTED');
  await log(1, 4, 'CREATED');
  const { items } = await store.listRunEvents(PROJECT, {}, latestFirst);
  expect(items.map(({ state }) => state)).toEqual(['CREATED', 'RUN_STARTED', 'INVOKED']);
  expect(items[0]?.record?.settings.invoke).toMatchObject({ runId: 'wfr_2' });
  expect(Buffer.from(items[0]?.child?.body ?? []).toString()).toBe('for the child');
  expect(items[1]?.run.invoker).toEqual({ id: 'wfr_1', url: WORKFLOW_URL, createdAtMs: T0 + 1 });
  expect(items[2]?.run).not.toHaveProperty('invoker');
});

test('the end of a run says what it returned, or where it is in the DLQ', async () => {
  await begin(1, { state: 'RUN_SUCCESS' });
  await begin(2, { state: 'RUN_FAILED' });
  await driver.transaction(async (tx) => {
    await tx.run('update runs set response = ? where key = 1', [Buffer.from('"done"')]);
    await tx.run('update runs set dead_key = 2 where key = 2');
  });
  await insert('dead', {
    project_id: PROJECT,
    failed_at_ms: T0 + 7,
    key: 2,
    retried: 0,
    response_status: 500,
    run_key: 2,
  });
  for (const state of ['RUN_STARTED', 'RUN_SUCCESS'] as const) await log(1, 1, state);
  for (const state of ['RUN_STARTED', 'RUN_FAILED'] as const) await log(2, 2, state);
  const { items } = await store.listRunEvents(PROJECT, {}, latestFirst);
  expect(
    items.map(({ state, run }) => [state, run.dlqId, run.response && Buffer.from(run.response).toString()]),
  ).toEqual([
    ['RUN_FAILED', `${T0 + 7}-2`, undefined],
    ['RUN_STARTED', undefined, undefined],
    ['RUN_SUCCESS', undefined, '"done"'],
    ['RUN_STARTED', undefined, undefined],
  ]);
});

test('lists runs by their creation, newest first, page by page', async () => {
  for (let key = 1; key <= 5; key++) await begin(key);
  await begin(6, { projectId: 2 });
  const first = await store.listRunHistories(PROJECT, {}, { count: 2, order: 'latestFirst' });
  expect(first.items.map(({ run }) => run.key)).toEqual([5, 4]);
  const { cursor = '' } = first;
  await begin(7, { createdAtMs: T0 + 100 });
  const second = await store.listRunHistories(PROJECT, {}, { count: 3, order: 'latestFirst', cursor });
  expect(second.items.map(({ run }) => run.key)).toEqual([3, 2, 1]);
  expect(second).not.toHaveProperty('cursor');
  expect(await runsOf({}, 2)).toEqual([6]);
});

test('runs are found by all that workflow.md 17.3 names', async () => {
  const part = await begin(1, { settings: { labels: ['a', 'b'], flowControl: { key: 'k', periodS: 1 } } });
  await begin(2, { id: 'wfr_1', createdAtMs: T0 + 9, state: 'RUN_FAILED' });
  await begin(3, { url: 'https://app.example/other', callerIp: '1.1.1.1', createdAtMs: T0 + 3 });
  await append(part, 4, 'step', 's1', { stepId: 1 });
  await save(part, 5, 'tells of a failure', {});
  await log(2, 5, 'CREATED');
  expect(await runsOf({ runId: ['wfr_1'] })).toEqual([2, 1]);
  expect(await runsOf({ runId: ['wfr_1'], state: ['RUN_STARTED'] })).toEqual([1]);
  expect(
    await runsOf({
      runs: [
        { id: 'wfr_1', createdAtMs: T0 + 9 },
        { id: 'wfr_3', createdAtMs: T0 },
      ],
    }),
  ).toEqual([2]);
  expect(await runsOf({ runCreatedAtMs: T0 + 1 })).toEqual([1]);
  expect(await runsOf({ runUrl: [WORKFLOW_URL] })).toEqual([2, 1]);
  expect(await runsOf({ path: ['/other'] })).toEqual([3]);
  expect(await runsOf({ label: ['b', 'z'] })).toEqual([1]);
  expect(await runsOf({ flowControlKey: ['k'] })).toEqual([1]);
  expect(await runsOf({ callerIp: ['1.1.1.1'] })).toEqual([3]);
  expect(await runsOf({ state: ['RUN_FAILED', 'RUN_CANCELED'] })).toEqual([2]);
  expect(await runsOf({ messageId: [idOf(4)] })).toEqual([1]);
  expect(await runsOf({ messageId: [idOf(5)] })).toEqual([2]);
  expect(await runsOf({ messageId: [idOf(9)] })).toEqual([]);
  expect(await runsOf({ fromMs: T0 + 3, toMs: T0 + 8 })).toEqual([3]);
  expect(await runsOf({ messageId: [idOf(4)] }, 2)).toEqual([]);
});

test('a run comes with its journal, and with what became of each message', async () => {
  const part = await begin(1, { callerIp: '1.2.3.4' });
  await append(part, 2, 'step', 's1', { stepId: 1 });
  await append(part, 3, 'step', 's2', { stepId: 2 });
  await log(1, 1, 'ERROR', T0 + 1, { error: 'status 500', response_status: 500, response_body: Buffer.from('no') });
  await log(1, 1, 'RETRY', T0 + 1);
  await log(1, 1, 'DELIVERED', T0 + 2);
  await log(1, 2, 'CANCELED', T0 + 3);
  await insert('messages', {
    ...{ key: 3, project_id: PROJECT, origin: 'https://app.example', due_at_ms: T0 + 60, bytes: 0, retried: 0 },
    ...{ line: 1, run_key: 1, journal_position: 2 },
  });
  const { run, entries } = await historyOf(1);
  expect(run).toMatchObject({ key: 1, id: 'wfr_1', state: 'RUN_STARTED', callerIp: '1.2.3.4' });
  expect(entries.map(({ key, kind, slot, position }) => [key, kind, slot, position])).toEqual([
    [1, 'initial', '0', 0],
    [2, 'step', 's1', 1],
    [3, 'step', 's2', 2],
  ]);
  expect(entries[0]).toMatchObject({ end: 'delivered', failures: [{ atMs: T0 + 1, error: 'status 500' }] });
  expect(entries[1]).toMatchObject({ end: 'canceled', failures: [] });
  expect(entries[2]).toMatchObject({ standing: { dueAtMs: T0 + 60, isInFlight: false }, failures: [] });
});

test('a failed run comes with what its failure function answered', async () => {
  const part = await begin(1, { state: 'RUN_FAILED' });
  await save({ ...part, callType: 'failureCall' }, 2, 'report', {});
  await driver.transaction((tx) => tx.run('update runs set failure_key = 2, failure_state = 2 where key = 1'));
  await log(1, 2, 'DELIVERED', T0, { response_status: 200, response_body: Buffer.from('noted') });
  const { failureFunction } = await historyOf(1);
  expect(failureFunction).toMatchObject({
    state: 'success',
    end: 'delivered',
    answer: { status: 200 },
    message: { key: 2 },
  });
});

test('bodies come cut where that is asked for, but for steps and for what is shown by its hash', async () => {
  const long = 'x'.repeat(100);
  const part = await begin(1, { body: Buffer.from(long) });
  await append(part, 2, 'step', 's1', { stepId: 1, out: long });
  await begin(3, { body: Buffer.from(long), config: { redact: { body: true, headers: [] } } });
  const lengthsOf = ({ entries }: RunHistory) => entries.map(({ message }) => message.body.length);
  expect(lengthsOf(await historyOf(1))).toEqual([100, expect.any(Number)]);
  const [payload, step] = lengthsOf(await historyOf(1, 10));
  expect(payload).toBe(11);
  expect(step).toBeGreaterThan(100);
  expect(lengthsOf(await historyOf(3, 10))).toEqual([100]);
});

test('a page ends early rather than hold very many bytes, and never omits a step', async () => {
  const body = Buffer.alloc(6 * 1024 * 1024);
  for (const key of [1, 2, 3, 4]) {
    const part = await begin(key);
    await append(part, key + 10, 'fromCallback', 'f1', body);
    await driver.transaction((tx) => tx.run('update runs set journal_bytes = ? where key = ?', [body.length, key]));
  }
  const page = await store.listRunHistories(PROJECT, {}, latestFirst);
  expect(page.items.map(({ run, entries }) => [run.key, entries.length])).toEqual([
    [4, 2],
    [3, 2],
  ]);
  expect(page.cursor).toBeDefined();
});
