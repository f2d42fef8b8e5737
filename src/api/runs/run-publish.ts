/** Completes published messages that start or continue a workflow run (contract W 4, 14.8). */
import type { PublishCommand } from '../../engine/messages/publish-command.ts';
import type { Millis } from '../../engine/model.ts';
import { ApiError } from '../../protocol/errors.ts';
import { prefixOf } from '../../protocol/options/dialect.ts';
import { checkDelay } from '../../protocol/options/options.ts';
import type { PublishOptions } from '../../protocol/options/settings.ts';
import { readInvocation } from '../../protocol/workflow/invocation.ts';
import { readStep } from '../../workflow/steps.ts';
import { VALUES_PER_ITEM_MAX } from '../limits.ts';
import { JSON_INLINE_BYTES_MAX, parseJson } from '../requests/json-body.ts';
import type { Services } from '../route.ts';

/**
 * Completes the command from its body: an invocation with the payload of the invoked run, a sleep with its exact end.
 * Throws `ApiError`.
 */
export function completeRunPublish(
  command: PublishCommand,
  { quotas, json }: Pick<Services, 'quotas' | 'json'>,
  nowMs: Millis,
): PublishCommand | Promise<PublishCommand> {
  const { run, settings } = command.options;
  if (run?.kind === 'append' && run.callType === 'step') return withSleepEnd(command, quotas, nowMs);
  if (run?.kind !== 'start' || !run.isInvoke) return command;
  const withInvocation = (body: unknown): PublishCommand => {
    const { payload, ...invocation } = readInvocation(body, settings.dialect, quotas, nowMs);
    // The library that sends an invocation also receives the result, so its features are known from this request.
    return { ...command, body: payload, invocation: { ...invocation, features: run.features } };
  };
  if (command.body.length > JSON_INLINE_BYTES_MAX)
    return json.value(command.body, VALUES_PER_ITEM_MAX).then(withInvocation);
  return withInvocation(parseJson(command.body, VALUES_PER_ITEM_MAX));
}

/** Libraries round `Upstash-Not-Before` to whole seconds, sometimes down; a sleep must not end early (contract W 14.3). */
function withSleepEnd(command: PublishCommand, quotas: Services['quotas'], nowMs: Millis): PublishCommand {
  const { options, body } = command;
  const { notBeforeMs } = options;
  const sleepUntilMs = notBeforeMs === undefined ? undefined : readStep(body)?.sleepUntilMs;
  if (notBeforeMs === undefined || sleepUntilMs === undefined || sleepUntilMs <= notBeforeMs) return command;
  checkDelay(sleepUntilMs - nowMs, quotas);
  return { ...command, options: { ...options, notBeforeMs: sleepUntilMs } };
}

/**
 * Throws `ApiError` 400 for a message of a workflow. `where` ends the error text: the place that does not support such
 * messages.
 */
export function refuseRun({ run, settings }: PublishOptions, where: string): void {
  if (run === undefined) return;
  throw new ApiError('invalid_header', `${prefixOf(settings.dialect)}-Workflow-Init is not supported ${where}`);
}
