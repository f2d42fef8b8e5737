/** The message that brings a run the result of a wait or an invocation. */
import type { ResultPart } from '../../protocol/settings.ts';
import { entryKeyOfResult } from '../../workflow/entry-keys.ts';
import { readStep } from '../../workflow/steps.ts';
import { followUpOf } from '../messages/follow-up.ts';
import type { FollowUp, Message, Millis } from '../model.ts';

/** `part`: what was known of the message when `record` was made. `body`: its step with the result in it. */
export function resultOf(record: Message, part: ResultPart, body: Uint8Array, atMs: Millis): FollowUp {
  const { run } = record.settings;
  const step = readStep(record.body);
  if (!run || !step) throw new Error(`the record ${record.key} names no step of a run`);
  const { url, header, settings } = part;
  const entry = { runKey: run.key, kind: 'step', entryKey: entryKeyOfResult(step.stepId) } as const;
  return followUpOf(record, { url, method: 'POST', header, body, settings, entry }, atMs);
}
