/** How long, as the server takes it. */

/** A number is seconds; thousandths of them are as exact as the server is. */
export function durationOf(given: number | string): string {
  return typeof given === 'number' ? `${Number(given.toFixed(3))}s` : given;
}
