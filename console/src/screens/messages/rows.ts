/** From entries of the log to rows. Pure. */
import type { LiveEntry } from '../../api/live.ts';

/** A message enters each of its states once at a time. */
export function keyOf({ messageId, state, time }: LiveEntry): string {
  return `${messageId} ${state} ${time}`;
}

/** Both newest first; what is in both is there once. */
export function merged(arrived: readonly LiveEntry[], read: readonly LiveEntry[]): LiveEntry[] {
  if (arrived.length === 0) return [...read];
  const known = new Set(read.map(keyOf));
  const fresh = arrived.filter((entry) => !known.has(keyOf(entry)));
  // Entries that were committed late stand where they belong; the sort keeps the order of equal times.
  return [...fresh, ...read].sort((a, b) => b.time - a.time);
}

/** After these an earlier error says nothing of what the message is now. */
const MENDED: readonly string[] = ['DELIVERED', 'CANCELED'];

/** The latest entry of each message, in the order of these, with the error that it has this state for. */
export function latestOf(entries: readonly LiveEntry[]): LiveEntry[] {
  const byMessage = new Map<string, LiveEntry>();
  for (const entry of entries) {
    const latest = byMessage.get(entry.messageId);
    if (!latest) byMessage.set(entry.messageId, entry);
    else if (entry.error !== undefined && latest.error === undefined && !MENDED.includes(latest.state)) {
      const { error, responseStatus } = entry;
      byMessage.set(entry.messageId, { ...latest, error, ...(responseStatus !== undefined && { responseStatus }) });
    }
  }
  return [...byMessage.values()];
}
