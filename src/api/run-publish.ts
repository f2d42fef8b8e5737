/** Handles published messages that begin or continue a workflow run (contract W 4, 14.8). */
import type { PublishCommand } from '../engine/messages/publish-command.ts';
import type { Millis } from '../engine/model.ts';
import { prefixOf } from '../protocol/dialect.ts';
import { ApiError } from '../protocol/errors.ts';
import type { PublishOptions } from '../protocol/settings.ts';
import { readInvocation } from '../protocol/workflow/invocation.ts';
import { JSON_HERE_BYTES_MAX } from './json-body.ts';
import { VALUES_PER_ITEM_MAX } from './limits.ts';
import { parseJson } from './parse-json.ts';
import type { Services } from './route.ts';

/** For an invocation: the command with the payload of the invoked run as its body. Throws `ApiError`. */
export function withInvocation(
  command: PublishCommand,
  { quotas, json }: Pick<Services, 'quotas' | 'json'>,
  nowMs: Millis,
): PublishCommand | Promise<PublishCommand> {
  const { run, settings } = command.options;
  if (run?.kind !== 'start' || !run.isInvoke) return command;
  const invoking = (body: unknown): PublishCommand => {
    const { payload, ...invocation } = readInvocation(body, settings.dialect, quotas, nowMs);
    // The invoking library also receives the result, so its features are known from this request.
    return { ...command, body: payload, invocation: { ...invocation, features: run.features } };
  };
  if (command.body.length > JSON_HERE_BYTES_MAX) return json.value(command.body, VALUES_PER_ITEM_MAX).then(invoking);
  return invoking(parseJson(command.body, VALUES_PER_ITEM_MAX));
}

/**
 * Throws `ApiError` 400 for a message of a workflow. `where` says, as the end of a sentence, that none is possible
 * there.
 */
export function refuseRun({ run, settings }: PublishOptions, where: string): void {
  if (run === undefined) return;
  throw new ApiError('invalid_header', `${prefixOf(settings.dialect)}-Workflow-Init is not supported ${where}`);
}
