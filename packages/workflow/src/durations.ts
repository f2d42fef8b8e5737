/** Formats a duration for the server. */

/** A number is in seconds. The server has millisecond precision, so more digits are dropped. */
export function durationOf(given: number | string): string {
  return typeof given === 'number' ? `${Number(given.toFixed(3))}s` : given;
}
