/** Where does a new message stand, and what is set going once it is saved? One answer for all that make messages. */
import { type Draft, firstEvents } from './accept.ts';
import type { Claimed, ClaimToken, Message, Millis, NewMessage, Standing } from './model.ts';

/** The places for attempts, as far as a new message takes part in them; the dispatcher has them. */
export interface Places {
  tryReserve(origin: string, bytes: number): 'reserved' | 'parked' | 'none';
  giveBack(origin: string, bytes: number): void;
  start(claimed: Claimed): void;
  noteDue(dueAtMs: Millis): void;
  noteParked(origin: string): void;
}

/** Reserves a place if the message can go out at once. To be followed by `setGoing`, whatever becomes of it. */
export function place(draft: Draft, claimToken: ClaimToken, places: Places): NewMessage {
  const standing = standingOf(draft.message, claimToken, places);
  return { ...draft, standing, events: firstEvents(draft.message, standing) };
}

function standingOf(message: Message, claimToken: ClaimToken, places: Places): Standing {
  const dueAtMs = message.notBeforeMs;
  if (dueAtMs > message.createdAtMs) return { kind: 'waiting', dueAtMs };
  switch (places.tryReserve(message.origin, message.body.length)) {
    case 'reserved':
      return { kind: 'claimed', claimToken };
    case 'parked':
      return { kind: 'parked', dueAtMs };
    case 'none':
      return { kind: 'waiting', dueAtMs };
  }
}

/** Starts what was saved as claimed and tells of what waits; gives back the place of what was not saved. */
export function setGoing({ message, standing }: NewMessage, isSaved: boolean, places: Places): void {
  if (standing.kind === 'claimed') {
    if (!isSaved) return places.giveBack(message.origin, message.body.length);
    const { claimToken } = standing;
    return places.start({ message, retried: 0, claimToken, claimedAtMs: message.createdAtMs });
  }
  if (!isSaved) return;
  if (standing.kind === 'parked') places.noteParked(message.origin);
  else places.noteDue(standing.dueAtMs);
}
