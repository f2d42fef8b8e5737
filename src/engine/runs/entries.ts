/** A message on its way into the journal of a run. */
import { fetchesLazily } from '../../protocol/workflow/generations.ts';
import { entryBytesOf } from '../../workflow/journal.ts';
import type { Draft } from '../accept.ts';
import type { FollowUp, Message, NewEntry } from '../model.ts';

/** The whole entry of a message: what it adds to deliveries, and when its own delivery is left to be fetched. */
export function entryOf(
  message: Message,
  place: Pick<NewEntry, 'runKey' | 'kind' | 'slot' | 'runVersion'>,
  lazyAboveBytes: number,
): NewEntry {
  const { run } = message.settings;
  const entry: NewEntry = { ...place, bytes: entryBytesOf(message.body.length, run?.callType) };
  if (run && fetchesLazily(run.features)) entry.lazyAboveBytes = lazyAboveBytes;
  return entry;
}

/** What follows, as a message with a key and an id. */
export function draftOfFollowUp(
  { entry, ...rest }: FollowUp,
  identity: Pick<Message, 'key' | 'id'>,
  lazyAboveBytes: number,
): Draft {
  const message: Message = { ...rest, ...identity };
  return entry ? { message, entry: entryOf(message, entry, lazyAboveBytes) } : { message };
}
