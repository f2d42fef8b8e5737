/** The configuration that the trigger of a run fixes for its later messages (contract W 7). */
import { describe, expect, test } from 'vitest';
import type {
  MessageSettings,
  PublishOptions,
  RunSettings,
  RunStart,
  StepSettings,
  WorkflowFeature,
} from '../../src/protocol/options/settings.ts';
import {
  applyRunConfig,
  applyRunConfigToCall,
  applyRunConfigToCallback,
  runConfigOf,
} from '../../src/workflow/configuration.ts';
import type { RunConfig } from '../../src/workflow/model.ts';

const URL = 'https://app.example/wf';
const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const OTHER_PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

function start(features: WorkflowFeature[], changes: Partial<RunStart> = {}): RunStart {
  return { kind: 'start', features, isInvoke: false, isBySdk: false, isUnknownSdk: false, isRest: false, ...changes };
}

function options(settings: Partial<MessageSettings> = {}, header: PublishOptions['header'] = {}): PublishOptions {
  return {
    method: 'POST',
    header,
    explicitHeader: header,
    settings: { dialect: 'upstash', maxRetries: 3, ...settings },
  };
}

const PART: RunSettings = { key: 1, id: 'wfr_a', createdAtMs: 0, url: URL, callType: 'step', features: [] };
const KEPT = start(['WF_TriggerOnConfig']);
const FLOW = { key: 'k', parallelism: 2, periodS: 1 };

function config(settings: Partial<MessageSettings> = {}, header: PublishOptions['header'] = {}): RunConfig {
  return runConfigOf(options(settings, header), KEPT, URL);
}

describe('a run', () => {
  test.for<[string, RunStart, boolean]>([
    ['whose library asks for it keeps its configuration', KEPT, true],
    ['that was triggered by REST keeps it', start([], { isRest: true }), true],
    ['of an older library does not', start(['LazyFetch', 'InitialBody']), false],
  ])('%s', ([, wish, isKept]) => {
    expect(runConfigOf(options(), wish, URL).isKept).toBe(isKept);
  });

  test('keeps user headers, without those that configure the trigger’s own delivery', () => {
    const header = {
      'X-User': ['ada'],
      'Content-Type': ['text/plain'],
      'Upstash-Workflow-Sdk-Version': ['1'],
      'Waypost-Workflow-Unknown-Sdk': ['true'],
    };
    expect({ ...config({}, header).header }).toEqual({ 'X-User': ['ada'] });
  });

  test('that was triggered over REST reports a failure to its own URL by default', () => {
    const { failureCallback } = runConfigOf(options(), start([], { isRest: true }), URL);
    expect(failureCallback).toMatchObject({ url: URL, method: 'POST' });
  });

  test('reports a failure to the URL that the trigger names', () => {
    const failureCallback = { url: 'https://failed.example', method: 'POST' as const, header: {} };
    expect(config({ failureCallback }).failureCallback).toEqual(failureCallback);
  });

  test.for([
    ['keeps', KEPT],
    ['does not keep', start([])],
  ] as const)('that a library started and that %s its configuration reports no failure by default', ([, wish]) => {
    expect(runConfigOf(options(), wish, URL).failureCallback).toBeUndefined();
  });
});

describe('a later message', () => {
  const own = {
    header: { 'X-Step': ['1'], 'X-User': ['eve'] },
    settings: { dialect: 'upstash' as const, maxRetries: 9, retryDelayExpression: '5', labels: ['own'], timeoutMs: 7 },
  };

  test('gets headers, retries, labels and flow control of the trigger, and keeps its other headers', () => {
    const kept = config({ maxRetries: 1, labels: ['a', 'b'], flowControl: FLOW }, { 'X-User': ['ada'] });
    const { header, settings } = applyRunConfig(own, kept);
    expect({ ...header }).toEqual({ 'X-Step': ['1'], 'X-User': ['ada'] });
    expect(settings).toEqual({
      dialect: 'upstash',
      maxRetries: 1,
      labels: ['a', 'b'],
      flowControl: FLOW,
      timeoutMs: 7,
    });
  });

  test('has no retry delay, labels or flow control unless the trigger sets them', () => {
    expect(applyRunConfig(own, config()).settings).toEqual({ dialect: 'upstash', maxRetries: 3, timeoutMs: 7 });
  });

  test.for<[string, StepSettings, Partial<MessageSettings>]>([
    ['retries', { maxRetries: 0 }, { maxRetries: 0, retryDelayExpression: '50', flowControl: FLOW }],
    ['retry delay', { retryDelayExpression: '7' }, { maxRetries: 1, retryDelayExpression: '7', flowControl: FLOW }],
    [
      'flow control, as a whole',
      { flowControl: { key: 'step', rate: 1, periodS: 9 } },
      { maxRetries: 1, retryDelayExpression: '50', flowControl: { key: 'step', rate: 1, periodS: 9 } },
    ],
    ['nothing', {}, { maxRetries: 1, retryDelayExpression: '50', flowControl: FLOW }],
  ])('that sets %s for a step has the rest from the trigger', ([, stepSettings, expected]) => {
    const kept = config({ maxRetries: 1, retryDelayExpression: '50', flowControl: FLOW, labels: ['a'] });
    const run = { ...PART, stepSettings };
    const { settings } = applyRunConfig({ ...own, settings: { ...own.settings, run } }, kept);
    expect(settings).toEqual({ dialect: 'upstash', timeoutMs: 7, labels: ['a'], run, ...expected });
  });

  test('of a run that does not keep its configuration is unchanged', () => {
    expect(applyRunConfig(own, runConfigOf(options({ maxRetries: 1 }), start([]), URL))).toEqual(own);
  });

  test('is redacted like the run, kept configuration or not', () => {
    const redact = { body: true, headers: [] };
    const loose = runConfigOf(options({ redact }), start([]), URL);
    expect(applyRunConfig(own, loose).settings.redact).toEqual(redact);
    expect(applyRunConfigToCall(own, loose).redact).toEqual(redact);
  });

  test('that is a call gets only the redaction and the trace', () => {
    expect(applyRunConfigToCall(own, config({ labels: ['a'] }, { 'X-User': ['ada'] }))).toEqual(own.settings);
    const trace = { parent: PARENT };
    expect(applyRunConfigToCall(own, config({ trace })).trace).toEqual(trace);
    const forwarded = { ...own, header: { Traceparent: [OTHER_PARENT] } };
    expect(applyRunConfigToCall(forwarded, config({ trace }))).not.toHaveProperty('trace');
  });

  test('is in the trace of the run, regardless of its own request', () => {
    for (const features of [[], ['WF_TriggerOnConfig']] satisfies WorkflowFeature[][]) {
      const traced = runConfigOf(options({ trace: { parent: PARENT } }), start(features), URL);
      const settings: MessageSettings = { ...own.settings, trace: { parent: OTHER_PARENT, state: 'a=1' } };
      expect(applyRunConfig({ ...own, settings }, traced).settings.trace).toEqual({ parent: PARENT });
      const untraced = runConfigOf(options(), start(features), URL);
      expect(applyRunConfig({ ...own, settings }, untraced).settings.trace).toEqual(settings.trace);
    }
  });
});

test('the result of a call is configured like a step, with the headers that name its step', () => {
  const callback = { url: URL, method: 'POST' as const, header: { 'Upstash-Workflow-Stepid': ['2'] }, maxRetries: 0 };
  const kept = config({ maxRetries: 5, labels: ['a'] }, { 'X-User': ['ada'], 'Upstash-Workflow-Sdk-Version': ['1'] });
  const result = applyRunConfigToCallback(callback, kept);
  expect({ ...result.header }).toEqual({ 'Upstash-Workflow-Stepid': ['2'], 'X-User': ['ada'] });
  expect(result).toMatchObject({ maxRetries: 5, labels: ['a'] });
});
