/** Makes the message that delivers the result of a `context.call` to its workflow (contract W 14.5). */
import { encodeCallbackPayload } from '../../protocol/callback-payload.ts';
import type { MessageSettings } from '../../protocol/options/settings.ts';
import { mergeRedactions } from '../../protocol/redaction.ts';
import { isSuccess } from '../../protocol/responses.ts';
import { RETRIES_DEFAULT } from '../../protocol/workflow/generations.ts';
import { entryKeyOfCallResult } from '../../workflow/entry-keys.ts';
import { type CountedOutcome, reportOf, withContentType } from '../messages/callbacks.ts';
import { followUpOf } from '../messages/follow-up.ts';
import type { Claimed, FollowUp, Millis } from '../model.ts';

const TIMEOUT_STATUS = 504;
const STATUS_WITHOUT_RESPONSE = 502;

/** The message with the result of a call that has ended. Empty if the run wants no result. */
export function callResultsOf({ message, retried }: Claimed, ended: CountedOutcome, atMs: Millis): FollowUp[] {
  const { settings } = message;
  const { run, callback } = settings;
  if (!run || !callback) return [];
  const report = reportOf({ message, retried }, ended);
  const hasSucceeded = ended.kind === 'responded' && isSuccess(ended.status);
  // After a failure with retries left, a library would wait for another result. This result is final, so it shows no
  // retries left.
  const body = encodeCallbackPayload(
    {
      ...report,
      status: ended.kind === 'responded' ? ended.status : statusWithoutResponse(ended),
      retried: hasSucceeded ? retried : settings.maxRetries,
    },
    { forWorkflow: true },
  );
  const { url, method, header, features, maxRetries = RETRIES_DEFAULT, callback: _nested, ...own } = callback;
  const resultSettings: MessageSettings = {
    ...own,
    dialect: settings.dialect,
    maxRetries,
    run: { ...run, callType: 'fromCallback', features: features ?? run.features },
  };
  if (settings.trace) resultSettings.trace = settings.trace;
  if (settings.redact) resultSettings.redact = mergeRedactions(own.redact, settings.redact);
  const entry = { runKey: run.key, kind: 'fromCallback', entryKey: entryKeyOfCallResult(message.key) } as const;
  const parts = { url, method, header: withContentType(header), body, settings: resultSettings, entry };
  return [followUpOf(message, parts, atMs)];
}

function statusWithoutResponse({ reason }: Extract<CountedOutcome, { kind: 'unreachable' }>): number {
  return reason === 'timeout' ? TIMEOUT_STATUS : STATUS_WITHOUT_RESPONSE;
}
