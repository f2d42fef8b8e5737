/** The limit of open files and sockets of the process. */
import { readFileSync } from 'node:fs';

/** Reads the limit on Linux; returns undefined elsewhere. Node has already raised the soft limit to the hard limit. */
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
