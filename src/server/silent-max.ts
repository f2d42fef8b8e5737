/** Limits silent attempts by the open-file limit of the process, because each silent attempt keeps a connection open. */
import type { Config } from '../config/table.ts';

/** The fraction of the open-file limit that attempts may use. Clients and the store use the rest. */
const FRACTION_OF_FILES = 3 / 4;

/**
 * The maximum of silent attempts of one worker: the setting, or the number of open files that attempts with slots leave,
 * if this number is lower. The maximum is at least half of the slots, so that all attempts at unknown endpoints can be
 * silent.
 */
export function limitSilentMax(
  openFiles: number | undefined,
  { silentMax, inFlightMax, workers }: Pick<Config, 'silentMax' | 'inFlightMax' | 'workers'>,
): number {
  if (openFiles === undefined) return silentMax;
  const available = Math.floor((FRACTION_OF_FILES * openFiles) / workers) - inFlightMax;
  return Math.min(silentMax, Math.max(available, Math.ceil(inFlightMax / 2)));
}
