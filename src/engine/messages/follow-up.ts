/** A message that follows from another one, at once: what all such messages have in common. */
import type { FollowUp, Message, Millis } from '../model.ts';
import { originOf } from './accept.ts';

/** It belongs to the project of `source`, and whoever called for that is taken to call for it. */
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
