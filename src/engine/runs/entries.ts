/** Makes journal entries: messages, and records of waits and invocations. */
import { newHeaderMap } from '../../protocol/headers.ts';
import type { MessageSettings, ResultMessage } from '../../protocol/options/settings.ts';
import { fetchesLazily } from '../../protocol/workflow/generations.ts';
import { entryKeyOfResult } from '../../workflow/entry-keys.ts';
import { entryBytesOf } from '../../workflow/journal.ts';
import type { Run } from '../../workflow/model.ts';
import { readStep } from '../../workflow/steps.ts';
import { type Draft, originOf } from '../messages/accept.ts';
import { followUpOf } from '../messages/follow-up.ts';
import type { FollowUp, Message, Millis, NewEntry, NewRecord } from '../model.ts';

/**
 * Adds two sizes to the entry of a message: the bytes that the entry adds to deliveries, and the size above which the
 * endpoint fetches them.
 */
export function entryOf(
  message: Message,
  fields: Pick<NewEntry, 'runKey' | 'kind' | 'entryKey' | 'runVersion'>,
  lazyAboveBytes: number,
): NewEntry {
  const { run } = message.settings;
  const entry: NewEntry = { ...fields, bytes: entryBytesOf(message.body.length, run?.callType) };
  if (run && fetchesLazily(run.features)) entry.lazyAboveBytes = lazyAboveBytes;
  return entry;
}

/** A follow-up as a message with a key and an id. */
export function draftOfFollowUp(
  { entry, ...rest }: FollowUp,
  identity: Pick<Message, 'key' | 'id'>,
  lazyAboveBytes: number,
): Draft {
  const message: Message = { ...rest, ...identity };
  const draft: Draft = { message, isFollowUp: true };
  return entry ? { ...draft, entry: entryOf(message, entry, lazyAboveBytes) } : draft;
}

/**
 * The record of a wait or an invocation in the journal of `run`, which is never sent. `parts.body` is the waiting step.
 */
export function recordOf(
  run: Run,
  entry: Pick<NewEntry, 'kind' | 'entryKey'>,
  parts: Pick<Message, 'key' | 'id' | 'url' | 'body' | 'createdAtMs'> & {
    callerIp: string | undefined;
    settings: Pick<MessageSettings, 'dialect' | 'maxRetries' | 'run' | 'wait' | 'invoke'>;
  },
): NewRecord {
  const { callerIp, settings, ...rest } = parts;
  const message: Message = {
    ...rest,
    projectId: run.projectId,
    origin: originOf(parts.url),
    method: 'POST',
    header: newHeaderMap(),
    notBeforeMs: parts.createdAtMs,
    settings: run.config.redact ? { ...settings, redact: run.config.redact } : settings,
  };
  if (callerIp !== undefined) message.callerIp = callerIp;
  return { message, entry: { ...entry, runKey: run.key, runVersion: run.version, bytes: 0 } };
}

/**
 * The message with the result of a wait or an invocation. `result`: the settings of the message, fixed when `record` was
 * made. `body`: the step with its result.
 */
export function resultOf(record: Message, result: ResultMessage, body: Uint8Array, atMs: Millis): FollowUp {
  const { run } = record.settings;
  const step = readStep(record.body);
  if (!run || !step) throw new Error(`the record ${record.key} has no step of a run`);
  const { url, header, settings } = result;
  const entry = { runKey: run.key, kind: 'step', entryKey: entryKeyOfResult(step.stepId) } as const;
  return followUpOf(record, { url, method: 'POST', header, body, settings, entry }, atMs);
}
