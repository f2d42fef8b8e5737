/**
 * The backlog in which a project's due messages to one origin wait for a slot. Each project has its own, so that its
 * messages never delay those of another project. Written `<project id> <origin>`.
 */
import type { Message, ProjectId } from '../model.ts';

export type BacklogKey = `${ProjectId} ${string}`;

export function backlogKey(projectId: ProjectId, origin: string): BacklogKey {
  return `${projectId} ${origin}`;
}

/** That in which the message would wait. */
export function backlogKeyOf({ projectId, origin }: Pick<Message, 'projectId' | 'origin'>): BacklogKey {
  return backlogKey(projectId, origin);
}

export function parseBacklogKey(backlog: BacklogKey): { projectId: ProjectId; origin: string } {
  const space = backlog.indexOf(' ');
  return { projectId: Number(backlog.slice(0, space)), origin: backlog.slice(space + 1) };
}
