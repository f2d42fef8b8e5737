/** `1 message`, `1,200+ messages`. */
export function countOf(count: number, noun: string, isAtLeast = false): string {
  return `${count.toLocaleString()}${isAtLeast ? '+' : ''} ${noun}${count === 1 && !isAtLeast ? '' : 's'}`;
}
