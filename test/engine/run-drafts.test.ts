/** The rows of a publish for a workflow run: a run that starts, is taken over, is continued, is invoked. */
import { describe, expect, test } from 'vitest';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import { draftOfAdoption, draftOfAppend, draftOfStart } from '../../src/engine/runs/drafts.ts';
import type { MessageSettings, PublishOptions, RunAppend, RunStart } from '../../src/protocol/options/settings.ts';
import { entryKeyOfCall, entryKeyOfResult } from '../../src/workflow/entry-keys.ts';
import type { Run, RunConfig } from '../../src/workflow/model.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { NOW_MS } from './fixtures.ts';

const URL = 'https://app.example/wf';
const KEYS = { key: 20, recordKey: 21 };
const CONTEXT = {
  ...{ projectId: 1, nowMs: NOW_MS, randomness: new SeededRandom(1) },
  ...{ deduplicationWindowMs: 0, lazyAboveBytes: 1_000 },
};
const START: RunStart = {
  ...{ kind: 'start', runId: 'wfr_a', features: [] },
  ...{ isInvoke: false, isBySdk: false, isUnknownSdk: false, isRest: false },
};
const APPEND: RunAppend = { kind: 'append', runId: 'wfr_a', callType: 'step', features: [] };
const CALLBACK = { url: URL, method: 'POST' as const, header: { 'Upstash-Workflow-Stepid': ['3'] } };
const STEP = '{"stepId":7,"stepName":"i","stepType":"Invoke"}';

function command(
  settings: Partial<MessageSettings> = {},
  { body = 'b', ...options }: Partial<PublishOptions> & { body?: string } = {},
): PublishCommand {
  const whole = { dialect: 'upstash' as const, maxRetries: 0, ...settings };
  return {
    url: URL,
    body: Buffer.from(body),
    options: { method: 'POST', header: {}, explicitHeader: {}, settings: whole, ...options },
  };
}

function run(config: Partial<RunConfig> = {}): Run {
  const none = { isKept: true, isRest: false, isUnknownSdk: false };
  return {
    ...{ key: 10, projectId: 1, id: 'wfr_a', url: URL, createdAtMs: NOW_MS - 5, state: 'RUN_STARTED', version: 4 },
    config: { dialect: 'upstash', features: [], header: { 'X-User': ['u'] }, maxRetries: 2, ...none, ...config },
    ...{ entries: 1, messageId: 'msg_10', invokers: [] },
  };
}

describe('the start of a run', () => {
  const begin = (start: Partial<RunStart>, settings?: Partial<MessageSettings>) =>
    draftOfStart(command(settings), { ...START, ...start }, undefined, KEYS, CONTEXT);

  test('saves the failure URL, or leaves it to each message if the SDK does', () => {
    const told = { failureCallback: CALLBACK };
    const kept = begin({ features: ['WF_TriggerOnConfig'] }, told);
    expect(kept.run?.config.failureCallback).toEqual(CALLBACK);
    expect(kept.message.settings).not.toHaveProperty('failureCallback');
    expect(begin({}, told).message.settings.failureCallback).toEqual(CALLBACK);
    expect(begin({}).message.settings).not.toHaveProperty('failureCallback');
  });

  test.each([true, false])('saves in its first message whether it was triggered over REST: %s', (isRest) => {
    const { message } = begin({ isRest });
    expect(message.settings.run?.isRest).toBe(isRest ? true : undefined);
  });

  test.each([true, false])('saves whether the SDK behind its URL is unknown: %s', (isUnknownSdk) => {
    expect(begin({ isUnknownSdk }).message.settings.run?.init).toBe(isUnknownSdk ? 'unknown' : 'known');
  });
});

describe('a run that its SDK takes over', () => {
  const adopt = (config: Partial<RunConfig>, features: RunStart['features'] = []) =>
    draftOfAdoption(
      command(),
      { ...START, isBySdk: true, features },
      run({ isUnknownSdk: true, ...config }),
      20,
      CONTEXT,
    );

  test('is delivered again in the way of the SDK, as the start of the run that was read', () => {
    const { message, run: adopted, entry } = adopt({}, ['LazyFetch']);
    expect(message.settings.run).toEqual({
      ...{ key: 10, id: 'wfr_a', createdAtMs: NOW_MS - 5, url: URL },
      ...{ callType: 'step', features: ['LazyFetch'], init: 'known' },
    });
    expect(adopted).toMatchObject({ id: 'wfr_a', createdAtMs: NOW_MS - 5, isBySdk: true });
    expect(adopted?.config).toMatchObject({ features: ['LazyFetch'], isUnknownSdk: false });
    expect(entry).toMatchObject({ runKey: 10, runVersion: 4, kind: 'initial', lazyAboveBytes: 1_000 });
  });

  test.each<[boolean, RunStart['features'], boolean]>([
    [false, [], false],
    [true, [], true],
    [false, ['WF_TriggerOnConfig'], true],
  ])('keeps its configuration if it did, or if the SDK wants that: %s, %j', (isKept, features, isKeptThen) => {
    const { run: adopted, message } = adopt({ isKept }, features);
    expect(adopted?.config.isKept).toBe(isKeptThen);
    expect(message.header).toEqual(isKeptThen ? { 'X-User': ['u'] } : {});
  });

  test.each([true, false])('stays triggered over REST, or not: %s', (isRest) => {
    expect(adopt({ isRest }).message.settings.run?.isRest).toBe(isRest ? true : undefined);
  });
});

describe('a message that continues a run', () => {
  const append = (callType: RunAppend['callType'], config: Partial<RunConfig> = {}) =>
    draftOfAppend(command({ callback: CALLBACK }, { body: STEP }), { ...APPEND, callType }, run(config), 20, CONTEXT);

  test('has the settings of the trigger, and no callback, when it is a step', () => {
    const { message, entry } = append('step');
    const { header, settings } = message;
    expect(entry).toMatchObject({ kind: 'step', entryKey: entryKeyOfResult(7) });
    expect([header, settings.maxRetries]).toEqual([{ 'X-User': ['u'] }, 2]);
    expect(settings).not.toHaveProperty('callback');
  });

  test('keeps the settings of its step, and saves them', () => {
    const stepSettings = { maxRetries: 7 };
    const flow = { flowControl: { key: 'k', rate: 1, periodS: 1 } };
    const forStep: RunAppend = { ...APPEND, callType: 'stepConfig', features: ['WF_StepConfig'], stepSettings };
    const { message, entry } = draftOfAppend(command({ maxRetries: 7 }), forStep, run(flow), 20, CONTEXT);
    expect(entry?.kind).toBe('stepConfig');
    expect(message.settings).toMatchObject({ maxRetries: 7, ...flow, run: { callType: 'stepConfig', stepSettings } });
  });

  test('is sent unchanged when it is a call, and its response has the settings of the trigger', () => {
    const redact = { body: true, headers: [] };
    const { message, entry } = append('toCallback', { redact });
    const { header, settings } = message;
    expect(entry).toMatchObject({ kind: 'toCallback', entryKey: entryKeyOfCall(3) });
    expect([header, settings.maxRetries, settings.redact]).toEqual([{}, 0, redact]);
    expect(settings.callback).toMatchObject({ header: { ...CALLBACK.header, 'X-User': ['u'] }, maxRetries: 2 });
  });
});

describe('a run that another invokes', () => {
  const invoke = (step: string, parent: Run | undefined = run({ isKept: true })) => {
    const settings = { dialect: 'upstash' as const, maxRetries: 1 };
    const result = { url: `${URL}/parent`, header: {}, settings };
    const invocation = { runId: 'wfr_a', step: Buffer.from(step), result, features: [] };
    const start = { ...START, runId: 'wfr_child', isInvoke: true };
    return draftOfStart({ ...command(), invocation }, start, parent, KEYS, CONTEXT);
  };

  test('is named in the journal of its invoker, with the message that its end becomes', () => {
    const { run: child } = invoke(STEP);
    expect(child?.invoker).toMatchObject({
      entry: { runKey: 10, runVersion: 4, kind: 'invoke' },
      message: {
        key: 21,
        body: Buffer.from(STEP),
        settings: {
          invoke: {
            ...{ runKey: 20, runId: 'wfr_child', url: URL, createdAtMs: NOW_MS },
            result: {
              url: `${URL}/parent`,
              header: { 'X-User': ['u'] },
              settings: { maxRetries: 2, run: { key: 10 } },
            },
          },
        },
      },
    });
  });

  test('is refused if the step has no number', () => {
    expect(() => invoke('{"stepName":"i"}')).toThrow(expect.objectContaining({ status: 422 }));
  });
});
