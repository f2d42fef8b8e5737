/** Encodes the end of a run, and decides its time. */
import type { ProjectId, RunEnding } from '../../../engine/model.ts';
import type { Transaction } from '../../driver.ts';
import { encodeBytes } from '../messages/content-rows.ts';
import { RUN_STATE } from './run-rows.ts';

export interface StoredEnding {
  projectId: ProjectId;
  runKey: number;
  runVersion: number;
  state: number;
  atMs: number;
  response: Uint8Array | null;
  failureKey: number | null;
}

export function encodeEnding(ending: RunEnding): StoredEnding {
  const { projectId, runKey, runVersion, state, atMs, response, failureCallbackKey } = ending;
  return {
    projectId,
    runKey,
    runVersion,
    state: RUN_STATE[state],
    atMs,
    response: response ? encodeBytes(response) : null,
    failureKey: failureCallbackKey ?? null,
  };
}

/** The time at which each run ends: never before an event in its log, even if the clock was set back. */
export async function endTimesOf(
  tx: Transaction,
  endings: readonly Pick<StoredEnding, 'runKey' | 'atMs'>[],
): Promise<Map<number, { projectId: ProjectId; atMs: number }>> {
  const rows = await tx.query<{ key: number; project_id: ProjectId; last_ms: number | null }>(
    `select r.key, r.project_id, (select max(l.at_ms) from logs l where l.run_key = r.key) as last_ms
     from runs r where r.key in (??) order by r.key`,
    [endings.map(({ runKey }) => runKey)],
  );
  const rowByKey = new Map(rows.map((row) => [row.key, row]));
  return new Map(
    endings.map(({ runKey, atMs }) => {
      const row = rowByKey.get(runKey);
      if (!row) throw new Error(`run ${runKey} is missing`);
      return [runKey, { projectId: row.project_id, atMs: Math.max(atMs, row.last_ms ?? 0) }];
    }),
  );
}
