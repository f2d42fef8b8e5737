/** Limits silent attempts by the open files of the process, since each keeps a connection open. */
import type { Config } from '../config/table.ts';

/** Of the files that the process may have open, the share for attempts. The rest is for callers and for the store. */
const SHARE_OF_FILES = 3 / 4;

/**
 * As many as the setting says, and no more than the worker's part of the open files leaves beside attempts with slots. Never so few that
 * endpoints without a response so far could not use their half of the slots.
 */
export function silentMaxWithin(
  openFiles: number | undefined,
  { silentMax, inFlightMax, workers }: Pick<Config, 'silentMax' | 'inFlightMax' | 'workers'>,
): number {
  if (openFiles === undefined) return silentMax;
  const left = Math.floor((SHARE_OF_FILES * openFiles) / workers) - inFlightMax;
  return Math.min(silentMax, Math.max(left, Math.ceil(inFlightMax / 2)));
}
