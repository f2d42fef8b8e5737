/** `1 message`, `1,200+ messages`. */
export function countOf(count: number, noun: string, isAtLeast = false): string {
  return `${count.toLocaleString()}${isAtLeast ? '+' : ''} ${noun}${count === 1 && !isAtLeast ? '' : 's'}`;
}

/**
 * `1,200`, `≥ 500`. The server stops counting at a limit. If the server found nothing up to the limit, the number is
 * unknown.
 */
export function countText({ count, isAtLeast }: { count: number; isAtLeast: boolean }): string {
  if (isAtLeast && count === 0) return 'not counted';
  return `${isAtLeast ? '≥ ' : ''}${count.toLocaleString()}`;
}
