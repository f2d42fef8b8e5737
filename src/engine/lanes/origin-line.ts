/**
 * The line in which a project's due messages to one origin wait for a slot. Each project has its own, so that its
 * messages never delay those of another project. Written `<project id> <origin>`.
 */
import type { Message, ProjectId } from '../model.ts';

export type OriginLine = `${ProjectId} ${string}`;

export function lineOf(projectId: ProjectId, origin: string): OriginLine {
  return `${projectId} ${origin}`;
}

/** That in which the message would wait. */
export function lineTo({ projectId, origin }: Pick<Message, 'projectId' | 'origin'>): OriginLine {
  return lineOf(projectId, origin);
}

export function readLine(line: OriginLine): { projectId: ProjectId; origin: string } {
  const space = line.indexOf(' ');
  return { projectId: Number(line.slice(0, space)), origin: line.slice(space + 1) };
}
