/** Makes messages that follow from another message. Follow-up messages are due at once. */
import type { FollowUp, Message, Millis } from '../model.ts';
import { originOf } from './accept.ts';

/** Makes a message that inherits the project and the caller's IP address of `source`. */
export function followUpOf(
  source: Pick<Message, 'projectId' | 'callerIp'>,
  parts: Pick<FollowUp, 'url' | 'method' | 'header' | 'body' | 'settings' | 'entry'>,
  atMs: Millis,
): FollowUp {
  const followUp: FollowUp = {
    ...parts,
    projectId: source.projectId,
    origin: originOf(parts.url),
    createdAtMs: atMs,
    notBeforeMs: atMs,
  };
  if (source.callerIp !== undefined) followUp.callerIp = source.callerIp;
  return followUp;
}
