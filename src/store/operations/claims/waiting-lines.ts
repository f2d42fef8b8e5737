/** Which lines of busy origins have messages? */
import { lineOf, type OriginLine, readLine } from '../../../engine/lanes/origin-line.ts';
import type { Queries } from '../../driver.ts';
import { LINE } from '../lanes/lines.ts';
import { projectsMoving } from '../locking/presence.ts';
import { read } from '../operation.ts';

/**
 * Lines with messages, by project, then origin: the first `limit` after `after`. Each takes one step in the index,
 * however many messages wait there.
 */
export const waitingLines = read(
  async (
    queries: Queries,
    { after, limit }: { after: OriginLine | undefined; limit: number },
  ): Promise<OriginLine[]> => {
    const lines: OriginLine[] = [];
    const moving = new Set(await projectsMoving(queries));
    let from: { projectId: number; origin: string } | undefined = after
      ? readLine(after)
      : await nextProject(queries, -1);
    while (from && lines.length < limit) {
      const { projectId, origin } = from;
      const isHere = !moving.has(projectId);
      const origins = isHere ? await originsOf(queries, projectId, { after: origin, limit: limit - lines.length }) : [];
      lines.push(...origins.map((each) => lineOf(projectId, each)));
      from = await nextProject(queries, projectId);
    }
    return lines;
  },
);

async function nextProject(
  queries: Queries,
  after: number,
): Promise<{ projectId: number; origin: string } | undefined> {
  const [row] = await queries.query<{ project_id: number }>(
    `select project_id from messages where claim_token is null and line = ${LINE.origin} and project_id > ? order by project_id limit 1`,
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
    `with recursive lines (origin) as (
       select origin from (select origin from messages
         where project_id = ? and claim_token is null and line = ${LINE.origin} and origin > ? order by origin limit 1) as first
       union all
       select (select m.origin from messages m
         where m.project_id = ? and m.claim_token is null and m.line = ${LINE.origin} and m.origin > lines.origin
         order by m.origin limit 1)
       from lines where lines.origin is not null)
     select origin from lines where origin is not null limit ?`,
    [projectId, after, projectId, limit],
  );
  return rows.map(({ origin }) => origin);
}
