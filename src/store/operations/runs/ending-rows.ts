/** How the end of a run is written. */
import type { RunEnding } from '../../../engine/model.ts';
import { encodeBytes } from '../messages/content-rows.ts';
import { RUN_STATE } from './run-rows.ts';

export interface StoredEnding {
  runKey: number;
  runVersion: number;
  state: number;
  atMs: number;
  response: Uint8Array | null;
  failureKey: number | null;
}

export function encodeEnding(ending: RunEnding): StoredEnding {
  const { runKey, runVersion, state, atMs, response, failureCallbackKey } = ending;
  return {
    runKey,
    runVersion,
    state: RUN_STATE[state],
    atMs,
    response: response ? encodeBytes(response) : null,
    failureKey: failureCallbackKey ?? null,
  };
}
