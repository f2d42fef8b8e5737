/** Formats a duration for the server. */

/** A number is in seconds. The server has millisecond precision, so more digits are dropped. */
export function durationOf(duration: number | string): string {
  return typeof duration === 'number' ? `${Number(duration.toFixed(3))}s` : duration;
}
