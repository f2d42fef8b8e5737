/** Makes the record of a wait in the journal of its run, and the message with the result of the wait. */
import { Buffer } from 'node:buffer';
import { newHeaderMap } from '../../../protocol/headers.ts';
import type { ResultMessage, RunSettings, WaitSettings } from '../../../protocol/options/settings.ts';
import { applyRunConfig, withHeaders } from '../../../workflow/configuration.ts';
import { entryKeyOfWait } from '../../../workflow/entry-keys.ts';
import type { Run } from '../../../workflow/model.ts';
import { notifiedStep, timedOutStep } from '../../../workflow/waits.ts';
import type { FollowUp, Message, Millis } from '../../model.ts';
import { runSettingsOf } from '../drafts.ts';
import { recordOf, resultOf } from '../entries.ts';
import type { NewWaiter, WaitCommand } from '../stores.ts';

/** The wait of `run` that `command` requests, with a unique key and id. */
export function waiterOf(
  command: WaitCommand,
  run: Run,
  { key, id }: Pick<Message, 'key' | 'id'>,
  nowMs: Millis,
): NewWaiter {
  const { eventId, timeout, timeoutMs, timeoutBody } = command;
  const deadlineMs = nowMs + timeoutMs;
  const part = runSettingsOf(run, 'step', command.features);
  const notified = resultMessageOf(command.notified, run, part);
  const wait: WaitSettings = {
    eventId,
    timeout,
    deadlineMs,
    notified,
    timedOut: resultMessageOf(command.timedOut, run, part),
    headers: command.headers,
    timeoutHeaders: command.timeoutHeaders,
  };
  if (timeoutBody !== undefined) wait.timeoutBody = timeoutBody;
  const { url, settings } = notified;
  const record = recordOf(
    run,
    { kind: 'wait', entryKey: entryKeyOfWait(command.stepId) },
    {
      key,
      id,
      url,
      body: command.step,
      createdAtMs: nowMs,
      callerIp: command.callerIp,
      settings: { dialect: settings.dialect, maxRetries: settings.maxRetries, run: part, wait },
    },
  );
  return { record, eventId, deadlineMs };
}

/** The settings of the message with the result. The run's configuration never changes, so it is applied now. */
function resultMessageOf(part: ResultMessage, { config }: Run, run: RunSettings): ResultMessage {
  const { callback: _callback, ...own } = part.settings;
  const { header, settings } = applyRunConfig({ header: part.header, settings: own }, config);
  const json = newHeaderMap();
  json['Content-Type'] = ['application/json'];
  return {
    url: part.url,
    header: withHeaders(json, header),
    settings: { ...settings, run },
  };
}

/** The result of a wait that was notified of `event`. */
export function notifiedResult(record: Message, event: Uint8Array, atMs: Millis): FollowUp {
  const wait = waitOf(record);
  return resultOf(record, wait.notified, notifiedStep(record.body, wait.eventId, event), atMs);
}

/** The result of a wait whose deadline has passed. */
export function timedOutResult(record: Message, atMs: Millis): FollowUp {
  const { timedOut, timeoutBody, eventId } = waitOf(record);
  const body = timeoutBody === undefined ? timedOutStep(record.body, eventId) : Buffer.from(timeoutBody, 'base64');
  return resultOf(record, timedOut, body, atMs);
}

/** The part of a record that describes its wait. */
function waitOf({ key, settings }: Message): WaitSettings {
  if (!settings.wait) throw new Error(`the record ${key} is not of a wait`);
  return settings.wait;
}
