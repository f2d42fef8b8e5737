/**
 * The key of an endpoint backlog: the due messages of one project for one origin, which wait for a slot. Each project has
 * a backlog of its own, so that its messages never delay messages of another project. Written `<project id> <origin>`.
 */
import type { Message, ProjectId } from '../model.ts';

export type BacklogKey = `${ProjectId} ${string}`;

export function backlogKey(projectId: ProjectId, origin: string): BacklogKey {
  return `${projectId} ${origin}`;
}

/** The backlog in which the message would wait. */
export function backlogKeyOf({ projectId, origin }: Pick<Message, 'projectId' | 'origin'>): BacklogKey {
  return backlogKey(projectId, origin);
}

export function parseBacklogKey(backlog: BacklogKey): { projectId: ProjectId; origin: string } {
  const space = backlog.indexOf(' ');
  return { projectId: Number(backlog.slice(0, space)), origin: backlog.slice(space + 1) };
}
