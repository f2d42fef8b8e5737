/** Where does a new message stand, and what is set going once it is saved? One answer for all that make messages. */
import { type Draft, firstEvents } from './accept.ts';
import type { Claimed, ClaimToken, Message, Millis, NewMessage, Standing } from './model.ts';
import type { AcceptedStanding } from './stores.ts';

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
  return { ...draft, standing, events: firstEvents(draft.message) };
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

/**
 * Starts what the store saved as claimed and tells of what waits; `saved` is where it stands there, `undefined` when it
 * was not saved. A reserved place that is not used goes back. What a lane holds back needs nobody: the store tells when
 * it lets it go.
 */
export function setGoing(news: NewMessage, saved: AcceptedStanding | undefined, places: Places): void {
  const { message, standing: proposed } = news;
  if (proposed.kind === 'claimed') {
    if (saved !== 'claimed') return places.giveBack(message.origin, message.body.length);
    const { claimToken } = proposed;
    return places.start({ message, retried: 0, claimToken, claimedAtMs: message.createdAtMs });
  }
  if (saved === 'parked') places.noteParked(message.origin);
  else if (saved === 'waiting') places.noteDue(proposed.dueAtMs);
}
