/** Converts log entries to rows. Pure. */
import type { LiveEntry } from '../../api/live.ts';

/** A message enters a state at most once at a given time. */
export function keyOf({ messageId, state, time }: LiveEntry): string {
  return `${messageId} ${state} ${time}`;
}

/** Merges two lists, newest first, without duplicates. */
export function merge(received: readonly LiveEntry[], read: readonly LiveEntry[]): LiveEntry[] {
  if (received.length === 0) return [...read];
  const known = new Set(read.map(keyOf));
  const fresh = received.filter((entry) => !known.has(keyOf(entry)));
  // Sorting moves entries that were committed late to their time. The sort is stable.
  return [...fresh, ...read].sort((a, b) => b.time - a.time);
}

/** States after which an earlier error no longer matters. */
const RECOVERED: readonly string[] = ['DELIVERED', 'CANCELED'];

/** The latest entry of each message, with the error that led to its state. */
export function latestOf(entries: readonly LiveEntry[]): LiveEntry[] {
  const byMessage = new Map<string, LiveEntry>();
  for (const entry of entries) {
    const latest = byMessage.get(entry.messageId);
    if (!latest) byMessage.set(entry.messageId, entry);
    else if (entry.error !== undefined && latest.error === undefined && !RECOVERED.includes(latest.state)) {
      const { error, responseStatus } = entry;
      byMessage.set(entry.messageId, { ...latest, error, ...(responseStatus !== undefined && { responseStatus }) });
    }
  }
  return [...byMessage.values()];
}
