/** Whose turn is it, when projects have more due than one claim takes? */
import { isFresh } from '../../../engine/lanes/lag.ts';
import type { ProjectId } from '../../../engine/model.ts';
import type { Queries } from '../../driver.ts';
import { LINE } from '../lanes/lines.ts';

/** Projects that have a turn in one transaction; the others follow in the next. */
const TURNS_MAX = 32;
/** Projects that are looked at for it: most may have nothing but messages that are due later. */
const EXAMINED_MAX = 256;

interface ProjectInTurn {
  id: ProjectId;
  /** It has just begun to wait, while others are far behind. */
  isFresh: boolean;
}

interface ProjectsInTurn {
  /** In the order of their turns. */
  due: ProjectInTurn[];
  /** After whom the next turns begin. */
  last: ProjectId;
}

/** Projects with due messages, from the one after `after` on and round. Costs one step in the index for each looked at. */
export async function projectsInTurn(queries: Queries, after: ProjectId, nowMs: number): Promise<ProjectsInTurn> {
  const [behind, first] = await Promise.all([
    projectsAfter(queries, after, EXAMINED_MAX),
    projectsAfter(queries, -1, EXAMINED_MAX),
  ]);
  const looked = [...behind, ...first.filter(({ id }) => id <= after)].slice(0, EXAMINED_MAX);
  const due = looked.filter(({ due_at_ms }) => due_at_ms <= nowMs);
  const inTurn = due.slice(0, TURNS_MAX);
  const last = due.length > TURNS_MAX ? inTurn.at(-1)?.id : looked.at(-1)?.id;
  const lagOf = ({ due_at_ms }: (typeof due)[number]) => nowMs - due_at_ms;
  const farthestMs = Math.max(...inTurn.map(lagOf));
  return {
    due: inTurn.map((each) => ({ id: each.id, isFresh: isFresh(lagOf(each), farthestMs) })),
    last: last ?? after,
  };
}

/** Projects with messages in the due index, each with the time of its first. */
function projectsAfter(
  queries: Queries,
  after: ProjectId,
  limit: number,
): Promise<{ id: ProjectId; due_at_ms: number }[]> {
  const inIndex = `claim_token is null and line = ${LINE.due}`;
  return queries.query(
    `with recursive projects (id) as (
       select project_id from (select project_id from messages where ${inIndex} and project_id > ?
         order by project_id limit 1) as first
       union all
       select (select m.project_id from messages m where ${inIndex} and m.project_id > projects.id
         order by m.project_id limit 1)
       from projects where projects.id is not null)
     select id, (select due_at_ms from messages where ${inIndex} and project_id = id order by due_at_ms, key limit 1) as due_at_ms
     from projects where id is not null limit ?`,
    [after, limit],
  );
}
