/** Lists the messages of parked runs, whose workflow code has changed. */
import type { ProjectId } from '../../../engine/model.ts';
import type { ParkedMessage, ParkedPosition } from '../../../engine/runs/stores.ts';
import type { RunKey } from '../../../workflow/model.ts';
import type { Queries, SqlParam } from '../../driver.ts';
import { longRead } from '../operation.ts';

interface FindParkedArgs {
  projectId: ProjectId;
  runKey?: RunKey | undefined;
  after: ParkedPosition;
  limit: number;
}

/** The first `limit` parked messages after `after`, of one run or of all runs, ordered by run, then by key. */
export const findParked = longRead(
  (queries: Queries, { projectId, runKey, after, limit }: FindParkedArgs): Promise<ParkedMessage[]> => {
    const ofRun = runKey === undefined ? '' : 'and m.run_key = ?';
    const params: SqlParam[] = [projectId, after.runKey, after.key, ...(runKey === undefined ? [] : [runKey]), limit];
    return queries.query<ParkedMessage>(
      `select m.run_key as "runKey", m.key, c.id from messages m lookup contents c on (c.key = m.key)
       where m.project_id = ? and m.parkings is not null and (m.run_key, m.key) > (?, ?) ${ofRun}
         and m.parkings > 0 and m.claim_token is null
       order by m.run_key, m.key limit ?`,
      params,
    );
  },
);
