/** Makes the messages that a checkpoint appends, equal to the messages of a publish by the run (contract K 3.3). */

import { newHeaderMap } from '../../protocol/headers.ts';
import { prefixOf } from '../../protocol/options/dialect.ts';
import type { PublishOptions } from '../../protocol/options/settings.ts';
import { withoutMarks } from '../../protocol/workflow/forwarded-headers.ts';
import { PROTOCOL_VERSION, RETRIES_DEFAULT } from '../../protocol/workflow/generations.ts';
import { applyRunConfig, type ConfigurableMessage, withHeaders } from '../../workflow/configuration.ts';
import type { Run } from '../../workflow/model.ts';
import type { AcceptContext } from '../messages/accept.ts';
import { type Draft, newMessageOf } from '../messages/accept.ts';
import type { Message, MessageKey } from '../model.ts';
import { draftOfAppend, runSettingsOf } from '../runs/drafts.ts';
import { entryOf } from '../runs/entries.ts';
import type { WaitCommand } from '../runs/stores.ts';
import type { AppendedEntry } from './commands.ts';

type Step = Extract<AppendedEntry, { kind: 'step' }>;
type Wait = Extract<AppendedEntry, { kind: 'wait' }>;
type Call = Extract<AppendedEntry, { kind: 'call' }>;

/** The sender of a checkpoint. */
export interface Sender {
  /** The first finished message of the checkpoint. */
  previous: Pick<Message, 'header' | 'settings'> | undefined;
  callerIp?: string | undefined;
}

/** The header and the settings that all steps of a run share. */
export type StepTemplate = ConfigurableMessage & { run: Run };

export function stepTemplateOf(run: Run, previous: Sender['previous']): StepTemplate {
  const { header, settings } = applyRunConfig(libraryOptions(run, previous), run.config);
  return { run, header, settings: { ...settings, run: runSettingsOf(run, 'step', run.config.features) } };
}

export function draftOfStep(
  { body, identity, delayMs, notBeforeMs }: Step,
  { run, header, settings }: StepTemplate,
  key: MessageKey,
  callerIp: string | undefined,
  context: AcceptContext,
): Draft {
  const options: PublishOptions = { method: 'POST', header, explicitHeader: header, settings };
  if (delayMs !== undefined) options.delayMs = delayMs;
  if (notBeforeMs !== undefined) options.notBeforeMs = notBeforeMs;
  const message = newMessageOf(
    { url: run.url, body, options, ...(callerIp !== undefined && { callerIp }) },
    key,
    context,
  );
  return {
    message,
    entry: entryOf(message, { ...identity, runKey: run.key, runVersion: run.version }, context.lazyAboveBytes),
  };
}

/** A call by `run`, even if the element names another run: the claim token belongs to `run`. */
export function draftOfCall({ command }: Call, run: Run, key: MessageKey, context: AcceptContext): Draft {
  const { id: runId, createdAtMs, config } = run;
  const features = command.options.run?.features ?? config.features;
  return draftOfAppend(
    command,
    { kind: 'append', runId, createdAtMs, callType: 'toCallback', features },
    run,
    key,
    context,
  );
}

export function waitCommandOf(wait: Wait, run: Run, sender: Sender): WaitCommand {
  const { eventId, timeout, timeoutMs, step, stepId } = wait;
  const { header, settings } = libraryOptions(run, sender.previous);
  const result = { url: run.url, header, settings };
  const prefix = prefixOf(run.config.dialect);
  const headers = newHeaderMap();
  headers[`${prefix}-Workflow-Runid`] = [run.id];
  headers[`${prefix}-Workflow-Url`] = [run.url];
  const command: WaitCommand = {
    runId: run.id,
    createdAtMs: run.createdAtMs,
    eventId,
    timeout,
    timeoutMs,
    step,
    stepId,
    features: run.config.features,
    notified: result,
    timedOut: result,
    headers,
    timeoutHeaders: headers,
  };
  if (sender.callerIp !== undefined) command.callerIp = sender.callerIp;
  return command;
}

/**
 * Header and settings that a library would send with a step. If the run does not keep its trigger's configuration, each
 * message repeats the configuration (contract W 7), so the previous message provides it. The invocation depth is copied
 * in every run.
 */
function libraryOptions({ config: { dialect, isKept } }: Run, previous: Sender['previous']): ConfigurableMessage {
  const prefix = prefixOf(dialect);
  const libraryHeader = newHeaderMap();
  libraryHeader[`${prefix}-Workflow-Sdk-Version`] = [PROTOCOL_VERSION];
  libraryHeader['Content-Type'] = ['application/json'];
  if (!previous || isKept) {
    const name = `${prefix}-Workflow-Invoke-Count`;
    const depth = previous?.header[name];
    if (depth) libraryHeader[name] = depth;
    return { header: libraryHeader, settings: { dialect, maxRetries: RETRIES_DEFAULT } };
  }
  const { run: _run, callback: _callback, ...settings } = previous.settings;
  return { header: withHeaders(withoutMarks(previous.header, 'step'), libraryHeader), settings };
}
