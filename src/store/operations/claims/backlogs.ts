/** Lists the endpoint backlogs that have messages. */
import { type BacklogKey, backlogKey, parseBacklogKey } from '../../../engine/lanes/backlog-key.ts';
import type { Queries } from '../../driver.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';
import { projectsMoving } from '../locking/placement.ts';
import { read } from '../operation.ts';

/**
 * The first `limit` backlogs after `after`, by project, then origin. Each backlog costs one index step, however many
 * messages it has.
 */
export const waitingBacklogs = read(
  async (
    queries: Queries,
    { after, limit }: { after: BacklogKey | undefined; limit: number },
  ): Promise<BacklogKey[]> => {
    const backlogs: BacklogKey[] = [];
    const moving = new Set(await projectsMoving(queries));
    let from: { projectId: number; origin: string } | undefined = after
      ? parseBacklogKey(after)
      : await nextProject(queries, -1);
    while (from && backlogs.length < limit) {
      const { projectId, origin } = from;
      const isHere = !moving.has(projectId);
      const origins = isHere
        ? await originsOf(queries, projectId, { after: origin, limit: limit - backlogs.length })
        : [];
      backlogs.push(...origins.map((each) => backlogKey(projectId, each)));
      from = await nextProject(queries, projectId);
    }
    return backlogs;
  },
);

async function nextProject(
  queries: Queries,
  after: number,
): Promise<{ projectId: number; origin: string } | undefined> {
  const [row] = await queries.query<{ project_id: number }>(
    `select project_id from messages where claim_token is null and wait_state = ${WAIT_STATE.origin} and project_id > ? order by project_id limit 1`,
    [after],
  );
  return row && { projectId: row.project_id, origin: '' };
}

async function originsOf(
  queries: Queries,
  projectId: number,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const rows = await queries.query<{ origin: string }>(
    `with recursive backlogs (origin) as (
       select origin from (select origin from messages
         where project_id = ? and claim_token is null and wait_state = ${WAIT_STATE.origin} and origin > ? order by origin limit 1) as first
       union all
       select (select m.origin from messages m
         where m.project_id = ? and m.claim_token is null and m.wait_state = ${WAIT_STATE.origin} and m.origin > backlogs.origin
         order by m.origin limit 1)
       from backlogs where backlogs.origin is not null)
     select origin from backlogs where origin is not null limit ?`,
    [projectId, after, projectId, limit],
  );
  return rows.map(({ origin }) => origin);
}
