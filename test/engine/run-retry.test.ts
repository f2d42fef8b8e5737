import { beforeEach, describe, expect, it } from 'vitest';
import type { Draft } from '../../src/engine/messages/accept.ts';
import type { EntryKind, Message, MessageKey } from '../../src/engine/model.ts';
import type { EntryOutline, RunOverride, RunRetry } from '../../src/engine/runs/dead/dead-run-store.ts';
import { type ChildRun, type FailedRunData, retryOf } from '../../src/engine/runs/dead/run-retry.ts';
import type { MessageSettings, ResultMessage, RunSettings } from '../../src/protocol/options/settings.ts';
import { entryBytesOf } from '../../src/workflow/journal.ts';
import type { Run, RunConfig } from '../../src/workflow/model.ts';

const NOW = 2_000_000;
const THEN = 1_000_000;
const URL = 'https://app.example/wf';

const CONFIG: RunConfig = {
  dialect: 'upstash',
  features: ['LazyFetch'],
  isKept: true,
  isRest: false,
  isUnknownSdk: false,
  header: { 'X-User': ['u'] },
  maxRetries: 3,
  labels: ['old'],
};

const PART: RunSettings = {
  key: 100,
  id: 'wfr_old',
  createdAtMs: THEN,
  url: URL,
  callType: 'step',
  features: ['LazyFetch'],
};

function runOf(config: Partial<RunConfig> = {}, key = 100): Run {
  return {
    key,
    projectId: 1,
    id: key === 100 ? 'wfr_old' : 'wfr_child',
    url: key === 100 ? URL : 'https://app.example/child',
    createdAtMs: THEN,
    state: 'RUN_FAILED',
    version: 1,
    config: { ...CONFIG, ...config },
    entries: 1,
    messageId: 'msg_old',
    invokers: [],
  };
}

function messageOf(key: MessageKey, settings: Partial<MessageSettings> = {}, changes: Partial<Message> = {}): Message {
  return {
    key,
    id: `msg_${key}`,
    projectId: 1,
    url: URL,
    origin: 'https://app.example',
    method: 'POST',
    header: { 'X-Own': ['o'] },
    body: Buffer.from(`body of ${key}`),
    createdAtMs: THEN,
    notBeforeMs: THEN,
    settings: { dialect: 'upstash', maxRetries: 3, run: PART, ...settings },
    ...changes,
  };
}

const result: ResultMessage = { url: URL, header: {}, settings: { dialect: 'upstash', maxRetries: 3, run: PART } };

let nextKey = 500;
beforeEach(() => {
  nextKey = 500;
});

/** `entries`: kind, entry key, and the message if it is restarted. */
function piecesFrom(
  entries: readonly [EntryKind, string, Message?][],
  override: RunOverride = {},
  { config = {}, children = [] as ChildRun[], entriesMax = 100 } = {},
): RunRetry<Draft>[] {
  const journal = entries.map(([kind, entryKey], position): EntryOutline => {
    return { position, kind, entryKey, key: 100 + position, bodyBytes: 30 };
  });
  const messages = new Map(entries.flatMap(([, , message], position) => (message ? [[100 + position, message]] : [])));
  const remains: FailedRunData = {
    dlqId: '7-8',
    run: runOf(config),
    journal,
    unfinished: new Set([...messages.keys()].filter((key) => key !== 100 || entries.length === 1)),
    messages: new Map([[100, messageOf(100)], ...messages]),
    children: new Map(children.map((child) => [child.run.key, child])),
  };
  const context = {
    ...{ nowMs: NOW, random: (count: number) => new Uint8Array(count), lazyAboveBytes: 1_000 },
    nextKey: () => nextKey++,
  };
  return [...retryOf(remains, override, context, entriesMax)];
}

function reviveFrom(...args: Parameters<typeof piecesFrom>): RunRetry<Draft> {
  const [whole] = piecesFrom(...args);
  if (!whole) throw new Error('a run has a piece');
  return whole;
}

function sentOf({ journal }: RunRetry<Draft>): Draft[] {
  return journal.flatMap((entry) => (entry.kind === 'message' ? [entry.message] : []));
}

describe('a run that replaces a failed one', () => {
  it('shares the recorded entries, and makes its start and the unsent messages again', () => {
    const revival = reviveFrom([
      ['initial', '0'],
      ['step', 's1'],
      ['step', 's2', messageOf(102)],
    ]);
    expect(revival.run).toMatchObject({ url: URL, createdAtMs: NOW, config: CONFIG });
    const { id, createdAtMs } = runOf();
    expect(revival.run.config.predecessor).toEqual({ id, createdAtMs });
    expect(revival.run.id).toMatch(/^wfr_/);
    expect(revival.journal.map(({ kind }) => kind)).toEqual(['record', 'shared', 'message']);
    const [first, second, third] = revival.journal;
    expect(first).toMatchObject({
      record: { message: { key: 500 }, entry: { runKey: 500, kind: 'initial', entryKey: '0' } },
    });
    expect(second).toMatchObject({ key: 101, entry: { runKey: 500, kind: 'step', entryKey: 's1' } });
    expect(third).toMatchObject({
      message: {
        message: {
          key: 501,
          createdAtMs: NOW,
          notBeforeMs: NOW,
          body: Buffer.from('body of 102'),
          header: { 'X-Own': ['o'], 'X-User': ['u'] },
          settings: {
            run: { key: 500, id: revival.run.id, createdAtMs: NOW, url: URL, callType: 'step' },
            labels: ['old'],
          },
        },
        entry: { runKey: 500, kind: 'step', entryKey: 's2', lazyAboveBytes: 1_000 },
      },
    });
  });

  it('is sent its start when it has no other entries, like a restart', () => {
    const revival = reviveFrom([['initial', '0', messageOf(100)]], { runId: 'mine', delayMs: 5_000 });
    expect(revival.run.id).toBe('mine');
    expect(sentOf(revival).map(({ message }) => [message.key, message.notBeforeMs])).toEqual([[500, NOW + 5_000]]);
  });

  it('has the replaced headers in all of its messages, if the trigger sets them', () => {
    const flowControl = { key: 'k', parallelism: 1, periodS: 1 };
    const revival = reviveFrom(
      [
        ['initial', '0'],
        ['step', 's1', messageOf(101)],
      ],
      {
        maxRetries: 9,
        labels: ['new'],
        flowControl,
      },
    );
    expect(revival.run.config).toMatchObject({ maxRetries: 9, labels: ['new'], flowControl });
    expect(sentOf(revival)[0]?.message.settings).toMatchObject({ maxRetries: 9, labels: ['new'], flowControl });
  });

  it('leaves a message the settings of its step, and replaces the others', () => {
    const run = { ...PART, stepSettings: { retryDelayExpression: '7' } };
    const revival = reviveFrom(
      [
        ['initial', '0'],
        ['stepConfig', 'h1', messageOf(101, { retryDelayExpression: '7', run })],
      ],
      { maxRetries: 9, retryDelayExpression: '8' },
    );
    expect(sentOf(revival)[0]?.message.settings).toMatchObject({ maxRetries: 9, retryDelayExpression: '7' });
  });

  it('replaces them in sent messages, if each has its own', () => {
    const own = messageOf(101, {
      retryDelayExpression: '7',
      failureCallback: { url: URL, method: 'POST', header: {} },
    });
    const revival = reviveFrom(
      [
        ['initial', '0'],
        ['step', 's1', own],
      ],
      { maxRetries: 9 },
      { config: { isKept: false } },
    );
    expect(sentOf(revival)[0]?.message.settings).toMatchObject({
      maxRetries: 9,
      retryDelayExpression: '7',
      failureCallback: { url: URL },
    });
  });

  it('leaves each message of such a run everything that is not replaced, and sets everything that is', () => {
    const own = {
      maxRetries: 1,
      retryDelayExpression: '7',
      flowControl: { key: 'k', parallelism: 1, periodS: 1 },
      labels: ['own'],
      failureCallback: { url: URL, method: 'POST' as const, header: {} },
    };
    const others: Required<Pick<RunOverride, keyof typeof own>> = {
      maxRetries: 9,
      retryDelayExpression: '8',
      flowControl: { key: 'new', parallelism: 2, periodS: 2 },
      labels: ['new'],
      failureCallback: { url: `${URL}/new`, method: 'POST', header: {} },
    };
    const made = (override: RunOverride, callType: RunSettings['callType'] = 'step') => {
      const message = messageOf(101, { ...own, run: { ...PART, callType } });
      const revival = reviveFrom(
        [
          ['initial', '0'],
          ['step', 's1', message],
        ],
        override,
        { config: { isKept: false } },
      );
      return sentOf(revival)[0]?.message.settings;
    };
    expect(made({})).toMatchObject(own);
    expect(made(others)).toMatchObject(others);
    expect(made(others, 'toCallback')).toMatchObject(own);
  });

  it('makes a call again unchanged, and its result with the settings of the run', () => {
    const callback = { url: URL, method: 'POST' as const, header: { 'X-Own': ['c'] } };
    const call = messageOf(101, { run: { ...PART, callType: 'toCallback' }, maxRetries: 0, callback });
    const revival = reviveFrom(
      [
        ['initial', '0'],
        ['toCallback', 'c1', call],
      ],
      { maxRetries: 9 },
    );
    const [sent] = sentOf(revival);
    expect(sent?.message.header).toEqual({ 'X-Own': ['o'] });
    expect(sent?.message.settings).toMatchObject({
      maxRetries: 0,
      callback: { maxRetries: 9, header: { 'X-Own': ['c'], 'X-User': ['u'] } },
    });
    expect(sent?.entry?.entryKey).toBe('c1');
  });

  it('counts for a shared entry its bytes in each delivery, and nothing if it is not shown', () => {
    const { journal } = reviveFrom([
      ['initial', '0'],
      ['step', 's1'],
      ['toCallback', 'c1'],
      ['wait', 'w1'],
      ['invoke', 'i1'],
    ]);
    const bytes = journal.flatMap((entry) => (entry.kind === 'shared' ? [entry.entry.bytes] : []));
    expect(bytes).toEqual([entryBytesOf(30, 'step'), entryBytesOf(30, 'toCallback'), 0, 0]);
  });

  it('sleeps until the planned time, and no longer when that has passed', () => {
    const at = (notBeforeMs: number) =>
      sentOf(
        reviveFrom([
          ['initial', '0'],
          ['step', 's1', messageOf(101, {}, { notBeforeMs })],
        ]),
      )[0]?.message.notBeforeMs;
    expect(at(NOW + 60_000)).toBe(NOW + 60_000);
    expect(at(NOW - 60_000)).toBe(NOW);
  });

  it('continues at once with a step that does not sleep, though the clock was ahead when it was made', () => {
    const ahead = { createdAtMs: NOW + 86_400_000, notBeforeMs: NOW + 86_400_000 };
    const [sent] = sentOf(
      reviveFrom([
        ['initial', '0'],
        ['step', 's1', messageOf(101, {}, ahead)],
      ]),
    );
    expect(sent?.message).toMatchObject({ createdAtMs: NOW, notBeforeMs: NOW });
  });

  it('waits for the whole time again, under its own name', () => {
    const wait = {
      eventId: 'e',
      timeout: '60s',
      deadlineMs: THEN + 60_000,
      notified: result,
      timedOut: result,
      headers: { 'Upstash-Workflow-Runid': ['wfr_old'], 'Upstash-Workflow-Url': [URL] },
      timeoutHeaders: {
        'Waypost-Workflow-Runid': ['wfr_old'],
        'Waypost-Workflow-Createdat': [String(THEN)],
        'X-Upstash-Workflow-Runid': ['kept'],
        'Upstash-Workflow-Runid-X': ['kept'],
        'X-Upstash-Workflow-Createdat': ['kept'],
        'Upstash-Workflow-Createdat-X': ['kept'],
      },
    };
    const revival = reviveFrom([
      ['initial', '0'],
      ['wait', 'w1', messageOf(101, { wait })],
    ]);
    const entry = revival.journal[1];
    if (entry?.kind !== 'record') throw new Error('a wait is a record');
    expect(revival.waiters).toEqual([{ key: entry.record.message.key, eventId: 'e', deadlineMs: NOW + 60_000 }]);
    expect(entry.record.entry).toEqual({ runKey: 500, kind: 'wait', entryKey: 'w1', bytes: 0 });
    expect(entry.record.message.settings.wait).toMatchObject({
      deadlineMs: NOW + 60_000,
      notified: { header: { 'X-User': ['u'] }, settings: { run: { key: 500, id: revival.run.id } } },
      headers: { 'Upstash-Workflow-Runid': [revival.run.id], 'Upstash-Workflow-Url': [URL] },
      timeoutHeaders: {
        'Waypost-Workflow-Runid': [revival.run.id],
        'Waypost-Workflow-Createdat': [String(NOW)],
        'X-Upstash-Workflow-Runid': ['kept'],
        'Upstash-Workflow-Runid-X': ['kept'],
        'X-Upstash-Workflow-Createdat': ['kept'],
        'Upstash-Workflow-Createdat-X': ['kept'],
      },
    });
  });

  it('invokes its own child, which starts like the other one', () => {
    const invoke = { runKey: 300, runId: 'wfr_child', url: 'https://app.example/child', createdAtMs: THEN, result };
    const child = runOf({ maxRetries: 1 }, 300);
    const initial = messageOf(300, { run: { ...PART, key: 300, id: 'wfr_child', url: child.url } }, { url: child.url });
    const revival = reviveFrom(
      [
        ['initial', '0'],
        ['invoke', 'i1', messageOf(101, { invoke })],
      ],
      { maxRetries: 9 },
      {
        children: [{ run: child, initial }],
      },
    );
    const [begun] = revival.children;
    expect(begun?.run?.config.maxRetries).toBe(1);
    expect(begun?.run?.id).not.toBe('wfr_child');
    expect(begun?.message).toMatchObject({
      url: child.url,
      body: initial.body,
      settings: { run: { key: begun?.message.key } },
    });
    expect(revival.journal[1]).toMatchObject({
      kind: 'record',
      event: 'INVOKED',
      record: {
        message: {
          settings: {
            invoke: { runKey: begun?.message.key, runId: begun?.run?.id, result: { settings: { run: { key: 500 } } } },
          },
        },
      },
    });
    const entry = revival.journal[1];
    const key = entry?.kind === 'record' ? entry.record.message.key : undefined;
    expect(revival.invocations).toEqual([{ key, childKey: begun?.message.key }]);
  });

  it('is written in chunks, the last of which has its waits', () => {
    const wait = {
      ...{ eventId: 'e', timeout: '60s', deadlineMs: THEN + 60_000, headers: {}, timeoutHeaders: {} },
      ...{ notified: result, timedOut: result },
    };
    const entries: [EntryKind, string, Message?][] = [
      ['initial', '0'],
      ['wait', 'w1', messageOf(101, { wait })],
      ['plan', 'p2', messageOf(102)],
      ['step', 's3'],
      ['plan', 'p4', messageOf(104)],
    ];
    const pieces = piecesFrom(entries, {}, { entriesMax: 2 });
    expect(
      pieces.map(({ isFirst, isLast, journal, waiters }) => {
        return [isFirst, isLast, journal.map(({ kind }) => kind), waiters.length];
      }),
    ).toEqual([
      [true, false, ['record', 'record'], 0],
      [false, false, ['message', 'shared'], 0],
      [false, true, ['message'], 1],
    ]);
    expect(new Set(pieces.map(({ runKey, run }) => `${runKey} ${run.id}`)).size).toBe(1);
  });
});
