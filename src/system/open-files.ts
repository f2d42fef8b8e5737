/** How many files and sockets may the process have open? */
import { readFileSync } from 'node:fs';

/** Of the limits that Linux shows; elsewhere `undefined`. Node has raised the soft limit to the hard one by now. */
export function openFilesMax(limits = readLimits()): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}

function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return ''; // not Linux
  }
}
