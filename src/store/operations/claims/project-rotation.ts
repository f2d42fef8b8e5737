/** Chooses the next projects in the rotation when more messages are due than one claim takes. */

import type { DueProject, RotationState } from '../../../engine/dispatch/claims.ts';
import { isFresh } from '../../../engine/lanes/lag.ts';
import type { ProjectId } from '../../../engine/model.ts';
import type { Queries } from '../../driver.ts';
import { WAIT_STATE } from '../lanes/wait-states.ts';

/** The number of projects that one transaction serves; the next transaction serves the other projects. */
const SERVED_MAX = 32;
/** Projects examined in one transaction: more than `SERVED_MAX`, because most may have no due messages yet. */
const EXAMINED_MAX = 256;
/**
 * How long the list of due projects is reused. PostgreSQL keeps deleted index entries until the next vacuum, so the
 * search for the first message of a project reads past all messages that were claimed since the last vacuum. Each search
 * costs more with each second of a backlog.
 */
const REREAD_EVERY_MS = 200;

interface RotatedProject extends DueProject {
  /** Whether the first message became due only just now, while other projects are far behind. */
  isFresh: boolean;
}

export interface ProjectRotation extends RotationState {
  /** The projects in the order of the rotation, each with its first due message. The scan of the index starts there. */
  due: RotatedProject[];
  /** The project after which the next claim continues the rotation. */
  last: ProjectId;
}

/** Projects with due messages, starting after `after` and wrapping around. */
export async function rotateProjects(queries: Queries, state: RotationState, nowMs: number): Promise<ProjectRotation> {
  const { after } = state;
  const seen =
    state.seen && nowMs < state.seen.atMs + REREAD_EVERY_MS ? state.seen : await readDueProjects(queries, after, nowMs);
  const afterCursor = seen.projects.filter(({ id }) => id > after);
  const upToCursor = seen.projects.filter(({ id }) => id <= after);
  const examined = [...afterCursor, ...upToCursor].slice(0, EXAMINED_MAX);
  const due = examined.filter(({ dueAtMs }) => dueAtMs <= nowMs);
  const next = due.slice(0, SERVED_MAX);
  const last = due.length > SERVED_MAX ? next.at(-1)?.id : examined.at(-1)?.id;
  const lagOf = ({ dueAtMs }: DueProject) => nowMs - dueAtMs;
  const farthestMs = Math.max(...next.map(lagOf));
  return {
    due: next.map((each) => ({ ...each, isFresh: isFresh(lagOf(each), farthestMs) })),
    after,
    last: last ?? after,
    seen: isAll(afterCursor) && isAll(upToCursor) ? seen : undefined,
  };
}

/** Costs one index step per project. */
async function readDueProjects(
  queries: Queries,
  after: ProjectId,
  nowMs: number,
): Promise<NonNullable<RotationState['seen']>> {
  const [afterCursor, upToCursor] = await Promise.all([
    projectsBetween(queries, after, Number.MAX_SAFE_INTEGER),
    projectsBetween(queries, -1, after),
  ]);
  const projects = [...upToCursor, ...afterCursor].map(({ id, due_at_ms: dueAtMs, key }) => ({ id, dueAtMs, key }));
  return { atMs: nowMs, projects };
}

/** Whether all projects were examined. */
function isAll({ length }: readonly DueProject[]): boolean {
  return length < EXAMINED_MAX;
}

/**
 * Projects after `after`, up to `last`, that have messages in the due index, each with its first message. One search
 * finds both the project and the message: a second search would read past the same claimed entries that are not vacuumed
 * yet.
 */
function projectsBetween(
  queries: Queries,
  after: ProjectId,
  last: ProjectId,
): Promise<{ id: ProjectId; due_at_ms: number; key: number }[]> {
  const firstAfter = (projectId: string) =>
    `select m.key from messages m where m.claim_token is null and m.wait_state = ${WAIT_STATE.due}
       and m.project_id > ${projectId} and m.project_id <= ? order by m.project_id, m.due_at_ms, m.key limit 1`;
  return queries.query(
    `with recursive firsts (key) as (
       select key from (${firstAfter('?')}) as first
       union all
       select (${firstAfter('(select p.project_id from messages p where p.key = firsts.key)')})
       from firsts where firsts.key is not null)
     select f.project_id as id, f.due_at_ms, f.key from firsts lookup messages f on (f.key = firsts.key) limit ?`,
    [after, last, last, EXAMINED_MAX],
  );
}
