/** Makes the messages, not yet saved, of the start of a run, of an entry that a run appends, and of an invocation. */
import { ApiError } from '../../protocol/errors.ts';
import { mintMessageId, mintRunId, type RandomBytes } from '../../protocol/ids.ts';
import type {
  CallType,
  InvocationSettings,
  RunAppend,
  RunSettings,
  RunStart,
  WorkflowFeature,
} from '../../protocol/options/settings.ts';
import { keepsTriggerConfiguration } from '../../protocol/workflow/generations.ts';
import {
  applyRunConfig,
  applyRunConfigToCall,
  applyRunConfigToCallback,
  runConfigOf,
} from '../../workflow/configuration.ts';
import { entryKeyOfInvocation, INITIAL_ENTRY_KEY } from '../../workflow/entry-keys.ts';
import type { Run } from '../../workflow/model.ts';
import { entryIdentityOf, readStep } from '../../workflow/steps.ts';
import { type AcceptContext, type Draft, newMessageOf } from '../messages/accept.ts';
import type { Invocation, PublishCommand } from '../messages/publish-command.ts';
import type { Message, MessageKey, NewRecord, NewRun } from '../model.ts';
import { spanOfRun, traceWithin } from '../spans.ts';
import { entryOf, recordOf } from './entries.ts';

/** The keys of a message, and of the record that may be saved with the message. */
export interface DraftKeys {
  key: MessageKey;
  recordKey: MessageKey;
}

/** The first message of a new run. `parent`: the run that invokes the new run, if it was invoked. */
export function draftOfStart(
  command: PublishCommand,
  start: RunStart,
  parent: Run | undefined,
  { key, recordKey }: DraftKeys,
  context: AcceptContext,
): Draft {
  const random = randomOf(context);
  const published = newMessageOf(withTraceOf(parent, command, context), key, context);
  const { header } = published;
  const config = runConfigOf({ header, settings: published.settings }, start, command.url);
  const runSettings: RunSettings = {
    key,
    id: start.runId ?? mintRunId(random),
    createdAtMs: Math.max(published.createdAtMs, (context.runsCreatedAfterMs ?? 0) + 1),
    url: command.url,
    callType: 'step',
    init: start.isUnknownSdk ? 'unknown' : 'known',
    features: start.features,
  };
  if (start.isRest) runSettings.isRest = true;
  // Saved with the run: otherwise a step whose request names another trace would leave the trace of the run.
  const trace =
    context.isTraced && !config.trace ? traceWithin(spanOfRun(runSettings, undefined), undefined) : undefined;
  if (trace) config.trace = trace;
  const { callback: _callback, failureCallback, ...settings } = published.settings;
  const message: Message = { ...published, settings: { ...settings, run: runSettings } };
  if (config.trace) message.settings.trace = config.trace;
  // A run that keeps its configuration has its failure callback there, so the message does not repeat the callback.
  if (failureCallback && !config.isKept) message.settings.failureCallback = failureCallback;
  const run: NewRun = { id: runSettings.id, url: runSettings.url, createdAtMs: runSettings.createdAtMs, config };
  if (parent && command.invocation)
    run.invoker = invocationRecord(command.invocation, parent, message, recordKey, random);
  return {
    message,
    run,
    entry: entryOf(message, { runKey: key, kind: 'initial', entryKey: INITIAL_ENTRY_KEY }, context.lazyAboveBytes),
  };
}

/** An invoked run belongs to the trace of its parent, unless the headers that are forwarded to it name another trace. */
function withTraceOf(parent: Run | undefined, command: PublishCommand, { isTraced }: AcceptContext): PublishCommand {
  const { options } = command;
  if (!parent || options.header['Traceparent']) return command;
  const { trace: parentTrace } = parent.config;
  const trace = isTraced ? traceWithin(spanOfRun(parent, parentTrace), parentTrace) : parentTrace;
  if (!trace) return command;
  return { ...command, options: { ...options, settings: { ...options.settings, trace } } };
}

/**
 * The second phase of a trigger: the library at the URL has identified itself, and the first message is sent again in the
 * format of this library (contract W 5.3). The trigger's configuration does not change.
 */
export function draftOfAdoption(
  command: PublishCommand,
  start: RunStart,
  run: Run,
  key: MessageKey,
  context: AcceptContext,
): Draft {
  const config = {
    ...run.config,
    features: start.features,
    isKept: run.config.isKept || keepsTriggerConfiguration(start.features),
    isUnknownSdk: false,
  };
  const published = newMessageOf(command, key, context);
  const runSettings: RunSettings = { ...runSettingsOf(run, 'step', start.features), init: 'known' };
  if (run.config.isRest) runSettings.isRest = true;
  const { callback: _callback, failureCallback: _failure, ...settings } = published.settings;
  const message: Message = { ...published, ...applyRunConfig({ header: published.header, settings }, config) };
  message.settings.run = runSettings;
  const entry = { runKey: run.key, runVersion: run.version, kind: 'initial', entryKey: INITIAL_ENTRY_KEY } as const;
  return {
    message,
    run: { id: run.id, url: run.url, createdAtMs: run.createdAtMs, config, isBySdk: true },
    entry: entryOf(message, entry, context.lazyAboveBytes),
  };
}

/** A message that is appended to the journal of `run`. */
export function draftOfAppend(
  command: PublishCommand,
  append: RunAppend,
  run: Run,
  key: MessageKey,
  context: AcceptContext,
): Draft {
  const { config } = run;
  const published = newMessageOf(command, key, context);
  const { callback, ...own } = published.settings;
  const { callType, features, stepSettings } = append;
  const runSettings: RunSettings = { ...runSettingsOf(run, callType, features), ...(stepSettings && { stepSettings }) };
  const sent = { header: published.header, settings: { ...own, run: runSettings } };
  const isCall = callType === 'toCallback';
  const { header, settings } = isCall
    ? { header: sent.header, settings: applyRunConfigToCall(sent, config) }
    : applyRunConfig(sent, config);
  const message: Message = { ...published, header, settings };
  if (isCall && callback) message.settings.callback = applyRunConfigToCallback(callback, config);
  const entryKey = entryIdentityOf({
    callType,
    url: message.url,
    header: command.options.explicitHeader,
    body: message.body,
    ...(callback && { callbackHeader: callback.header }),
  });
  return {
    message,
    entry: entryOf(message, { ...entryKey, runKey: run.key, runVersion: run.version }, context.lazyAboveBytes),
  };
}

/** The properties of `run` that each of its messages repeats. */
export function runSettingsOf(run: Run, callType: CallType, features: WorkflowFeature[]): RunSettings {
  return { key: run.key, id: run.id, createdAtMs: run.createdAtMs, url: run.url, callType, features };
}

/** The record of an invocation in the parent's journal. */
function invocationRecord(
  { step, result, features }: Invocation,
  parent: Run,
  child: Message,
  key: MessageKey,
  random: RandomBytes,
): NewRecord {
  const stepId = readStep(step)?.stepId;
  if (stepId === undefined)
    throw new ApiError('unprocessable', 'invalid request body: step.stepId: a number is needed');
  const delivered = applyRunConfig(result, parent.config);
  const run = runSettingsOf(parent, 'step', features);
  const { settings: own, header } = delivered;
  const invoke: InvocationSettings = {
    runKey: child.key,
    runId: child.settings.run?.id ?? '',
    url: child.url,
    createdAtMs: child.createdAtMs,
    result: { url: result.url, header, settings: { ...own, run } },
  };
  return recordOf(
    parent,
    { kind: 'invoke', entryKey: entryKeyOfInvocation(stepId) },
    {
      key,
      id: mintMessageId(key, random),
      url: parent.url,
      body: step,
      createdAtMs: child.createdAtMs,
      callerIp: child.callerIp,
      settings: { dialect: result.settings.dialect, maxRetries: own.maxRetries, run, invoke },
    },
  );
}

function randomOf({ randomness }: AcceptContext): RandomBytes {
  return (count) => randomness.bytes(count);
}
