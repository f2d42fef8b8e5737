/** Publishes a message again, unchanged or with changes (contract M 22.41). Pure. */
import { newHeaderMap } from '../../protocol/headers.ts';
import { hides } from '../../protocol/redaction.ts';
import type { Message } from '../model.ts';
import { type DeadRetryOverride, withOverride } from './dead-retry.ts';
import type { PublishCommand } from './publish-command.ts';

/**
 * The changes of a replay. `queueName`: null takes the message out of its queue. `removed`: headers that are not sent
 * again.
 */
export interface ReplayChanges extends DeadRetryOverride {
  url?: string;
  body?: Uint8Array;
  queueName?: string | null;
  removed?: readonly string[];
}

/**
 * The publish that repeats `message`. Without a delay or a time in `changes`, the new message is due at once. The publish
 * is never deduplicated.
 */
export function replayOf(message: Message, changes: ReplayChanges): PublishCommand {
  const { url, body, queueName, removed = [], ...override } = changes;
  const { delayMs, notBeforeMs } = override;
  const header = Object.assign(newHeaderMap(), message.header);
  for (const name of removed) delete header[name];
  const { settings, ...changed } = withOverride({ ...message, header }, override);
  if (queueName === null) delete settings.queueName;
  else if (queueName !== undefined) settings.queueName = queueName;
  // Another URL is no endpoint of the group to which the message was published.
  if (url !== undefined) {
    delete settings.topicName;
    delete settings.endpointName;
  }
  return {
    url: url ?? message.url,
    body: body ?? message.body,
    ...(message.callerIp !== undefined && { callerIp: message.callerIp }),
    options: {
      ...changed,
      explicitHeader: newHeaderMap(),
      settings: { ...settings, replayOf: message.id },
      ...(delayMs !== undefined && { delayMs }),
      ...(notBeforeMs !== undefined && { notBeforeMs }),
    },
  };
}

/**
 * The redacted parts of `message` that `changes` do not replace: `body`, and each redacted header under its config
 * header. A caller who may not read these parts must not send them to a URL of the caller's choice.
 */
export function redactedPartsOf(message: Message, changes: ReplayChanges): string[] {
  const { redact } = message.settings;
  const parts: string[] = [];
  if (redact?.body && message.body.length > 0 && !changes.body) parts.push('body');
  for (const name of Object.keys(message.header)) {
    if (hides(redact, name) && !changes.header?.[name] && !changes.removed?.includes(name))
      parts.push(`Upstash-Forward-${name}`);
  }
  return parts;
}
