/** The change that an attempt's outcome causes in a message of a run, and in the run (contract W 10, 12.3, 13, 14.5). */
import { describe, expect, test } from 'vitest';
import { decide, type SettleDecision } from '../../src/engine/messages/decide.ts';
import type { Claimed, FollowUp, Message, Outcome } from '../../src/engine/model.ts';
import { failRun } from '../../src/engine/runs/endings/failures.ts';
import type { CallType, HeaderMap, MessageSettings, RunSettings } from '../../src/protocol/options/settings.ts';
import type { Run } from '../../src/workflow/model.ts';
import { answered, claimed, message, NOW_MS } from './fixtures.ts';

const URL = 'https://app.example/wf';
const TIMED_OUT: Outcome = { kind: 'unreachable', reason: 'timeout', error: 'no answer within 5 s' };
const REFUSED: Outcome = { kind: 'unreachable', reason: 'refused', error: 'connection refused' };
const SDK: HeaderMap = { 'Upstash-Workflow-Sdk-Version': ['1'] };
const AT_MS = NOW_MS + 1_000;

function part(callType: CallType, changes: Partial<RunSettings> = {}): RunSettings {
  return { key: 10, id: 'wfr_a', createdAtMs: NOW_MS, url: URL, callType, features: ['LazyFetch'], ...changes };
}

function of(run: RunSettings, settings: Partial<MessageSettings> = {}, retried = 0): Claimed {
  const full = { dialect: 'upstash' as const, maxRetries: 0, run, ...settings };
  return claimed({
    message: message({ key: 11, url: URL, settings: full }),
    retried,
    journal: { position: 1, bytes: 9 },
  });
}

function settling(of: Claimed, outcome: Outcome): SettleDecision {
  const decision = decide(of, outcome, AT_MS);
  if (decision.kind !== 'settle') throw new Error(`decided to ${decision.kind}`);
  return decision;
}

const statesOf = ({ settlement }: SettleDecision): string[] => settlement.change.events.map(({ state }) => state);
const jsonOf = ({ body }: FollowUp) => JSON.parse(new TextDecoder().decode(body));

describe('a step', () => {
  test('that is delivered does not change its run', () => {
    const decision = settling(of(part('step')), answered(200));
    expect(statesOf(decision)).toEqual(['DELIVERED']);
    expect(decision.failsRun).toBeUndefined();
  });

  test('that can be retried is retried', () => {
    const decision = settling(of(part('step'), { maxRetries: 1 }), answered(500));
    expect(statesOf(decision)).toEqual(['ERROR', 'RETRY']);
    expect(decision.failsRun).toBeUndefined();
  });

  test.for(['step', 'fromCallback', 'stepConfig'] as const)('of call type %s fails its run', (callType) => {
    const decision = settling(of(part(callType)), answered(500));
    expect(decision.failsRun).toBeDefined();
    expect(decision.settlement.change.deadLetter).toMatchObject({ responseStatus: 500 });
  });

  test('whose response exceeds the kept size is logged as such', () => {
    const outcome: Outcome = { kind: 'responded', status: 500, header: {}, body: new Uint8Array(9), isCut: true };
    expect(settling(of(part('step')), outcome).settlement.change.events[0]?.detail).toMatchObject({
      error: 'the endpoint responded with status 500; of its body only the first 9 bytes are kept',
    });
  });

  test('that failed after its run was cancelled is only cancelled', () => {
    const { changeIfCancelRequested: change } = settling(of(part('step')), answered(500)).settlement;
    expect(change?.events.map(({ state }) => state)).toEqual(['ERROR', 'CANCELED']);
    expect(change?.deadLetter).toBeUndefined();
  });
});

describe('the first message of a run', () => {
  const first = part('step', { init: 'known', features: ['WF_DetectTrigger'] });

  test('that the endpoint does not understand fails at once, with retries left', () => {
    const decision = settling(of(first, { maxRetries: 3 }), answered(200));
    expect(statesOf(decision)).toEqual(['ERROR', 'FAILED']);
    expect(decision.settlement.change.events[0]?.detail).toMatchObject({
      error: expect.stringMatching(/^detected a non-workflow destination/),
      response: { status: 200 },
    });
    expect(decision.failsRun).toBeDefined();
  });

  test('that is understood is delivered', () => {
    expect(statesOf(settling(of(first), answered(200, SDK)))).toEqual(['DELIVERED']);
  });

  test('that fails is retried like any other', () => {
    expect(statesOf(settling(of(first, { maxRetries: 3 }), answered(500)))).toEqual(['ERROR', 'RETRY']);
  });
});

describe('a delivery for a step with settings', () => {
  test('that gets a response fails its run if that does not continue', () => {
    const { settlement, failsRun } = settling(of(part('stepConfig'), { maxRetries: 3 }), answered(200));
    expect(settlement.change.events[0]?.detail).toMatchObject({
      error: 'the response to the delivery for a step with settings of its own lacks the result of the step',
      response: { status: 200 },
    });
    expect(failsRun).toMatchObject({ ifLastAt: 1, changeIfOver: { events: [{ state: 'DELIVERED' }] } });
  });

  test('that gets a response after a cancel was requested is delivered', () => {
    const { changeIfCancelRequested: change } = settling(of(part('stepConfig')), answered(200)).settlement;
    expect(change?.events.map(({ state }) => state)).toEqual(['DELIVERED']);
  });
});

describe('a call', () => {
  const callback = {
    url: URL,
    method: 'POST' as const,
    header: { 'Upstash-Workflow-Stepid': ['2'] },
    maxRetries: 5,
    features: ['InitialBody' as const],
  };
  const call = (maxRetries = 0, retried = 0) => of(part('toCallback'), { callback, maxRetries }, retried);

  test('that gets a response gives the response to its run', () => {
    const answer: Outcome = {
      kind: 'responded',
      status: 201,
      header: { 'Get-Header': ['x'] },
      body: Buffer.from('hi'),
    };
    const [result, ...others] = settling(call(), answer).follows;
    expect(others).toEqual([]);
    expect(result).toMatchObject({
      url: URL,
      header: { 'Upstash-Workflow-Stepid': ['2'], 'Content-Type': ['application/json'] },
      entry: { runKey: 10, kind: 'fromCallback', entryKey: 'f11' },
      settings: { maxRetries: 5, run: { callType: 'fromCallback', features: ['InitialBody'] } },
    });
    expect(result && jsonOf(result)).toMatchObject({
      status: 201,
      header: { 'Get-Header': ['x'] },
      body: 'aGk=',
      retried: 0,
    });
  });

  test.for([
    ['a call', 'toCallback'],
    ['the telling of a failure', 'failureCall'],
  ] as const)('whose cancel was requested since ends cancelled, without following messages: %s', ([, callType]) => {
    const { settlement } = settling(of(part(callType), { callback, maxRetries: 0 }), answered(500));
    const { changeIfCancelRequested: change } = settlement;
    expect(settlement.change.events.map(({ state }) => state)).toEqual(['ERROR', 'FAILED']);
    expect(change?.events.map(({ state }) => state)).toEqual(['ERROR', 'CANCELED']);
    expect(change?.failureCallback).toBeUndefined();
  });

  test('that will be retried has no result yet', () => {
    expect(settling(call(1), answered(500)).follows).toEqual([]);
  });

  test.for<[string, Outcome, number]>([
    ['an answer of failure', answered(401), 401],
    ['a time-out', TIMED_OUT, 504],
    ['no answer', REFUSED, 502],
  ])('that ends with %s is a result, and no failure of the run', ([, outcome, status]) => {
    const decision = settling(call(1, 1), outcome);
    expect(decision.failsRun).toBeUndefined();
    expect(decision.settlement.change).not.toHaveProperty('deadLetter');
    expect(decision.settlement.change).not.toHaveProperty('failureCallback');
    expect(decision.follows.map(jsonOf)).toMatchObject([{ status, retried: 1, maxRetries: 1 }]);
  });

  test('that ends before its retries are used up reports them as used: clients would wait for more otherwise', () => {
    const final = answered(489, { 'Upstash-Nonretryable-Error': ['true'] });
    expect(settling(call(3), final).follows.map(jsonOf)).toMatchObject([{ status: 489, retried: 3, maxRetries: 3 }]);
  });
});

describe('a failure callback', () => {
  const told = (maxRetries = 0) => of(part('failureCall'), { maxRetries });

  test('that is delivered keeps the response', () => {
    const { change } = settling(told(), answered(200)).settlement;
    expect(change.failureCallback).toBe('success');
    expect(change.events).toMatchObject([{ state: 'DELIVERED', detail: { response: { status: 200 } } }]);
  });

  test('finds no failure function', () => {
    const none = answered(200, { 'Upstash-Workflow-Failure-Callback-Notfound': ['true'] });
    expect(settling(told(), none).settlement.change.failureCallback).toBe('none');
  });

  test('that is dead fails nothing else and is in no DLQ', () => {
    const decision = settling(told(), answered(500));
    expect(decision.settlement.change).toMatchObject({ failureCallback: 'fail', next: { kind: 'finished' } });
    expect(decision.settlement.change.deadLetter).toBeUndefined();
    expect(decision.failsRun).toBeUndefined();
  });

  test('is retried by its own settings', () => {
    expect(statesOf(settling(told(1), answered(500)))).toEqual(['ERROR', 'RETRY']);
  });
});

describe('a run that fails', () => {
  const run: Run = {
    key: 10,
    projectId: 1,
    id: 'wfr_a',
    url: URL,
    createdAtMs: NOW_MS,
    state: 'RUN_STARTED',
    version: 4,
    config: {
      dialect: 'upstash',
      features: ['InitialBody'],
      isKept: true,
      isRest: false,
      isUnknownSdk: false,
      header: { 'X-User': ['ada'] },
      maxRetries: 2,
      failureCallback: { url: 'https://failed.example/f', method: 'POST', header: { 'X-Own': ['1'] } },
    },
    entries: 2,
    messageId: 'msg_10',
    invokers: [],
  };
  const invocation: Message = message({
    key: 21,
    body: Buffer.from('{"stepId":7,"stepName":"i","stepType":"Invoke"}'),
    settings: {
      dialect: 'upstash',
      maxRetries: 0,
      run: part('step', { key: 20, id: 'wfr_parent' }),
      invoke: {
        runKey: 10,
        runId: 'wfr_a',
        url: URL,
        createdAtMs: NOW_MS,
        result: { url: 'https://app.example/parent', header: {}, settings: { dialect: 'upstash', maxRetries: 1 } },
      },
    },
  });

  /** The time after which nothing is retried. */
  const FINAL = answered(489, { 'Upstash-Nonretryable-Error': ['true'] });
  const BOOM: Outcome = { kind: 'responded', status: 500, header: {}, body: Buffer.from('{"error":"Boom"}') };

  async function failed(of: Claimed, changes: Partial<Run> = {}, outcome = BOOM): Promise<SettleDecision> {
    const decision = settling(of, outcome);
    const { failsRun } = decision;
    if (!failsRun) throw new Error('the run did not fail');
    const runs = {
      findRun: async () => ({ ...run, ...changes }),
      findRecords: async () => [invocation],
      readJournal: async () => [
        { position: 0, messageId: 'msg_10', callType: 'step' as const, body: Buffer.from('payload') },
      ],
    };
    return failRun({ runs }, of, { ...decision, failsRun });
  }

  test('ends in the change of its message, with the version that was read', async () => {
    const { settlement } = await failed(of(part('step')));
    expect(settlement.change.ending).toEqual({
      projectId: 1,
      runKey: 10,
      runVersion: 4,
      state: 'RUN_FAILED',
      atMs: AT_MS,
    });
    expect(settlement.change.deadLetter).toBeDefined();
  });

  test('fails with a delivery for a step that leads to nothing', async () => {
    const { settlement, follows } = await failed(of(part('stepConfig')), { entries: 2 }, answered(200));
    expect(settlement.change).toMatchObject({ ending: { state: 'RUN_FAILED' }, deadLetter: { responseStatus: 200 } });
    expect(follows).toHaveLength(1);
  });

  test.for<[string, Partial<Run>]>([
    ['has gone on', { entries: 3 }],
    ['has ended', { state: 'RUN_SUCCESS' }],
  ])('that %s since such a delivery does not fail', async ([, changes]) => {
    const { settlement, follows } = await failed(of(part('stepConfig')), changes, answered(200));
    expect(settlement.change).toEqual({
      next: { kind: 'finished' },
      events: [{ atMs: AT_MS, state: 'DELIVERED', responseStatus: 200 }],
    });
    expect(follows).toEqual([]);
  });

  test('sends the error and the payload to its failure URL', async () => {
    const [told] = (await failed(of(part('step')))).follows;
    expect(told).toMatchObject({
      url: 'https://failed.example/f',
      header: {
        'Upstash-Workflow-Is-Failure': ['true'],
        'Upstash-Workflow-Failure-Callback': ['true'],
        'X-Own': ['1'],
        'X-User': ['ada'],
      },
      settings: { maxRetries: 0, run: { callType: 'failureCall', id: 'wfr_a' } },
    });
    expect(told && jsonOf(told)).toMatchObject({
      status: 500,
      body: Buffer.from('{"error":"Boom"}').toString('base64'),
      sourceBody: Buffer.from('payload').toString('base64'),
      url: URL,
      workflowRunId: 'wfr_a',
      workflowCreatedAt: NOW_MS,
      dlqId: `${AT_MS}-11`,
    });
  });

  test('shows the delivery to SDKs that do not want the payload alone', async () => {
    const config = { ...run.config, features: [] };
    const [told] = (await failed({ ...of(part('step')), deliveredBody: Buffer.from('[journal]') }, { config })).follows;
    expect(told && jsonOf(told).sourceBody).toBe(Buffer.from('[journal]').toString('base64'));
  });

  test('shows the message itself to them when its body was the whole delivery', async () => {
    const config = { ...run.config, features: [] };
    const step = of(part('step'));
    const message = { ...step.message, body: Buffer.from('result') };
    const [told] = (await failed({ ...step, message }, { config })).follows;
    expect(told && jsonOf(told).sourceBody).toBe(Buffer.from('result').toString('base64'));
  });

  test('does not present our error as a response of the endpoint, when that did not respond', async () => {
    const [told] = (await failed(of(part('step')), {}, REFUSED)).follows;
    expect(told && jsonOf(told)).toMatchObject({ status: 0, body: '' });
  });

  test('sends it like the failed message was delivered, if the failure URL came without options', async () => {
    const flowControl = { key: 'k', parallelism: 1, periodS: 1 };
    const config = { ...run.config, labels: ['l'], redact: { body: true, headers: [] } };
    const settings = { retryDelayExpression: '7', flowControl };
    const step = part('step', { init: 'known', isRest: true });
    const [told] = (await failed(of(step, settings), { config }, FINAL)).follows;
    expect(told?.settings).toEqual({
      dialect: 'upstash',
      maxRetries: 0,
      retryDelayExpression: '7',
      flowControl,
      labels: ['l'],
      redact: { body: true, headers: [] },
      run: part('failureCall', { features: ['InitialBody'] }),
    });
  });

  test('sends it as the trigger set it, whatever the failed message set for its step', async () => {
    const stepSettings = { maxRetries: 0, retryDelayExpression: '7', flowControl: { key: 'k', rate: 1, periodS: 1 } };
    const config = { ...run.config, maxRetries: 4, retryDelayExpression: '9' };
    const [told] = (await failed(of(part('step', { stepSettings }), stepSettings), { config })).follows;
    expect(told?.settings).toEqual({
      ...{ dialect: 'upstash', maxRetries: 4, retryDelayExpression: '9' },
      run: part('failureCall', { features: ['InitialBody'] }),
    });
  });

  test('sends it by the options of the failure URL, if that has some', async () => {
    const flowControl = { key: 'own', parallelism: 2, periodS: 1 };
    const options = { maxRetries: 5, retryDelayExpression: '9', flowControl, features: [] };
    const failureCallback = { url: 'https://failed.example/f', method: 'PUT' as const, header: {}, ...options };
    const config = { ...run.config, failureCallback };
    const settings = { retryDelayExpression: '7', flowControl: { key: 'k', parallelism: 1, periodS: 1 } };
    const [told] = (await failed(of(part('step'), settings), { config }, FINAL)).follows;
    expect(told).toMatchObject({ method: 'PUT', settings: { maxRetries: 5, retryDelayExpression: '9', flowControl } });
    expect(told?.settings.run?.features).toEqual([]);
  });

  test('of an older SDK sends it to the URL that the failing message names', async () => {
    const { failureCallback: _own, ...config } = { ...run.config, isKept: false };
    const failureCallback = { url: 'https://step.example/f', method: 'POST' as const, header: {} };
    const { follows } = await failed(of(part('step'), { failureCallback }), { config });
    expect(follows.map(({ url }) => url)).toEqual(['https://step.example/f']);
    expect(follows[0]?.header).not.toHaveProperty('X-User');
  });

  test('sends the failure to its invoker', async () => {
    const { follows } = await failed(of(part('step')), { invokers: [21] });
    const result = follows.find(({ entry }) => entry !== undefined);
    expect(result).toMatchObject({
      url: 'https://app.example/parent',
      entry: { runKey: 20, kind: 'step', entryKey: 's7' },
    });
    expect(result && JSON.parse(jsonOf(result).out)).toEqual({ isCanceled: false, isFailed: true });
  });

  test('had ended before: then its message is only finished', async () => {
    const { settlement, follows } = await failed(of(part('step')), { state: 'RUN_SUCCESS' });
    expect(settlement.change).toMatchObject({
      next: { kind: 'finished' },
      events: [{ state: 'ERROR' }, { state: 'CANCELED' }],
    });
    expect(settlement.change.ending).toBeUndefined();
    expect(follows).toEqual([]);
  });
});
